package schema

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Files is where configurations and what their functions read come from: the
// disk, or a recording of what was read of it. Paths are absolute. An error of
// what is not there is an [fs.ErrNotExist].
type Files interface {
	// Kind is what is at a path, links followed: the type bits of a mode, 0 for
	// a regular file.
	Kind(path string) (fs.FileMode, error)
	// Names are those of what is in a directory, but for directories, in
	// lexical order.
	Names(dir string) ([]string, error)
	// Read returns what is in a file. Its error is without the path.
	Read(path string, as Reading) ([]byte, error)
	// Glob returns the files below a directory that match a pattern with **, as
	// slash-separated paths from there, in lexical order.
	Glob(dir, pattern string) ([]string, error)
	// WorkDir is the directory of the process, HomeDir that of its user.
	WorkDir() (string, error)
	HomeDir() (string, error)
}

// Reading is what a file is read as.
type Reading string

// What files are read as.
const (
	ReadSource Reading = "source" // of the language: a pipe may be one
	ReadData   Reading = "data"   // of functions such as file
)

// DiskFiles are the files of this machine.
type DiskFiles struct{}

var _ Files = DiskFiles{}

// Kind implements [Files].
func (DiskFiles) Kind(path string) (fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Mode().Type(), nil
}

// Names implements [Files].
func (DiskFiles) Names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Read implements [Files].
func (DiskFiles) Read(path string, as Reading) ([]byte, error) {
	if as == ReadSource {
		return readFile(path, maxFileSize, true)
	}
	return readFile(path, maxDataSize, false)
}

// Glob implements [Files]. It looks at a limited number of files.
func (DiskFiles) Glob(dir, pattern string) ([]string, error) { return glob(dir, pattern, maxElements) }

func glob(dir, pattern string, most int) ([]string, error) {
	files := &countingFS{fsys: os.DirFS(dir), left: most}
	names, err := doublestar.Glob(files, pattern, doublestar.WithFilesOnly())
	switch {
	case err != nil:
		return nil, err
	case files.left < 0:
		return nil, fmt.Errorf("more than %d files and directories would be looked at; start further down", most)
	}
	slices.Sort(names)
	return names, nil
}

// WorkDir implements [Files].
func (DiskFiles) WorkDir() (string, error) { return os.Getwd() }

// HomeDir implements [Files].
func (DiskFiles) HomeDir() (string, error) { return os.UserHomeDir() }

// folder is a directory that paths are relative to.
type folder struct {
	Files

	dir string
}

// within is a path as the operating system knows it.
func (f folder) within(path string) (string, error) {
	path, err := f.expandHome(path)
	if err != nil || filepath.IsAbs(path) {
		return filepath.Clean(path), err
	}
	return filepath.Join(f.dir, path), nil
}

func (f folder) expandHome(path string) (string, error) {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path, nil
	}
	home, err := f.HomeDir()
	if err != nil {
		return "", fmt.Errorf("find the home directory: %w", err)
	}
	return filepath.Join(home, strings.TrimPrefix(path, "~")), nil
}
