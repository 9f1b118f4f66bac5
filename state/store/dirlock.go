package store

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// shardCount is the number of lock files that the keys share.
	shardCount = 64
	// lockPatience bounds the wait for a lock, which is held for a few syncs
	// at most, unless its holder is stopped.
	lockPatience = 30 * time.Second
	holderPrefix = "holder-"
)

// shardLock excludes all other writers of a shard's keys, in this process and
// in others. Its file's modification time is a floor: at least the generation
// of every deleted object, so that one made again gets a higher one although
// nothing is left of its predecessor and the clock may have been set back.
type shardLock struct {
	file  *os.File
	shard chan struct{}
}

func (d *Dir) lock(ctx context.Context, key string) (*shardLock, error) {
	h := fnv.New32a()
	h.Write([]byte(key))
	n := h.Sum32() % shardCount
	ctx, cancel := context.WithTimeoutCause(ctx, lockPatience,
		fmt.Errorf("another process has kept %s locked for %v; if one is stopped (Ctrl-Z), continue or end it",
			d.path(key), lockPatience))
	defer cancel()
	select {
	case d.shards[n] <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	f, err := openLocked(ctx, filepath.Join(d.locks(), fmt.Sprintf("%02d", n)))
	if err != nil {
		<-d.shards[n]
		return nil, err
	}
	return &shardLock{file: f, shard: d.shards[n]}, nil
}

func (l *shardLock) unlock() {
	_ = l.file.Close() // which frees the lock
	<-l.shard
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
		at := time.Unix(0, int64(gen))
		err = os.Chtimes(l.file.Name(), at, at)
	}
	if err != nil {
		return fileError("set time of", l.file.Name(), err)
	}
	return nil
}

// openLocked opens a lock file and waits for its lock.
func openLocked(ctx context.Context, path string) (*os.File, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, fileError("lock", path, err)
	}
	err = flock(f, unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		f.Close()
		return nil, fileError("lock", path, err)
	}
	// The wait cannot be interrupted, so it gets a goroutine of its own that
	// outlives a caller who gives up, and then lets go at once.
	locked := make(chan struct{})
	go func() {
		err = flock(f, unix.LOCK_EX)
		close(locked)
	}()
	select {
	case <-locked:
		if err != nil {
			f.Close()
			return nil, fileError("lock", path, err)
		}
		return f, nil
	case <-ctx.Done():
		go func() {
			<-locked
			f.Close()
		}()
		return nil, context.Cause(ctx)
	}
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (d *Dir) holderPath(holder string) string {
	return filepath.Join(d.locks(), holderPrefix+holder)
}

// holderOf is the holder that a file in lockFolder speaks for.
func holderOf(file string) (string, bool) {
	holder, ok := strings.CutPrefix(file, holderPrefix)
	_, err := hex.DecodeString(holder)
	return holder, ok && err == nil && holder != ""
}

// Attest locks a file for as long as the holder's process lives: the kernel
// frees the lock when it dies, however it dies.
func (d *Dir) Attest(holder string) (end func(), err error) {
	if _, ok := holderOf(holderPrefix + holder); !ok {
		return nil, fmt.Errorf("attest holder %q: want hex digits", holder)
	}
	if err := d.prepare(); err != nil {
		return nil, fmt.Errorf("attest holder: %w", err)
	}
	f, err := os.OpenFile(d.holderPath(holder), os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return nil, fmt.Errorf("attest holder: %w", fileError("lock", d.holderPath(holder), err))
	}
	if err := flock(f, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("attest holder: %w", fileError("lock", f.Name(), err))
	}
	return func() { _ = f.Close() }, nil
}

// Ended reports whether nobody holds the lock of a holder who once attested.
// A holder without a file never attested here, or is long gone: not proven.
func (d *Dir) Ended(holder string) bool {
	if _, ok := holderOf(holderPrefix + holder); !ok {
		return false
	}
	f, err := os.OpenFile(d.holderPath(holder), os.O_RDWR, fileMode)
	if err != nil {
		return false
	}
	defer f.Close()
	return flock(f, unix.LOCK_SH|unix.LOCK_NB) == nil
}

// Forget removes what an ended holder left.
func (d *Dir) Forget(holder string) {
	if d.Ended(holder) {
		_ = os.Remove(d.holderPath(holder))
	}
}
