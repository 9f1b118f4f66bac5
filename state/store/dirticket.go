package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ticket is the file by which a holder of a shard's lock may change one of its
// keys: the ticket becomes the object. Its name contains the shard and the process.
//
// A holder that is suspended (Ctrl-Z, a debugger, SIGSTOP) does not keep the
// others waiting until it goes on: they put another file in the place of its
// lock's, which is not held. That this is exact does not rest on who is taken
// for suspended, nor on the locks: a writer that has a lock makes a ticket, then removes
// all other tickets of the shard, and only then reads what is to be
// changed. So of two that believe to have the lock, the one that made its ticket
// first loses it before the other reads, or has made its change by then. It finds
// out when it goes on, and begins again.
type ticket struct {
	*os.File
	path   string
	target string
	used   bool // is no more, or has become the target
}

// errTicketLost has the operation begin again, all but an upload, whose content
// was read.
var errTicketLost = errors.New("this process was suspended, and another has gone on in its place; try again")

// stage makes a file that is not yet a ticket.
func (d tree) stage(key string) (*ticket, error) { return d.temporary(key, "*") }

func (d tree) temporary(key, pattern string) (*ticket, error) {
	f, err := os.CreateTemp(d.tmp(), pattern)
	if err != nil {
		return nil, fileError("write", d.path(key), err)
	}
	return &ticket{File: f, path: f.Name(), target: d.path(key)}, nil
}

// discard frees what a file that did not get its name occupies.
func (t *ticket) discard() {
	_ = t.Close()
	if !t.used {
		_ = os.Remove(t.path)
	}
}

// fail reports what could not be done with a ticket, errTicketLost where it is gone.
func (t *ticket) fail(verb string, err error) error {
	if _, gone := os.Lstat(t.path); errors.Is(gone, fs.ErrNotExist) {
		return errTicketLost
	}
	return fileError(verb, t.target, err)
}

// ticketPrefix is how the names of a shard's tickets begin.
func (l *shardLock) ticketPrefix() string { return fmt.Sprintf("%02d-", l.shard) }

// ownPrefix is how the names of this process's begin.
func (l *shardLock) ownPrefix() string { return fmt.Sprintf("%s%d-", l.ticketPrefix(), os.Getpid()) }

// ticket makes the shard's only ticket, with which the holder may change a key.
func (l *shardLock) ticket(key string) (*ticket, error) {
	t, err := l.dir.temporary(key, l.ownPrefix()+"*")
	if err != nil {
		return nil, err
	}
	if err := l.voidOthers(t.path); err != nil {
		t.discard()
		return nil, err
	}
	return t, nil
}

// claim makes a staged file the shard's only ticket.
func (l *shardLock) claim(t *ticket) error {
	path := filepath.Join(l.dir.tmp(), l.ownPrefix()+filepath.Base(t.path))
	if err := os.Rename(t.path, path); err != nil {
		return fileError("write", t.target, err)
	}
	t.path = path
	return l.voidOthers(path)
}

// voidOthers removes all tickets of the shard but one.
func (l *shardLock) voidOthers(own string) error {
	names, err := l.tickets()
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(l.dir.tmp(), name)
		if path == own {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fileError("delete", path, err)
		}
	}
	return nil
}

// tickets are the names of the shard's.
func (l *shardLock) tickets() ([]string, error) {
	folder, err := os.Open(l.dir.tmp())
	if err != nil {
		return nil, fileError("read directory", l.dir.tmp(), err)
	}
	defer folder.Close()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil, fileError("read directory", l.dir.tmp(), err)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, l.ticketPrefix()) }), nil
}

// holders are the processes that have tickets of the shard.
func (l *shardLock) holders() ([]int, error) {
	names, err := l.tickets()
	var pids []int
	for _, name := range names {
		pid, _, _ := strings.Cut(strings.TrimPrefix(name, l.ticketPrefix()), "-")
		if n, err := strconv.Atoi(pid); err == nil {
			pids = append(pids, n)
		}
	}
	return pids, err
}

// takeFrom puts a file that is not locked, with the same floor, in the place
// of one whose lock's holder is suspended. Where that fails, the others wait on.
func (l *shardLock) takeFrom(f *os.File) {
	fresh, err := l.dir.stage(lockFolder)
	if err != nil {
		return
	}
	defer fresh.discard()
	info, err := f.Stat()
	if err == nil {
		err = os.Chtimes(fresh.path, info.ModTime(), info.ModTime())
	}
	if err == nil && l.names(f) {
		fresh.used = os.Rename(fresh.path, l.path()) == nil
	}
}
