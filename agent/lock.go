package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// holder is what a lock file says about the process that holds it. It is true
// only while the lock is held: who takes the lock empties the file first.
type holder struct {
	PID int `json:"pid"`
	// Grace is how long ending the holder may take, in seconds.
	Grace float64 `json:"grace,omitempty"`
	// Ports are those that the holder's task was given.
	Ports []int `json:"ports,omitempty"`
	// End says that the holder is an agent which only ends what is left.
	End bool `json:"end,omitempty"`
	// Dir is the host's directory that the holder serves, as it was told. After a
	// move the holder lives on for a moment, and serves a directory that is gone.
	Dir string `json:"dir,omitempty"`
}

// lockFD is where a child finds a lock that its parent took for it. The lock
// is held without a gap from before the fork until the child is gone.
const lockFD = 3

// lockFDEnv tells an agent the number of the descriptor that holds its lock
// already, taken by its parent or by itself before an exec.
const lockFDEnv = "FRAY_AGENT_LOCK_FD"

// errHeld says that another process holds the lock.
var errHeld = errors.New("lock is held")

// tryLock takes the lock at path, or returns errHeld. Closing the file lets go of it.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := flock(f, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := writeBlank(f, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("empty lock: %w", err), f.Close())
	}
	return f, nil
}

// waitLock takes the lock at path, however long that takes.
func waitLock(ctx context.Context, path string) (*os.File, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		f, err := tryLock(path)
		if !errors.Is(err, errHeld) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// isHeld reports whether a process holds the lock at path. It never takes the
// lock exclusively, so that it disturbs no other reader.
func isHeld(path string) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open lock: %w", err)
	}
	err = flock(f, unix.LOCK_SH|unix.LOCK_NB)
	closeErr := f.Close()
	if errors.Is(err, errHeld) {
		return true, nil
	}
	return false, errors.Join(err, closeErr)
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

// servesElsewhere reports whether the holder of a lock serves another directory than
// that in which the lock lies: the directory was renamed since.
func (h holder) servesElsewhere(dir *hostDir) bool {
	if h.Dir == "" || h.Dir == dir.path {
		return false
	}
	there, err := findHostDir(h.Dir)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	return !os.SameFile(there.info, dir.info)
}

func writeHolder(f *os.File, h holder) error {
	data, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("write lock holder: %w", err)
	}
	if err := writeBlank(f, len(data)); err != nil {
		return fmt.Errorf("write lock holder: %w", err)
	}
	if _, err := f.WriteAt(data, 0); err != nil {
		return fmt.Errorf("write lock holder: %w", err)
	}
	return nil
}

// holderSize is what a lock file has room for at least, in bytes. It is
// overwritten in place, so that a full disk keeps no lock from being named.
const holderSize = 1024

// reserveHolder allocates the space for the holder of a lock.
func reserveHolder(f *os.File) error {
	err := writeBlank(f, holderSize)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("reserve lock holder: %w", err)
	}
	return nil
}

// writeBlank overwrites a lock file with spaces, at least so many.
func writeBlank(f *os.File, least int) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	size := max(info.Size(), int64(least))
	if size == 0 {
		return nil
	}
	_, err = f.WriteAt(bytes.Repeat([]byte(" "), int(size)), 0)
	return err
}

// readHolder returns who holds the lock at path; only for a lock that is held.
func readHolder(path string) (holder, error) {
	f, err := os.Open(path)
	if err != nil {
		return holder{}, fmt.Errorf("read lock holder: %w", err)
	}
	data, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return holder{}, fmt.Errorf("read lock holder: %w", err)
	}
	var h holder
	if err := json.Unmarshal(data, &h); err != nil {
		return holder{}, fmt.Errorf("read lock holder: %w", err)
	}
	return h, nil
}
