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

	"github.com/fray-ml/fray/filelock"
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

// tryLock takes the lock at path, or returns filelock.ErrHeld. Closing the file lets go of it.
func tryLock(path string) (*os.File, error) {
	f, err := filelock.Take(path)
	if err != nil {
		return nil, err
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
		if !errors.Is(err, filelock.ErrHeld) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-tick.C:
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
