package agent

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
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// leastIdentityPace is the least time between two looks at which authorities there
// are; a store that takes few writes is looked at as often as it takes one.
const leastIdentityPace = 250 * time.Millisecond

// identities keeps the files by which the tasks of this machine know the members of
// their namespace: a new leader is a new authority. It may be used concurrently.
type identities struct {
	store store.Store
	log   *slog.Logger
	ctx   context.Context // of the looks
	end   context.CancelFunc
	done  sync.WaitGroup

	mu         sync.Mutex
	trusted    []keys.Authority
	generation store.Generation // of trusted
	files      map[string]*identityFiles
	looks      bool // somebody looks
}

// identityFiles are the parts of a task's file that are its host's own.
type identityFiles struct{ key, certificate []byte }

func newIdentities(s store.Store, log *slog.Logger) *identities {
	i := &identities{store: s, log: log, files: map[string]*identityFiles{}}
	i.ctx, i.end = context.WithCancel(context.Background())
	return i
}

// stop ends the looks; files stay as they are.
func (i *identities) stop() {
	i.end()
	i.done.Wait()
}

// keep writes a task's file, and writes it again whenever authorities come and go,
// until drop.
func (i *identities) keep(ctx context.Context, path string, f *identityFiles) error {
	i.mu.Lock()
	known := slices.ContainsFunc(i.trusted, func(a keys.Authority) bool { return identity.IssuedBy(f.certificate, a.Certificate) })
	i.mu.Unlock()
	if !known { // it was published before the assignment was
		if err := i.look(ctx); err != nil {
			return err
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.files[path] = f
	if !i.looks {
		i.looks = true
		i.done.Go(i.run)
	}
	return i.writeLocked(path)
}

func (i *identities) drop(path string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.files, path)
}

// run looks while there are files to keep.
func (i *identities) run() {
	failed := false
	for sleep.For(i.ctx, max(leastIdentityPace, i.store.WriteInterval())) {
		i.mu.Lock()
		i.looks = len(i.files) > 0
		over := !i.looks
		i.mu.Unlock()
		if over {
			return
		}
		err := i.look(i.ctx)
		if err != nil && !failed && i.ctx.Err() == nil {
			i.log.Warn("the authorities of actors are not known anew", "error", err)
		}
		failed = err != nil
	}
}

// look takes in which authorities there are.
func (i *identities) look(ctx context.Context) error {
	trusted, generation, err := keys.ReadAuthorities(ctx, i.store)
	if err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if generation == i.generation {
		return nil
	}
	i.trusted, i.generation = trusted, generation
	for path := range i.files {
		err = errors.Join(err, i.writeLocked(path))
	}
	return err
}

// writeLocked puts a file in the place of an older one, so that a task which reads it
// meanwhile sees one of them.
func (i *identities) writeLocked(path string) error {
	f := i.files[path]
	text := identity.File(f.key, f.certificate, keys.Trusted(i.trusted))
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

// prepareIdentity makes the file by which the task's actors and those that they
// call know each other. Without a certificate, of a leader of a former version,
// there is none, and only programs of this machine reach its actors.
func (t *task) prepareIdentity(ctx context.Context) error {
	// What an agent left that died before it started its task.
	if err := removeAll(filepath.Join(t.agent.dir.file(tasksDir), "*", identityDir)); err != nil {
		return fmt.Errorf("prepare the actors' identity: %w", err)
	}
	certificate := t.certificate(t.run)
	if certificate == nil {
		return nil
	}
	err := t.agent.host.identities.keep(ctx, t.dir.file(identityFile), &identityFiles{t.agent.keys.Identity, certificate})
	if err != nil {
		return fmt.Errorf("prepare the actors' identity: %w", err)
	}
	return nil
}

// certificate is what this host has been given for an attempt, nil without.
func (t *task) certificate(run *state.Run) []byte {
	for _, c := range run.Certificates {
		if c.Host == t.agent.Host {
			return c.DER
		}
	}
	return nil
}

// recertify takes a certificate that was issued anew while the task runs, and has the
// file of a task that was taken over kept.
func (t *task) recertify(run *state.Run) {
	certificate := t.certificate(run)
	path := t.identity()
	if certificate == nil || path == "" {
		return
	}
	i := t.agent.host.identities
	i.mu.Lock()
	f := i.files[path]
	i.mu.Unlock()
	if f != nil && bytes.Equal(f.certificate, certificate) {
		return
	}
	go func() { // it may wait for the store
		if err := i.keep(t.agent.work, path, &identityFiles{t.agent.keys.Identity, certificate}); err != nil {
			t.agent.Log.Warn("the actors' identity is not renewed", "error", err)
		}
		if t.identityGone.Load() {
			t.removeIdentity()
		}
	}()
}

// identity is the file that prepareIdentity made, "" without.
func (t *task) identity() string {
	file := t.dir.file(identityFile)
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

func (t *task) removeIdentity() {
	t.identityGone.Store(true)
	t.agent.host.identities.drop(t.dir.file(identityFile))
	if err := os.RemoveAll(t.dir.file(identityDir)); err != nil {
		t.agent.Log.Error("the actors' identity not removed", "error", err)
	}
}
