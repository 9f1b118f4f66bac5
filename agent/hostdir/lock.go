package hostdir

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

// Holder is what a lock file records of the process that holds it. It is true
// only while the lock is held: who takes the lock empties the file first.
type Holder struct {
	PID int `json:"pid"`
	// Grace is how long ending the holder may take, in seconds.
	Grace float64 `json:"grace,omitempty"`
	// Ports are those that the holder's task was given.
	Ports []int `json:"ports,omitempty"`
	// End is set where the holder is an agent which only ends what is left.
	End bool `json:"end,omitempty"`
	// Dir is the host's directory that the holder was started for. After a
	// move the holder lives on for a moment, and serves a directory that is gone.
	Dir string `json:"dir,omitempty"`
}

// LockFD is where a child finds a lock that its parent took for it. The lock
// is held without a gap from before the fork until the child is gone.
const LockFD = 3

// LockFDEnv is the number of the descriptor that holds its lock
// already, taken by its parent or by itself before an exec.
const LockFDEnv = "FRAY_AGENT_LOCK_FD"

// TryLock takes the lock at path, or returns filelock.ErrHeld. Closing the file lets go of it.
func TryLock(path string) (*os.File, error) {
	f, err := filelock.Take(path)
	if err != nil {
		return nil, err
	}
	if err := writeBlank(f, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("empty lock: %w", err), f.Close())
	}
	return f, nil
}

// WaitLock takes the lock at path, however long that takes.
func WaitLock(ctx context.Context, path string) (*os.File, error) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		f, err := TryLock(path)
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

// ServesElsewhere reports whether the holder of a lock serves another directory than
// that in which the lock lies: the directory was renamed since.
func (h Holder) ServesElsewhere(dir *Dir) bool {
	if h.Dir == "" || h.Dir == dir.Path {
		return false
	}
	there, err := Find(h.Dir)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	return !os.SameFile(there.info, dir.info)
}

// WriteHolder records who holds a lock, in its file.
func WriteHolder(f *os.File, h Holder) error {
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

// ReserveHolder allocates the space for the holder of a lock.
func ReserveHolder(f *os.File) error {
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

// ReadHolder returns who holds the lock at path; only for a lock that is held.
func ReadHolder(path string) (Holder, error) {
	f, err := os.Open(path)
	if err != nil {
		return Holder{}, fmt.Errorf("read lock holder: %w", err)
	}
	data, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return Holder{}, fmt.Errorf("read lock holder: %w", err)
	}
	var h Holder
	if err := json.Unmarshal(data, &h); err != nil {
		return Holder{}, fmt.Errorf("read lock holder: %w", err)
	}
	return h, nil
}
