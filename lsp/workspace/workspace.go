package workspace

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/lang/outline"
)

// Options are what a workspace needs from outside.
type Options struct {
	Base string // absolute; diagnostics name files relative to it
	// Publish is called with all diagnostics of a file whenever they may have changed, never
	// twice at once.
	Publish func(Published)
	Whole   int // most blocks of a directory of which everything is checked at each edit
	// The pauses without edits after which everything is checked: the short one if an edit
	// affects more blocks than are checked at once.
	Pause, ShortPause time.Duration
	// The longest that an edit waits for its check of everything to begin while others follow it, if not 0.
	// That check newer edits do not cancel.
	Patience time.Duration
}

// Published are all diagnostics of a file.
type Published struct {
	Path    string
	Open    bool
	Version int           // of the buffer
	File    *outline.File // nil if it cannot be read
	Diags   hcl.Diagnostics
}

// Workspace has the buffers of an editor and checks their directories. Its methods may be
// called concurrently.
type Workspace struct {
	options  Options
	outlines *outlines
	work     sync.WaitGroup
	ctx      context.Context // ended by Close

	mu       sync.Mutex
	buffers  map[string]*buffer
	stacks   map[string]*stack // by directory
	shown    map[string]map[string]hcl.Diagnostics
	sending  sync.Mutex
	lastSent map[string]int // how many diagnostics a file has in the editor
}

// buffer is an open file.
type buffer struct {
	version int
	file    *outline.File
}

// New is a workspace whose checks end with the context.
func New(ctx context.Context, options Options) *Workspace {
	return &Workspace{
		options: options, ctx: ctx,
		outlines: newOutlines(),
		buffers:  map[string]*buffer{}, stacks: map[string]*stack{},
		shown: map[string]map[string]hcl.Diagnostics{}, lastSent: map[string]int{},
	}
}

// Wait returns once the checks have ended after the context.
func (w *Workspace) Wait() { w.work.Wait() }

// Open takes a file that the editor has opened.
func (w *Workspace) Open(path string, version int, text []byte) {
	f := w.outlines.of(path, w.viewLocked(path).shown(path), text)
	w.mu.Lock()
	w.buffers[path] = &buffer{version, f}
	w.mu.Unlock()
	w.check(filepath.Dir(path))
}

// Change takes edits of an open file, each made of the file that the ones before it leave.
func (w *Workspace) Change(path string, version int, edit func(*outline.File) *outline.File) {
	w.mu.Lock()
	b := w.buffers[path]
	if b != nil {
		w.buffers[path] = &buffer{version, edit(b.file)}
	}
	w.mu.Unlock()
	if b != nil {
		w.check(filepath.Dir(path))
	}
}

// Close takes a file that the editor has closed: what is on the disk counts again.
func (w *Workspace) Close(path string) {
	dir := filepath.Dir(path)
	w.mu.Lock()
	delete(w.buffers, path)
	last := !slices.ContainsFunc(slices.Collect(maps.Keys(w.buffers)), func(p string) bool { return filepath.Dir(p) == dir })
	s := w.stacks[dir]
	if last && s != nil {
		delete(w.stacks, dir)
		close(s.gone)
	}
	w.mu.Unlock()
	if last {
		w.show(dir, nil, map[string]hcl.Diagnostics{})
		return
	}
	w.check(dir)
}

// Refresh checks everything again: files have changed on the disk.
func (w *Workspace) Refresh() {
	w.outlines.forget()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.stacks {
		s.mark(true)
	}
}

// File is the outline of an open file, nil if it is not open.
func (w *Workspace) File(path string) *outline.File {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.buffers[path]; b != nil {
		return b.file
	}
	return nil
}

// Directory are the files of a directory, as far as they can be read.
func (w *Workspace) Directory(dir string) outline.Directory {
	return w.view(dir).directory(dir)
}

// Absolute is the path of a file of a Directory.
func (w *Workspace) Absolute(f *outline.File) string {
	return (&view{base: w.options.Base}).absolute(f.Name)
}

// view is the files as they are now.
func (w *Workspace) view(dir string) *view {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.viewLocked(dir)
	for path, b := range w.buffers {
		v.disk.texts[path], v.buffers[path], v.versions[path] = b.file.Text, b.file, b.version
	}
	return v
}

// viewLocked is a view without buffers.
func (w *Workspace) viewLocked(dir string) *view {
	v := &view{
		path: dir, base: w.options.Base, outlines: w.outlines, versions: map[string]int{}, buffers: map[string]*outline.File{},
	}
	v.disk = overlay{view: v, texts: map[string][]byte{}}
	return v
}

// check marks a directory for its checks, and the configurations that use it as a module.
func (w *Workspace) check(dir string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return
	}
	s := w.stacks[dir]
	if s == nil {
		s = newStack(w, dir)
		w.stacks[dir] = s
		w.work.Go(func() { s.loop(w.ctx) })
	}
	s.mark(false)
	for _, other := range w.stacks {
		if other != s && other.reads(dir) {
			other.mark(true)
		}
	}
}

// outlineAnew cuts a buffer anew whose parts do not parse by themselves, though the whole does.
func (w *Workspace) outlineAnew(path string, f *outline.File) {
	anew := outline.Parse(f.Name, f.Text)
	w.mu.Lock()
	defer w.mu.Unlock()
	if b := w.buffers[path]; b != nil && b.file == f {
		w.buffers[path] = &buffer{b.version, anew}
	}
}

// show publishes what a directory's checks have found, by the path of the file: of the files
// whose diagnostics change, and of the open files of the directory in any case. Without a
// view the directory is closed.
func (w *Workspace) show(dir string, v *view, found map[string]hcl.Diagnostics) {
	w.sending.Lock()
	defer w.sending.Unlock()
	w.mu.Lock()
	if v == nil {
		v = w.viewLocked(dir)
	} else if w.stacks[dir] == nil {
		w.mu.Unlock()
		return // it was closed meanwhile
	}
	former := w.shown[dir]
	w.shown[dir] = found
	paths := map[string]bool{}
	for path := range v.versions {
		paths[path] = filepath.Dir(path) == dir
	}
	for _, found := range []map[string]hcl.Diagnostics{former, found} {
		for path := range found {
			paths[path] = true
		}
	}
	merged := map[string]hcl.Diagnostics{}
	for _, of := range slices.Sorted(maps.Keys(w.shown)) {
		for path, diags := range w.shown[of] {
			merged[path] = append(merged[path], diags...)
		}
	}
	w.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		version, open := v.versions[path]
		if paths[path] && (len(merged[path]) > 0 || w.lastSent[path] > 0 || open) {
			w.lastSent[path] = len(merged[path])
			w.options.Publish(Published{path, open, version, v.fileOf(path), distinct(merged[path])})
		}
	}
}

// distinct drops diagnostics that several configurations have found.
func distinct(diags hcl.Diagnostics) hcl.Diagnostics {
	type key struct {
		at              hcl.Range
		summary, detail string
	}
	seen := map[key]bool{}
	return slices.DeleteFunc(slices.Clone(diags), func(d *hcl.Diagnostic) bool {
		k := key{summary: d.Summary, detail: d.Detail}
		if d.Subject != nil {
			k.at = *d.Subject
		}
		double := seen[k]
		seen[k] = true
		return double
	})
}

// isBeside reports whether a file that is no part of a configuration has its syntax: tests,
// policies and variable files.
func isBeside(path string) bool {
	endings := []string{load.TestEnding, load.PolicyEnding, load.PolicyTestEnding, load.VariablesEnding}
	return slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(path, ending) })
}
