package identities

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/clusterapi/identity"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state/store"
)

// leastIdentityPace is the least time between two reads of the authorities; a store
// that takes few writes is read as often as it takes one.
const leastIdentityPace = 250 * time.Millisecond

// checkInterval is how often the authorities are read while the controller sends them.
const checkInterval = 30 * time.Minute

// Keeper keeps the files by which the tasks of this machine know the members of
// their namespace: a new leader is a new authority. It may be used concurrently.
type Keeper struct {
	store store.Store
	log   *slog.Logger
	ctx   context.Context // of the reads
	end   context.CancelFunc
	done  sync.WaitGroup

	mu         sync.Mutex
	trusted    []keys.Authority
	generation store.Generation // of trusted
	files      map[string]*Own
	polling    bool        // run is under way
	live       func() bool // whether the controller sends what changes; nil: it does not
	readAt     time.Time   // the last read that succeeded
}

// Own are the parts of a task's file that are its host's own.
type Own struct{ Key, Certificate []byte }

// New returns a keeper that keeps no file yet.
func New(s store.Store, log *slog.Logger) *Keeper {
	i := &Keeper{store: s, log: log, files: map[string]*Own{}}
	i.ctx, i.end = context.WithCancel(context.Background())
	return i
}

// Follow has the authorities read seldom while live reports that the controller sends them.
func (i *Keeper) Follow(live func() bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.live = live
}

// Push hands over the authorities as an object of the store has them. Older ones than those at
// hand have no effect.
func (i *Keeper) Push(object store.Generation, data []byte) {
	trusted, err := keys.DecodeAuthorities(data)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err == nil && object > i.generation {
		err = i.takeLocked(trusted, object)
	}
	if err != nil {
		i.readAt = time.Time{} // so that they are read
		i.log.Warn("the authorities of actors that the controller sent are not kept", "error", err)
	}
}

// quiet reports whether the authorities need not be read.
func (i *Keeper) quiet() bool {
	i.mu.Lock()
	live, readAt := i.live, i.readAt
	i.mu.Unlock()
	return live != nil && live() && time.Since(readAt) < checkInterval
}

// Stop ends the reads; files stay as they are.
func (i *Keeper) Stop() {
	i.end()
	i.done.Wait()
}

// Keep writes a task's file, and writes it again whenever authorities come and go,
// until drop.
func (i *Keeper) Keep(ctx context.Context, path string, f *Own) error {
	i.mu.Lock()
	known := slices.ContainsFunc(i.trusted, func(a keys.Authority) bool { return identity.IssuedBy(f.Certificate, a.Certificate) })
	i.mu.Unlock()
	if !known { // it was published before the assignment was
		if err := i.refresh(ctx); err != nil {
			return err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.files[path] = f
	if !i.polling {
		i.polling = true
		i.done.Go(i.run)
	}
	return i.writeLocked(path)
}

// Certificate is that of a file which is kept, nil for another.
func (i *Keeper) Certificate(path string) []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	if f := i.files[path]; f != nil {
		return f.Certificate
	}
	return nil
}

// Drop ends the keeping of a file, and leaves it as it is.
func (i *Keeper) Drop(path string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.files, path)
}

// run refreshes while there are files to keep.
func (i *Keeper) run() {
	failed := false
	for sleep.For(i.ctx, max(leastIdentityPace, i.store.WriteInterval())) {
		i.mu.Lock()
		i.polling = len(i.files) > 0
		over := !i.polling
		i.mu.Unlock()
		if over {
			return
		}
		if i.quiet() {
			continue
		}
		err := i.refresh(i.ctx)
		if err != nil && !failed && i.ctx.Err() == nil {
			i.log.Warn("the authorities of actors are not known anew", "error", err)
		}
		failed = err != nil
	}
}

// refresh reads which authorities there are.
func (i *Keeper) refresh(ctx context.Context) error {
	i.mu.Lock()
	known := i.generation
	i.mu.Unlock()
	trusted, generation, err := keys.ReadAuthoritiesUnless(ctx, i.store, known)
	if err != nil && !errors.Is(err, store.ErrUnchanged) {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.readAt = time.Now()
	if err != nil || generation == i.generation {
		return nil
	}
	return i.takeLocked(trusted, generation)
}

// takeLocked makes authorities those of all files.
func (i *Keeper) takeLocked(trusted []keys.Authority, generation store.Generation) error {
	var err error
	i.trusted, i.generation = trusted, generation
	for path := range i.files {
		err = errors.Join(err, i.writeLocked(path))
	}
	return err
}

// writeLocked puts a file in the place of an older one, so that a task which reads it
// meanwhile sees one of them.
func (i *Keeper) writeLocked(path string) error {
	f := i.files[path]
	text := identity.File(f.Key, f.Certificate, keys.Trusted(i.trusted))
	if before, err := os.ReadFile(path); err == nil && bytes.Equal(before, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("keep the actors' identity: %w", err)
	}
	if err := durable.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("keep the actors' identity: %w", err)
	}
	return nil
}
