package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Get returns an object whole.
func (d *Dir) Get(ctx context.Context, key string) (Object, error) {
	f, info, err := d.open(ctx, key)
	if err != nil {
		return Object{}, fmt.Errorf("get %s: %w", key, err)
	}
	defer f.Close()
	return whole(key, f, info)
}

// GetUnless returns an object whole, or [ErrUnchanged] if its generation is known.
func (d *Dir) GetUnless(ctx context.Context, key string, known Generation) (Object, error) {
	f, info, err := d.open(ctx, key)
	if err != nil {
		return Object{}, fmt.Errorf("get %s: %w", key, err)
	}
	defer f.Close()
	if attrsOf(key, info).Generation == known {
		return Object{}, fmt.Errorf("get %s: %w", key, ErrUnchanged)
	}
	return whole(key, f, info)
}

func whole(key string, f *os.File, info fs.FileInfo) (Object, error) {
	data, err := readWhole(f, info)
	if err != nil {
		return Object{}, fmt.Errorf("get %s: %w", key, err)
	}
	return Object{Attrs: attrsOf(key, info), Data: data}, nil
}

// readWhole reads a file that is never written to once it has its name: what
// was opened is one version, and info is of that version.
func readWhole(f *os.File, info fs.FileInfo) ([]byte, error) {
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, fileError("read", f.Name(), err)
	}
	return data, nil
}

// Open streams a blob.
func (d *Dir) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	f, _, err := d.open(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", key, err)
	}
	return f, nil
}

func (d tree) open(ctx context.Context, key string) (*os.File, fs.FileInfo, error) {
	if err := cmp.Or(CheckKey(key), alive(ctx)); err != nil {
		return nil, nil, err
	}
	f, err := os.Open(d.path(key))
	if err != nil {
		return nil, nil, d.readError(key, err)
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = fs.ErrNotExist // keys below it exist, it is none itself
	}
	if err != nil {
		f.Close()
		return nil, nil, d.readError(key, err)
	}
	return f, info, nil
}

// readError distinguishes an object that is not there from a store that is not.
func (d tree) readError(key string, err error) error {
	if !notThere(err) {
		return fileError("open", d.path(key), err)
	}
	if _, err := os.Stat(d.root); err != nil {
		return fileError("open store", d.root, err)
	}
	return ErrNotFound
}

func notThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func attrsOf(key string, info fs.FileInfo) Attrs {
	return Attrs{Key: key, Generation: generationOf(info), Size: info.Size(), Updated: info.ModTime()}
}

// generationOf is at least 1, also for a file that came out of an archive
// without times.
func generationOf(info fs.FileInfo) Generation {
	return max(1, Generation(info.ModTime().UnixNano()))
}

// List returns the attributes of every object whose key starts with one of
// prefixes, by key. It walks the directories that the prefixes name, reads no
// content, and does not follow symbolic links.
func (d *Dir) List(ctx context.Context, prefixes ...string) ([]Attrs, error) {
	found, err := d.list(ctx, prefixes)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", strings.Join(prefixes, ", "), err)
	}
	return found, nil
}

func (d tree) list(ctx context.Context, prefixes []string) ([]Attrs, error) {
	prefixes, err := DisjointPrefixes(prefixes)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(d.root); err != nil {
		return nil, fileError("open store", d.root, err)
	}
	var found []Attrs
	for _, prefix := range prefixes {
		folder, _ := path.Split(prefix)
		below, err := d.walk(ctx, strings.TrimSuffix(folder, "/"), prefix)
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
	}
	slices.SortFunc(found, func(a, b Attrs) int { return cmp.Compare(a.Key, b.Key) })
	return found, nil
}

func (d tree) walk(ctx context.Context, folder, prefix string) ([]Attrs, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	entries, err := readFolder(d.path(folder))
	if err != nil {
		return nil, err
	}
	var found []Attrs
	for _, e := range entries {
		key := path.Join(folder, e.Name())
		if e.Name()[0] == '.' || !strings.HasPrefix(key, prefix) {
			continue
		}
		if e.IsDir() {
			below, err := d.walk(ctx, key, prefix)
			if err != nil {
				return nil, err
			}
			found = append(found, below...)
			continue
		}
		info, err := e.Info()
		switch {
		case err == nil && info.Mode().IsRegular():
			found = append(found, attrsOf(key, info))
		case err != nil && !notThere(err):
			return nil, fileError("stat", d.path(key), err)
		}
	}
	return found, nil
}

const (
	// quietTime is how long ago a directory must have changed for its time to
	// show any later change: kernels stamp directories by a coarse clock.
	quietTime   = 20 * time.Millisecond
	folderReads = 3 // of one directory, at most
)

// readFolder returns a directory's entries, none for one that is not there.
//
// On some file systems (btrfs, older tmpfs) replacing a file moves its entry,
// and a scan under way can miss an object that was there all the time. So a
// directory that changed while it was read is read again, and the results are
// united: an object would have to be missed each time.
func readFolder(path string) ([]fs.DirEntry, error) {
	var united map[string]fs.DirEntry
	for range folderReads {
		before, statErr := os.Stat(path)
		asked := time.Now()
		entries, err := os.ReadDir(path)
		if notThere(err) || notThere(statErr) {
			break
		}
		if err := cmp.Or(err, statErr); err != nil {
			return nil, fileError("read directory", path, err)
		}
		after, err := os.Stat(path)
		quiet := err == nil && after.ModTime().Equal(before.ModTime()) && asked.Sub(before.ModTime()) > quietTime
		if quiet && united == nil {
			return entries, nil
		}
		if united == nil {
			united = make(map[string]fs.DirEntry, len(entries))
		}
		for _, e := range entries {
			united[e.Name()] = e
		}
		if quiet {
			break
		}
	}
	entries := make([]fs.DirEntry, 0, len(united))
	for _, e := range united {
		entries = append(entries, e)
	}
	return entries, nil
}
