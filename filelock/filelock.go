// Package filelock locks files with flock(2): a lock belongs to the open file, so a
// child that inherits the file holds it too, and it lapses with the last of them. That
// is why no library serves here: those that there are keep the open file to themselves.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld reports that another open file holds the lock.
var ErrHeld = errors.New("lock is held")

// Take locks the file at path, which it makes where there is none, or returns ErrHeld.
// Closing the file releases the lock.
func Take(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := lock(f, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Wait is Take that tries again, as often as every says, until ctx ends.
func Wait(ctx context.Context, path string, every time.Duration) (*os.File, error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		f, err := Take(path)
		if !errors.Is(err, ErrHeld) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// TryOpen locks a file that is open, or returns ErrHeld.
func TryOpen(f *os.File) error { return lock(f, unix.LOCK_EX|unix.LOCK_NB) }

// WaitOpen locks a file that is open, however long that takes. Nothing interrupts it.
func WaitOpen(f *os.File) error { return lock(f, unix.LOCK_EX) }

// Release releases the lock of an open file for all processes that share it.
func Release(f *os.File) error { return lock(f, unix.LOCK_UN) }

// IsHeld reports whether the lock of the file at path is held; that of a file which is
// not there is not. It asks with a shared lock, for an instant, so that two that ask at
// once do not take each other for holders.
func IsHeld(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open lock: %w", err)
	}
	held, err := IsHeldOpen(f)
	return held, errors.Join(err, f.Close())
}

// IsHeldOpen is IsHeld for an open file, which then keeps a shared lock until it is closed.
func IsHeldOpen(f *os.File) (bool, error) {
	err := lock(f, unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, ErrHeld) {
		return true, nil
	}
	return false, err
}

func lock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrHeld
		default:
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}
