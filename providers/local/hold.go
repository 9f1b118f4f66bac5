package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/filelock"
)

// hold is a lock that this process has for as long as it changes something. Its
// file states so, so that a process which was suspended in the middle (Ctrl-Z, a
// debugger, SIGSTOP) does not keep everybody else waiting until it goes on: the
// lock is taken from it.
type hold struct {
	file *os.File
	path string
}

// errTaken is what the one that was suspended finds when it goes on.
var errTaken = errors.New("this process was suspended, and another has gone on in its place; try again")

// take takes the lock at path, or returns filelock.ErrHeld.
func take(path string) (*hold, error) {
	f, err := filelock.Take(path)
	if err != nil {
		return nil, err
	}
	h := &hold{file: f, path: path}
	if !h.isNamed() {
		f.Close()
		return nil, filelock.ErrHeld // its holder removed it; there may be a new one
	}
	data, err := json.Marshal(holder{PID: os.Getpid(), Starter: true})
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr); err == nil {
		// In place: a full disk keeps no lock from being taken again.
		data = append(data, bytes.Repeat([]byte(" "), max(0, int(info.Size())-len(data)))...)
		_, err = f.WriteAt(data, 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("name the holder of a lock: %w", err), f.Close())
	}
	return h, nil
}

// isNamed reports whether the lock's file is still the one at its path.
func (h *hold) isNamed() bool {
	mine, err := h.file.Stat()
	named, nameErr := os.Stat(h.path)
	return err == nil && nameErr == nil && os.SameFile(mine, named)
}

// still returns an error where the lock was taken from this process.
func (h *hold) still() error {
	if !h.isNamed() {
		return errTaken
	}
	return nil
}

// release lets go. The file is emptied first: the next holder is not this
// process, not even before it has written its own name.
func (h *hold) release() {
	if info, err := h.file.Stat(); err == nil { // else it is out of date for an instant
		_, _ = h.file.WriteAt(bytes.Repeat([]byte(" "), int(info.Size())), 0)
	}
	h.file.Close()
}

// leftBehind reports whether a lock's holder is suspended in the middle of what
// it holds the lock for. Agents are never left behind: they are asked to end by
// their silence.
func (w holder) leftBehind() bool { return w.Starter && w.PID > 1 && isStopped(w.PID) }

// readHolder returns the content of a lock's file, nothing where that is not whole.
func readHolder(r io.Reader) holder {
	var who holder
	data, err := io.ReadAll(r)
	if err != nil || json.Unmarshal(data, &who) != nil {
		return holder{}
	}
	return who
}

// breakGuard is held while a lock is taken from its holder; no slice can have this name.
const breakGuard = "_break"

// takeFrom takes the lock at path, also from who was suspended while it had it,
// or returns filelock.ErrHeld.
func (p *Provider) takeFrom(path string) (*hold, error) {
	h, err := take(path)
	if !errors.Is(err, filelock.ErrHeld) {
		return h, err
	}
	if err := p.breakLock(path); err != nil {
		return nil, err
	}
	return take(path)
}

// breakLock takes a lock's file away from a holder that is left behind. One that
// has gone on meanwhile gets it back, unless another process has the lock by then.
func (p *Provider) breakLock(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open lock: %w", err)
	}
	defer f.Close()
	if !readHolder(f).leftBehind() {
		return nil
	}
	guard, err := filelock.Take(p.lockPath(breakGuard)) // else two would break each other's
	if errors.Is(err, filelock.ErrHeld) {
		return nil
	}
	if err != nil {
		return err
	}
	defer guard.Close()
	if !(&hold{file: f, path: path}).isNamed() {
		return nil
	}
	aside := filepath.Join(p.config.Root, "locks", breakGuard+".old")
	if err := os.Rename(path, aside); errors.Is(err, os.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("take lock from a suspended process: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("take lock from a suspended process: %w", err)
	}
	if held, err := filelock.IsHeldOpen(f); err == nil && held && !readHolder(f).leftBehind() {
		if err := os.Link(aside, path); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("give a lock back: %w", err)
		}
	}
	if err := os.Remove(aside); err != nil {
		return fmt.Errorf("take lock from a suspended process: %w", err)
	}
	return nil
}
