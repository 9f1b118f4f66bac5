package store

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/filelock"
)

const (
	// shardCount is the number of lock files that the keys share.
	shardCount = 64
	// lockPatience bounds the wait for a lock, which is held for a few syncs
	// at most, unless its holder is stopped.
	lockPatience = 30 * time.Second
	// holderPoll is how often a writer that waits for a lock checks its holder.
	holderPoll = 100 * time.Millisecond
	// checks is how often in a row no ticket must be found beside a lock that is
	// held, before its holder is taken for suspended while it has none.
	checks = 10
)

// shardLock excludes all other writers of a shard's keys, in this process and
// in others, unless this one is suspended while it has it: see [ticket]. Its
// file's modification time is a floor: at least the generation of every deleted
// object, so that one made again gets a higher one although nothing is left of
// its predecessor and the clock may have been set back.
type shardLock struct {
	dir   tree
	turn  chan struct{} // of the writers of this process
	shard uint32
	file  *os.File
}

func (d *writer) lock(ctx context.Context, key string) (*shardLock, error) {
	h := fnv.New32a()
	h.Write([]byte(key))
	shard := h.Sum32() % shardCount
	l := &shardLock{dir: d.tree, shard: shard, turn: d.shards[shard]}
	ctx, cancel := context.WithTimeoutCause(ctx, lockPatience,
		fmt.Errorf("another process has kept %s locked for %v; if it hangs, end it", d.path(key), lockPatience))
	defer cancel()
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for l.file == nil {
		if err := l.open(ctx); err != nil {
			<-l.turn
			return nil, err
		}
	}
	return l, nil
}

func (l *shardLock) path() string {
	return filepath.Join(l.dir.locks(), fmt.Sprintf("%02d", l.shard))
}

func (l *shardLock) unlock() {
	_ = l.file.Close() // which frees the lock
	<-l.turn
}

// next is the generation of a write over present.
func (l *shardLock) next(present Generation) Generation {
	floor := Absent
	if info, err := l.file.Stat(); err == nil {
		floor = generationOf(info)
	}
	return max(Generation(time.Now().UnixNano()), present+1, floor+1)
}

// remember raises the floor to the generation of an object about to be deleted.
func (l *shardLock) remember(gen Generation) error {
	info, err := l.file.Stat()
	if err == nil && generationOf(info) < gen {
		// By its descriptor: its name may be another's by now. In microseconds, rounded up.
		at := unix.NsecToTimeval(int64(gen) + int64(time.Microsecond) - 1)
		err = unix.Futimes(int(l.file.Fd()), []unix.Timeval{at, at})
	}
	if err != nil {
		return fileError("set time of", l.file.Name(), err)
	}
	return nil
}

// open opens the lock's file and waits for its lock. The file remains nil where
// it was replaced meanwhile.
func (l *shardLock) open(ctx context.Context) error {
	if err := alive(ctx); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path(), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return fileError("lock", l.path(), err)
	}
	err = filelock.TryOpen(f)
	if errors.Is(err, filelock.ErrHeld) {
		err = l.wait(ctx, f)
	}
	switch {
	case errors.Is(err, errGivenUp):
		return alive(ctx)
	case err != nil:
		f.Close()
		return fileError("lock", l.path(), err)
	case l.names(f):
		l.file = f
	default:
		f.Close()
	}
	return nil
}

// names reports whether a file is the one whose lock counts.
func (l *shardLock) names(f *os.File) bool {
	mine, err := f.Stat()
	named, nameErr := os.Stat(l.path())
	return err == nil && nameErr == nil && os.SameFile(mine, named)
}

// errGivenUp reports that a lock was not waited for any longer, and that its file
// will be closed.
var errGivenUp = errors.New("given up")

// wait waits for the lock of a file, as long as that is the one that counts.
func (l *shardLock) wait(ctx context.Context, f *os.File) error {
	// The wait cannot be interrupted, so it gets a goroutine of its own that
	// outlives a caller who gives up, and then lets go at once.
	var err error
	locked := make(chan struct{})
	go func() {
		err = filelock.WaitOpen(f)
		close(locked)
	}()
	tick := time.NewTicker(holderPoll)
	defer tick.Stop()
	for missing := 0; alive(ctx) == nil && l.names(f); {
		select {
		case <-locked:
			return err
		case <-ctx.Done():
		case <-tick.C:
			holders, err := l.holders()
			missing++
			switch {
			case err != nil || slices.ContainsFunc(holders, isRunning):
				missing = 0
			case len(holders) > 0 || missing == checks:
				l.takeFrom(f)
			}
		}
	}
	go func() {
		<-locked
		f.Close()
	}()
	return errGivenUp
}
