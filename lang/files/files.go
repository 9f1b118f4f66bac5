package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// System is where configurations and what their functions read come from: the
// disk, or a recording of what was read of it. Paths are absolute. An error of
// what is not there is an [fs.ErrNotExist].
type System interface {
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

// Disk are the files of this machine.
type Disk struct{}

var _ System = Disk{}

// Kind implements [Files].
func (Disk) Kind(path string) (fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Mode().Type(), nil
}

// Names implements [Files].
func (Disk) Names(dir string) ([]string, error) {
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
func (Disk) Read(path string, as Reading) ([]byte, error) {
	if as == ReadSource {
		return readFile(path, MaxFileSize, true)
	}
	return readFile(path, MaxDataSize, false)
}

// maxListed is how many files and directories Glob visits.
const maxListed = 1_000_000

// Glob implements [Files]. It visits a limited number of files.
func (Disk) Glob(dir, pattern string) ([]string, error) { return glob(dir, pattern, maxListed) }

func glob(dir, pattern string, most int) ([]string, error) {
	files := &countingFS{fsys: os.DirFS(dir), left: most}
	names, err := doublestar.Glob(files, pattern, doublestar.WithFilesOnly())
	switch {
	case err != nil:
		return nil, err
	case files.left < 0:
		return nil, fmt.Errorf("more than %d files and directories match the start of the pattern; start further down", most)
	}
	slices.Sort(names)
	return names, nil
}

// WorkDir implements [Files].
func (Disk) WorkDir() (string, error) { return os.Getwd() }

// HomeDir implements [Files].
func (Disk) HomeDir() (string, error) { return os.UserHomeDir() }

// Folder is a directory that paths are relative to.
type Folder struct {
	System

	dir string // absolute
}

// NewFolder is a directory of files.
func NewFolder(files System, dir string) Folder { return Folder{files, dir} }

// Within is a path as the operating system knows it.
func (f Folder) Within(path string) (string, error) {
	path, err := f.ExpandHome(path)
	if err != nil || filepath.IsAbs(path) {
		return filepath.Clean(path), err
	}
	return filepath.Join(f.dir, path), nil
}

// ExpandHome replaces a leading ~ by the home directory.
func (f Folder) ExpandHome(path string) (string, error) {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path, nil
	}
	home, err := f.HomeDir()
	if err != nil {
		return "", fmt.Errorf("find the home directory: %w", err)
	}
	return filepath.Join(home, strings.TrimPrefix(path, "~")), nil
}

// ReadData returns the full path of a file and what is in it.
func (f Folder) ReadData(path string) (full string, data []byte, err error) {
	full, err = f.Within(path)
	if err == nil {
		data, err = f.Read(full, ReadData)
	}
	if err != nil {
		return "", nil, fmt.Errorf("read %s: %w", full, err)
	}
	return full, data, nil
}

// ReadText is ReadData for a file that must be UTF-8 text.
func (f Folder) ReadText(path string) (full, text string, err error) {
	full, data, err := f.ReadData(path)
	if err != nil {
		return "", "", err
	}
	if !utf8.Valid(data) {
		return "", "", fmt.Errorf("%s is not UTF-8 text; use filebase64()", full)
	}
	return full, string(data), nil
}

// countingFS is a directory of which a limited number of entries may be read.
type countingFS struct {
	fsys fs.FS
	left int
}

var (
	_ fs.ReadDirFS = (*countingFS)(nil)
	_ fs.StatFS    = (*countingFS)(nil)
)

func (c *countingFS) spend(n int) error {
	if c.left -= n; c.left < 0 {
		return errors.New("too many files")
	}
	return nil
}

// Open implements fs.FS.
func (c *countingFS) Open(name string) (fs.File, error) {
	if err := c.spend(1); err != nil {
		return nil, err
	}
	return c.fsys.Open(name)
}

// ReadDir implements fs.ReadDirFS.
func (c *countingFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if c.left < 0 {
		return nil, c.spend(0)
	}
	entries, err := fs.ReadDir(c.fsys, name)
	if err != nil {
		return nil, err
	}
	return entries, c.spend(len(entries))
}

// Stat implements fs.StatFS.
func (c *countingFS) Stat(name string) (fs.FileInfo, error) {
	if err := c.spend(1); err != nil {
		return nil, err
	}
	return fs.Stat(c.fsys, name)
}
