package modules

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fray-ml/fray/lang/load"
)

// Installed finds installed modules that match the lock file; it changes nothing and
// asks no registry. One is for one reading of a configuration.
type Installed struct {
	read    bool
	lock    lock
	lockErr error
	checked map[string]error // places
}

var _ load.Installer = (*Installed)(nil)

// Installed implements schema.Installer.
func (i *Installed) Installed(root, source, version string) (load.InstalledModule, error) {
	src, c, err := parseCall(root, source, version)
	if err != nil {
		return load.InstalledModule{}, err
	}
	if !i.read {
		i.read = true
		i.lock, i.lockErr = readLock(root)
		i.checked = map[string]error{}
	}
	if i.lockErr != nil {
		return load.InstalledModule{}, i.lockErr
	}
	entry, ok := i.lock.serving(src.Archive(), c)
	if !ok {
		return load.InstalledModule{}, notLocked(src, c, i.lock)
	}
	place := cacheOf(root).place(entry)
	if _, done := i.checked[place]; !done {
		i.checked[place] = check(place, entry)
	}
	return moduleAt(place, src), i.checked[place]
}

// parseCall reads the attributes of a call.
func parseCall(root, source, version string) (Source, constraint, error) {
	src, err := ParseSource(source)
	if err != nil {
		if info, statErr := os.Stat(filepath.Join(root, source)); statErr == nil && info.IsDir() {
			return src, constraint{}, fmt.Errorf("%q is a directory, whose source is written \"./%s\"", source, source)
		}
		return src, constraint{}, err
	}
	c, err := parseConstraint(version)
	return src, c, err
}

func moduleAt(place string, src Source) load.InstalledModule {
	return load.InstalledModule{Archive: place, Dir: filepath.Join(place, filepath.FromSlash(src.Sub))}
}

func notLocked(src Source, c constraint, l lock) error {
	return fmt.Errorf("%s; run `fray get`, which chooses a version", lacks(src, c, l))
}

// lacks is the error about what a lock file has not.
func lacks(src Source, c constraint, l lock) string {
	there := l.of(src.Archive())
	if len(there) == 0 {
		return fmt.Sprintf("%s has no version of %s", LockFile, src.Archive())
	}
	return fmt.Sprintf("%s has %s, which %q does not allow", LockFile, there[len(there)-1], c)
}

// check compares what is installed with what is locked. All of it is read: for
// the files of modules that takes less than to parse them.
func check(place string, l Locked) error {
	sum, err := filesHash(place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the module %s is not installed here; run `fray get`", l)
	case err != nil:
		return fmt.Errorf("check %s: %w; run `fray get`, which installs it again", l, err)
	case sum != l.Files:
		return changed(place, sum, l)
	}
	return nil
}

func changed(place, sum string, l Locked) error {
	return fmt.Errorf("the files of %s were changed in %s: their hash is %s, and %s has %s; "+
		"`fray get` puts back what was published; to change a module, copy its directory and name that as the source",
		l, place, sum, LockFile, l.Files)
}
