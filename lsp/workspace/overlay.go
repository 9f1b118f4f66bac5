package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fray-ml/fray/lang/files"
)

// overlay is the disk with the texts of open buffers over it, by absolute path.
type overlay struct {
	files.Disk

	view  *view // whose files it reads
	texts map[string][]byte
}

var _ files.System = overlay{}

// Kind implements [files.System].
func (o overlay) Kind(path string) (fs.FileMode, error) {
	if _, ok := o.texts[path]; ok {
		return 0, nil
	}
	kind, err := o.Disk.Kind(path)
	if err != nil && len(o.in(path)) > 0 {
		return fs.ModeDir, nil // a directory that is not on the disk yet
	}
	return kind, err
}

// Names implements [files.System].
func (o overlay) Names(dir string) ([]string, error) {
	open := o.in(dir)
	names, err := o.Disk.Names(dir)
	if err != nil && len(open) == 0 {
		return nil, err
	}
	names = append(names, open...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// in are the names of the buffers in a directory.
func (o overlay) in(dir string) []string {
	var names []string
	for path := range o.texts {
		if filepath.Dir(path) == dir {
			names = append(names, filepath.Base(path))
		}
	}
	return names
}

// WorkDir implements [files.System].
func (o overlay) WorkDir() (string, error) { return o.view.base, nil }

// Read implements [files.System]. A file of a configuration that has not changed since is not
// read again.
func (o overlay) Read(path string, as files.Reading) ([]byte, error) {
	if text, ok := o.texts[path]; ok {
		return text, nil
	}
	info, err := os.Stat(path)
	if as != files.ReadSource || err != nil || !info.Mode().IsRegular() || filepath.Ext(path) != ".hcl" {
		return o.Disk.Read(path, as)
	}
	now := stamp{info.Size(), info.ModTime()}
	if text, ok := o.view.outlines.text(path, now); ok {
		return text, nil
	}
	text, err := o.Disk.Read(path, as)
	if err == nil {
		o.view.outlines.keep(path, o.view.shown(path), text, now)
	}
	return text, err
}
