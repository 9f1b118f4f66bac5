package modules

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fray-ml/fray/durable"
)

// cache is the directory that the archives of a configuration are unpacked to.
// Its name begins with a dot so that a store beside it takes it for none of its
// objects.
type cache string

func cacheOf(root string) cache { return cache(filepath.Join(root, ".fray", ".modules")) }

// place is where an archive is: named for its content and, for people, for what
// it is.
func (c cache) place(l Locked) string {
	name := l.Source[strings.LastIndex(l.Source, "/")+1:]
	sum := strings.TrimPrefix(l.Archive, "sha256:")
	return filepath.Join(string(c), fmt.Sprintf("%s-%s-%.16s", name, l.Version, sum))
}

const (
	tmpPrefix = ".tmp-"
	tmpAge    = 24 * time.Hour // then the process that made it is gone
)

// prepare makes the cache and removes what killed processes left in it.
func (c cache) prepare(now time.Time) error {
	if err := os.MkdirAll(string(c), 0o755); err != nil {
		return fmt.Errorf("make the directory of modules: %w", withRemedy(err))
	}
	ignore := filepath.Join(string(c), ".gitignore")
	if _, err := os.Stat(ignore); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(ignore, []byte("*\n"), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", ignore, withRemedy(err))
		}
	}
	entries, err := os.ReadDir(string(c))
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), tmpPrefix) && now.Sub(info.ModTime()) > tmpAge {
			_ = os.RemoveAll(filepath.Join(string(c), e.Name())) // a rest does no harm
		}
	}
	return nil
}

// temp makes a directory of one's own on the same file system.
func (c cache) temp() (string, error) { return os.MkdirTemp(string(c), tmpPrefix+"*") }

// adopt moves unpacked files to their place. Another process may do the same at the
// same time; a place with other content is replaced.
func (c cache) adopt(files string, l Locked) error {
	place := c.place(l)
	if err := os.Chmod(files, 0o755); err != nil {
		return err
	}
	if err := syncTree(files); err != nil { // before it has a name that is trusted
		return err
	}
	err := os.Rename(files, place)
	if taken(err) {
		if sum, hashErr := filesHash(place); hashErr == nil && sum == l.Files {
			return nil
		}
		if err = c.discard(place); err == nil {
			err = os.Rename(files, place)
		}
	}
	if err != nil {
		return err
	}
	return durable.SyncDir(string(c))
}

// syncTree syncs the files of a directory, and its directories from below.
func syncTree(dir string) error {
	var folders []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		} else if err == nil && entry.Type().IsRegular() {
			err = durable.SyncDir(path)
		}
		return err
	})
	for _, folder := range slices.Backward(folders) {
		err = errors.Join(err, durable.SyncDir(folder))
	}
	return err
}

func taken(err error) bool {
	return errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, syscall.ENOTDIR)
}

// discard takes a place away, whole at once.
func (c cache) discard(place string) error {
	trash, err := c.temp()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(trash) }()
	return os.Rename(place, filepath.Join(trash, "was"))
}
