package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/filelock"
)

const (
	dirPrefix  = "journal-" // and a generation of 16 digits
	unfinished = ".new"
)

// dir is a journal in a directory: one file, to which chunks are appended. A snapshot begins the next file.
type dir struct {
	path       string
	sync       bool
	lock       *os.File
	file       *os.File
	generation int
}

// DirConfig is of a journal in a directory.
type DirConfig struct {
	Path string
	// NoSync leaves out fsync: records outlive the process, but not a crash of the machine.
	NoSync bool
	// Wait is how long to wait for a process that has the journal open: a former one that is ending, or whose host is.
	Wait time.Duration
	// Held is called once if one has; nil: nothing is.
	Held func()
}

// take takes the lock of a directory.
func (c DirConfig) take(ctx context.Context) (*os.File, error) {
	path := filepath.Join(c.Path, "lock")
	lock, err := filelock.Take(path)
	if !errors.Is(err, filelock.ErrHeld) {
		return lock, err
	}
	if c.Held != nil {
		c.Held()
	}
	ctx, cancel := context.WithTimeout(ctx, c.Wait)
	defer cancel()
	if lock, waited := filelock.Wait(ctx, path, heldPause); waited == nil {
		return lock, nil
	}
	return nil, err
}

const heldPause = 50 * time.Millisecond

// OpenDir opens the journal in a directory, which it makes if there is none, and returns its records. It fails with
// filelock.ErrHeld if another process has it open.
func OpenDir(ctx context.Context, cfg DirConfig) (*Journal, [][]byte, error) {
	if err := os.MkdirAll(cfg.Path, 0o700); err != nil {
		return nil, nil, fmt.Errorf("open the journal: %w", err)
	}
	lock, err := cfg.take(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("open the journal in %s: %w", cfg.Path, err)
	}
	d := &dir{path: cfg.Path, sync: !cfg.NoSync, lock: lock}
	records, size, err := d.open()
	if err != nil {
		return nil, nil, fmt.Errorf("open the journal in %s: %w", cfg.Path, errors.Join(err, lock.Close()))
	}
	return start(ctx, d, size), records, nil
}

// open reads the newest generation and removes the others, which a snapshot has replaced.
func (d *dir) open() ([][]byte, int64, error) {
	names, err := os.ReadDir(d.path)
	if err != nil {
		return nil, 0, err
	}
	for _, entry := range names {
		var generation int
		if _, err := fmt.Sscanf(entry.Name(), dirPrefix+"%d", &generation); err == nil && !strings.HasSuffix(entry.Name(), unfinished) {
			d.generation = max(d.generation, generation)
		}
	}
	for _, entry := range names {
		if strings.HasPrefix(entry.Name(), dirPrefix) && entry.Name() != d.name(d.generation) {
			if err := os.Remove(filepath.Join(d.path, entry.Name())); err != nil {
				return nil, 0, err
			}
		}
	}
	path := filepath.Join(d.path, d.name(d.generation))
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	records, length, err := decodeAll(data)
	if err != nil {
		return nil, 0, fmt.Errorf("%s, byte %d: %w: restore the file, or remove it to begin anew", path, length, err)
	}
	d.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, 0, err
	}
	if err := d.file.Truncate(int64(length)); err != nil {
		return nil, 0, err
	}
	if _, err := d.file.Seek(int64(length), 0); err != nil {
		return nil, 0, err
	}
	return records, int64(length), errors.Join(d.file.Sync(), durable.SyncDir(d.path))
}

func (d *dir) name(generation int) string { return fmt.Sprintf("%s%016d", dirPrefix, generation) }

func (d *dir) write(_ context.Context, chunk []byte) error {
	if _, err := d.file.Write(chunk); err != nil {
		return err
	}
	if !d.sync {
		return nil
	}
	return d.file.Sync()
}

func (d *dir) replace(_ context.Context, chunks iter.Seq[[]byte]) error {
	path := filepath.Join(d.path, d.name(d.generation+1))
	file, err := os.OpenFile(path+unfinished, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(file, 1<<20)
	for chunk := range chunks {
		if _, err := buffered.Write(chunk); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	if err := errors.Join(buffered.Flush(), file.Sync()); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := os.Rename(path+unfinished, path); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := durable.SyncDir(d.path); err != nil {
		return errors.Join(err, file.Close())
	}
	former, formerPath := d.file, filepath.Join(d.path, d.name(d.generation))
	d.file, d.generation = file, d.generation+1
	return errors.Join(former.Close(), os.Remove(formerPath))
}

func (d *dir) floor() int64 { return 0 }

func (d *dir) close() error { return errors.Join(d.file.Close(), d.lock.Close()) }
