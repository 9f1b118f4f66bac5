package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// What is kept of the state: a few steps back, in bounded space.
const (
	maxVersions     = 20       // besides the live one
	maxVersionBytes = 64 << 20 // of all these together, but for the newest
)

var _ Versioned = (*Dir)(nil)

// history is a tree with what its state was before.
type history struct{ tree }

// keepsVersions is true of the state alone: the mailbox changes too often, and
// logs and bundles never do.
func keepsVersions(key string) bool { return key == StateKey }

// Versions returns the versions of the state that are kept, newest first. Old
// ones of other objects are not kept, nor any where the file system knows no
// hard links.
func (d *Dir) Versions(ctx context.Context, key string) ([]Attrs, error) {
	found, err := d.versions(ctx, key)
	if err != nil {
		return found, fmt.Errorf("list versions of %s: %w", key, err)
	}
	return found, nil
}

func (d history) versions(ctx context.Context, key string) ([]Attrs, error) {
	// The live one first: when it is replaced meanwhile it is among the others.
	f, info, err := d.open(ctx, key)
	var found []Attrs
	switch {
	case err == nil:
		f.Close()
		found = append(found, attrsOf(key, info))
	case !errors.Is(err, ErrNotFound):
		return nil, err
	}
	if !keepsVersions(key) {
		return found, cmp.Or(err, fmt.Errorf("%w of it: a directory keeps those of %s only", ErrNoVersions, StateKey))
	}
	old, err := d.oldVersions(key)
	if err != nil {
		return nil, err
	}
	for _, v := range old {
		// A writer that died before its rename has linked the live one.
		if len(found) == 0 || v.Generation != found[0].Generation {
			found = append(found, v)
		}
	}
	if len(found) == 0 {
		return nil, ErrNotFound
	}
	slices.SortStableFunc(found, newestFirst)
	return found, nil
}

func newestFirst(a, b Attrs) int { return cmp.Compare(b.Generation, a.Generation) }

// GetVersion returns one version whole.
func (d *Dir) GetVersion(ctx context.Context, key string, gen Generation) (Object, error) {
	object, err := d.getVersion(ctx, key, gen)
	if err != nil {
		return Object{}, fmt.Errorf("get generation %d of %s: %w", gen, key, err)
	}
	return object, nil
}

func (d history) getVersion(ctx context.Context, key string, gen Generation) (Object, error) {
	f, info, err := d.openVersion(ctx, key, gen)
	if err != nil {
		return Object{}, err
	}
	defer f.Close()
	data, err := readWhole(f, info)
	attrs := attrsOf(key, info)
	attrs.Generation = gen
	return Object{Attrs: attrs, Data: data}, err
}

func (d history) openVersion(ctx context.Context, key string, gen Generation) (*os.File, fs.FileInfo, error) {
	f, info, err := d.open(ctx, key)
	switch {
	case err == nil && generationOf(info) == gen:
		return f, info, nil
	case err == nil:
		f.Close()
	case !errors.Is(err, ErrNotFound):
		return nil, nil, err
	}
	if gen <= Absent {
		return nil, nil, ErrNotFound
	}
	// The live one gets its place among the others before it is replaced.
	if f, err = os.Open(d.versionPath(key, gen)); err != nil {
		return nil, nil, d.readError(key, err)
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, nil, fileError("stat", f.Name(), err)
	}
	return f, info, nil
}

// versionPath is where an old version is: one inode with what was the live
// file, in a folder for each key, named after its generation.
func (d history) versionPath(key string, gen Generation) string {
	return filepath.Join(d.versionsOf(key), strconv.FormatInt(int64(gen), 10))
}

func (d history) versionsOf(key string) string {
	return filepath.Join(d.root, versionFolder, filepath.FromSlash(key))
}

// oldVersions are the files in a key's folder, newest first.
func (d history) oldVersions(key string) ([]Attrs, error) {
	entries, err := readFolder(d.versionsOf(key))
	if err != nil {
		return nil, err
	}
	var found []Attrs
	for _, e := range entries {
		gen, err := strconv.ParseInt(e.Name(), 10, 64)
		if err != nil || gen <= 0 {
			continue // not ours
		}
		info, err := e.Info()
		switch {
		case err == nil && info.Mode().IsRegular():
			attrs := attrsOf(key, info)
			attrs.Generation = Generation(gen) // also if a copy of the store lost its times
			found = append(found, attrs)
		case err != nil && !notThere(err):
			return nil, fileError("stat", filepath.Join(d.versionsOf(key), e.Name()), err)
		}
	}
	slices.SortFunc(found, newestFirst)
	return found, nil
}

// keep gives the live version, which is about to be replaced or deleted, a
// second name. The caller holds the key's lock.
//
// It may fail, and that is not reported: a write of the state records what exists and
// costs money, and must not fail for the want of an old version.
func (d history) keep(key string, present Generation) {
	if !keepsVersions(key) || present == Absent {
		return
	}
	err := os.Link(d.path(key), d.versionPath(key, present))
	if errors.Is(err, fs.ErrNotExist) && os.MkdirAll(d.versionsOf(key), folderMode) == nil {
		err = os.Link(d.path(key), d.versionPath(key, present))
	}
	if err != nil {
		return
	}
	// A holder that was suspended before the link may have linked a later one.
	if linked, err := os.Lstat(d.versionPath(key, present)); err == nil && generationOf(linked) != present {
		_ = os.Remove(d.versionPath(key, present))
	}
}

// prune removes what is kept beyond the bounds. The caller holds the key's lock.
func (d history) prune(key string) {
	if !keepsVersions(key) {
		return
	}
	old, err := d.oldVersions(key)
	if err != nil {
		return // the next write tries again
	}
	var sum int64
	for i, v := range old {
		sum += v.Size
		if i > 0 && (i >= maxVersions || sum > maxVersionBytes) {
			_ = os.Remove(d.versionPath(key, v.Generation))
		}
	}
}

// makeRoom removes the oldest version when a write failed for want of space,
// and reports whether that may help. The caller holds the key's lock.
func (d history) makeRoom(key string, failure error) bool {
	full := errors.Is(failure, syscall.ENOSPC) || errors.Is(failure, syscall.EDQUOT)
	if !full || !keepsVersions(key) {
		return false
	}
	present, err := d.generation(key)
	if err != nil {
		return false
	}
	old, err := d.oldVersions(key)
	if err != nil {
		return false
	}
	// One that is the live one frees nothing.
	old = slices.DeleteFunc(old, func(v Attrs) bool { return v.Generation == present })
	return len(old) > 0 && os.Remove(d.versionPath(key, old[len(old)-1].Generation)) == nil
}
