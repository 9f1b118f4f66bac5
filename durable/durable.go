// Package durable writes files that are whole after a crash or a power cut: the former
// content or the new one, under their names, and nothing in between.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// WriteFile replaces the file at path by one with data and the permissions perm, whatever
// the umask, and returns once both the content and the name are on the disk. After an
// error the file is as before, or has the new content already.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	f, err := Create(path, perm)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Commit()
}

// WriteNew is WriteFile where there is no file; else the error is an fs.ErrExist. The file
// appears with all its content, by a link, which fails where a name is taken.
func WriteNew(path string, data []byte, perm fs.FileMode) error {
	f, err := Create(path, perm)
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// File is a file that has no name until it is committed. It is written like any other.
type File struct {
	*os.File // its Name is a temporary one in the directory of path

	pending *renameio.PendingFile
	path    string
}

// Create begins a file that is to replace the one at path. The caller must Discard it.
func Create(path string, perm fs.FileMode) (*File, error) {
	pending, err := renameio.NewPendingFile(path, renameio.WithTempDir(filepath.Dir(path)), renameio.WithStaticPermissions(perm))
	if err != nil {
		return nil, err
	}
	return &File{File: pending.File, pending: pending, path: path}, nil
}

// Commit syncs the file, gives it its name and syncs the directory.
func (f *File) Commit() error {
	if err := f.pending.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(f.path))
}

// Discard removes a file that was not committed; it does nothing to one that was.
func (f *File) Discard() { _ = f.pending.Cleanup() }

// SyncDir waits until the names in a directory are on the disk.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // this file system syncs names by itself or not at all
	}
	if err := errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
