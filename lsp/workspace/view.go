package workspace

import (
	"bytes"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/lang/outline"
)

// view is the files of a directory at one moment.
type view struct {
	path     string // absolute
	base     string // what names in diagnostics are relative to
	disk     overlay
	versions map[string]int // of the buffers

	outlines *outlines
	buffers  map[string]*outline.File
}

// outlines has the outlines of files that are not open, as they were when last read.
type outlines struct {
	mu     sync.Mutex
	byPath map[string]*outline.File
	stamps map[string]stamp // of what the outlines have the texts of
}

// stamp is by what a file shows that it is another one now.
type stamp struct {
	size     int64
	modified time.Time
}

func newOutlines() *outlines {
	return &outlines{byPath: map[string]*outline.File{}, stamps: map[string]stamp{}}
}

// text is what a file had when it was last read, if it still has its stamp.
func (o *outlines) text(path string, now stamp) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.byPath[path]
	return textOf(f), f != nil && o.stamps[path] == now
}

func textOf(f *outline.File) []byte {
	if f == nil {
		return nil
	}
	return f.Text
}

// keep notes a file that was read, with the stamp that it had before.
func (o *outlines) keep(path, shown string, text []byte, before stamp) {
	o.of(path, shown, text)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stamps[path] = before
}

// forget makes all files be read again.
func (o *outlines) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.stamps)
}

// of is the outline of a file with a text.
func (o *outlines) of(path, shown string, text []byte) *outline.File {
	o.mu.Lock()
	last := o.byPath[path]
	o.mu.Unlock()
	if last != nil && last.Name == shown && bytes.Equal(last.Text, text) {
		return last
	}
	f := outline.Parse(shown, text)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.byPath[path] = f
	return f
}

// outline is the outline of a file with a text.
func (v *view) outline(path string, text []byte) *outline.File {
	if f := v.buffers[path]; f != nil && bytes.Equal(f.Text, text) {
		return f
	}
	return v.outlines.of(path, v.shown(path), text)
}

// known is the outline of a file that was read before, nil if it was not.
func (v *view) known(path string) *outline.File {
	if f := v.buffers[path]; f != nil {
		return f
	}
	v.outlines.mu.Lock()
	defer v.outlines.mu.Unlock()
	return v.outlines.byPath[path]
}

// fileOf is the outline of a file, nil if it cannot be read.
func (v *view) fileOf(path string) *outline.File {
	if f := v.known(path); f != nil {
		return f
	}
	text, err := v.disk.Read(path, files.ReadSource)
	if err != nil {
		return nil
	}
	return v.outlines.of(path, v.shown(path), text)
}

// shown is how diagnostics name a path: as fray validate would in the editor's directory.
func (v *view) shown(path string) string {
	if rel, err := filepath.Rel(v.base, path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

func (v *view) absolute(shown string) string {
	if filepath.IsAbs(shown) {
		return shown
	}
	return filepath.Join(v.base, shown)
}

// directory are the files of a configuration or module in a directory.
func (v *view) directory(dir string) outline.Directory {
	var d outline.Directory
	names, err := load.ConfigNames(v.disk, dir)
	if err != nil {
		return d
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if f := v.buffers[path]; f != nil {
			d.Files = append(d.Files, f)
			continue
		}
		text, err := v.disk.Read(path, files.ReadSource)
		if err == nil {
			d.Files = append(d.Files, v.outline(path, text))
		}
	}
	return d
}
