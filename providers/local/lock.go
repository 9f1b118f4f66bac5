package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// errHeld says that another process holds a lock.
var errHeld = errors.New("lock is held")

// lock takes the lock of a name, a slice's as a rule: the right to change it.
// The lock's file is removed by whoever removes the slice, so one that was
// waited for may be of the past.
func (p *Provider) lock(ctx context.Context, name string) (*hold, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		held, err := p.tryLock(name)
		if !errors.Is(err, errHeld) {
			return held, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock of %s: %w", name, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// tryLock takes the lock of a name, or returns errHeld.
func (p *Provider) tryLock(name string) (*hold, error) {
	path := p.lockPath(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return p.takeFrom(path)
}

func (p *Provider) lockPath(name string) string {
	return filepath.Join(p.config.Root, "locks", name+".lock")
}

// lockFile takes the lock at path, or returns errHeld. Closing the file lets go of it.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := flock(f, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// isHeld reports whether a process holds the lock at path, without taking it
// from anyone: it looks with a shared lock, for an instant.
func isHeld(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open lock: %w", err)
	}
	held, err := holds(f)
	f.Close()
	return held, err
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return errHeld
		default:
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}
