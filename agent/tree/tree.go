package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fray-ml/fray/agent/process"
	"github.com/fray-ml/fray/agent/record"
)

// A tree is a directory that is made once and trusted later by its name: a bundle's
// files, a Python environment, a program. After a power cut a name may stand for
// files that are empty or zeros. So a tree is synced before it gets its name, and a
// record beside it lists what is in it, by which it is checked when it is found.

// file is a file of a tree as it was made.
type file struct {
	Size int64       `json:"size"`
	Sum  string      `json:"sum,omitempty"`  // SHA-256 of a regular file
	Link string      `json:"link,omitempty"` // of a symbolic link
	Mode fs.FileMode `json:"mode"`
}

// contents is what a tree holds. Programs may add files and change them: those
// that are younger than Made are theirs.
type contents struct {
	Made  time.Time       `json:"made"`
	Boot  string          `json:"boot,omitempty"` // of the machine, when the tree was last found whole
	Files map[string]file `json:"files"`
}

// ops are what placing a tree does to a disk.
type ops struct {
	sync   func(path string) error
	rename func(from, to string) error
}

func disk() ops { return ops{sync: syncPath, rename: os.Rename} }

// Place gives a finished tree its name: dir has nothing before, or all of it.
func Place(temp, dir string) error { return disk().place(temp, dir) }

// SealSynced writes the record of a tree whose files are all on the disk already.
func SealSynced(dir string) error {
	return ops{sync: func(string) error { return nil }}.seal(dir, recordOf(dir))
}

// Repair gives a tree the files of a fresh one that it lacks or that are damaged.
// All else in it stays: tasks run there. Without a record every file that differs
// is replaced.
func Repair(fresh, dir string) error { return disk().repair(fresh, dir) }

// recordOf is where the record of a tree is.
func recordOf(dir string) string { return dir + ".tree" }

// place gives a finished tree its name. The order is what a power cut needs: files,
// directories from below, the record, the name, the directory of the name.
func (o ops) place(temp, dir string) error {
	if err := o.seal(temp, recordOf(dir)); err != nil {
		return err
	}
	if err := o.rename(temp, dir); err != nil {
		return err
	}
	return o.sync(filepath.Dir(dir))
}

// seal syncs a tree and then writes its record.
func (o ops) seal(dir, at string) error {
	if err := o.syncTree(dir); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	files, err := describeTree(dir)
	if err != nil {
		return fmt.Errorf("record what %s holds: %w", dir, err)
	}
	return record.WriteJSON(at, contents{Made: time.Now(), Boot: process.BootID(), Files: files})
}

// syncTree syncs the files of a tree and then its directories, from below.
func (o ops) syncTree(dir string) error {
	var folders []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			folders = append(folders, path)
		case entry.Type().IsRegular():
			return o.sync(path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, folder := range slices.Backward(folders) { // WalkDir comes to those below later
		if err := o.sync(folder); err != nil {
			return err
		}
	}
	return nil
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// describeTree lists the files of a tree by their paths in it.
func describeTree(dir string) (map[string]file, error) {
	files := map[string]file{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		file := file{Size: info.Size(), Mode: info.Mode()}
		switch {
		case info.Mode().IsRegular():
			file.Sum, err = Sum(path)
		case info.Mode()&fs.ModeSymlink != 0:
			file.Link, err = os.Readlink(path)
		}
		files[name] = file
		return err
	})
	return files, err
}

// damaged lists the files of a tree that are neither as they were made nor were
// changed since.
func (r *contents) damaged(dir string) []string {
	var bad []string
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		if !r.Files[name].whole(filepath.Join(dir, name), r.Made) {
			bad = append(bad, name)
		}
	}
	return bad
}

func (f file) whole(path string, made time.Time) bool {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return false
	case info.ModTime().After(made): // a program's own
		return true
	case info.Mode().Type() != f.Mode.Type():
		return false
	case info.Mode()&fs.ModeSymlink != 0:
		link, err := os.Readlink(path)
		return err == nil && link == f.Link
	case !info.Mode().IsRegular():
		return true
	case info.Size() != f.Size:
		return false
	}
	sum, err := Sum(path)
	return err == nil && sum == f.Sum
}

// readContents reads the record of a tree.
func readContents(dir string) (*contents, error) {
	var r contents
	if err := record.ReadJSON(recordOf(dir), &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// Intact reports whether a tree is as it was made, by reading all of it.
func Intact(dir string) bool {
	r, err := readContents(dir)
	return err == nil && len(r.damaged(dir)) == 0
}

// Whole reports whether a tree is as it was made. One that was whole since the
// machine was booted is not read again: only a power cut takes away what was synced.
func Whole(dir string) bool {
	r, err := readContents(dir)
	if err != nil {
		return false
	}
	if boot := process.BootID(); boot != "" && boot == r.Boot {
		return true
	}
	if len(r.damaged(dir)) > 0 {
		return false
	}
	r.Boot = process.BootID()
	_ = record.WriteJSON(recordOf(dir), r) // else it is checked once more
	return true
}

func (o ops) repair(fresh, dir string) error {
	if err := o.syncTree(fresh); err != nil {
		return err
	}
	files, err := describeTree(fresh)
	if err != nil {
		return err
	}
	were, err := readContents(dir)
	if err != nil { // of an older agent: nothing shows what a program has changed
		were = &contents{Made: time.Now(), Files: files}
	}
	for _, name := range were.damaged(dir) {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := o.rename(filepath.Join(fresh, name), to); err != nil {
			return err
		}
		if err := o.sync(filepath.Dir(to)); err != nil {
			return err
		}
	}
	for name, file := range files { // what a program has changed stays its own
		if sum, err := Sum(filepath.Join(dir, name)); err == nil && sum != file.Sum && file.Sum != "" {
			delete(files, name)
		}
	}
	return record.WriteJSON(recordOf(dir), contents{Made: time.Now(), Boot: process.BootID(), Files: files})
}

// Sum is the SHA-256 of a file, in hex.
func Sum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
