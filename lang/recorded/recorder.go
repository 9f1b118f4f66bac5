// Package recorded keeps what a configuration was evaluated from: its files,
// those of the modules that it calls, what its functions read, and the values
// of its variables. A recording is evaluated again where none of them are, with
// the same result but for what became known meanwhile.
//
// It keeps answers rather than a copy of a directory: paths stay what they were,
// and what was not there is not there again. What data blocks read is no part of
// it, nor are projects, which are shipped by their hash. Who may read a recording
// reads secrets: sealing it is its user's business.
//
// Start with [Recorder], then [Configuration].
package recorded

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/load"
)

// MaxSize is how many bytes the files of a configuration may have in all for it
// to be recorded.
const MaxSize = 16 << 20

// Recorder reads files and modules, and keeps what they returned. The zero
// Recorder is of this machine's files, without modules that are archives. It may
// be used concurrently.
type Recorder struct {
	Files   files.System   // nil: those of the disk
	Modules load.Installer // nil: no module is an archive

	mu    sync.Mutex
	heard facts
	size  int64 // of the files
}

var (
	_ files.System   = (*Recorder)(nil)
	_ load.Installer = (*Recorder)(nil)
)

// Parser reads a configuration and has the recorder hear.
func (r *Recorder) Parser() lang.Parser {
	p := lang.Parser{Files: r}
	if r.Modules != nil {
		p.Modules = r
	}
	return p
}

// Configuration is what was heard so far. What it is evaluated with is left to
// be filled in.
func (r *Recorder) Configuration() *Configuration {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Configuration{facts: r.heard, size: r.size}
	c.Kinds, c.Names, c.Globs = maps.Clone(c.Kinds), maps.Clone(c.Names), maps.Clone(c.Globs)
	c.Failures, c.content = maps.Clone(c.Failures), maps.Clone(c.content)
	c.Installed = slices.Clone(c.Installed)
	return c
}

func (r *Recorder) disk() files.System {
	if r.Files == nil {
		return files.Disk{}
	}
	return r.Files
}

// keep notes an answer under the name of its question.
func keep[V any](r *Recorder, q question, err error, put func(*facts, V), answer V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		set(&r.heard.Failures, q, failure{Text: err.Error(), Absent: errors.Is(err, fs.ErrNotExist)})
		return
	}
	delete(r.heard.Failures, q)
	put(&r.heard, answer)
}

func set[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// Kind implements [schema.Files].
func (r *Recorder) Kind(path string) (fs.FileMode, error) {
	kind, err := r.disk().Kind(path)
	keep(r, ask("kind", path), err, func(f *facts, kind fs.FileMode) { set(&f.Kinds, path, kind) }, kind)
	return kind, err
}

// Names implements [schema.Files].
func (r *Recorder) Names(dir string) ([]string, error) {
	names, err := r.disk().Names(dir)
	keep(r, ask("names", dir), err, func(f *facts, names []string) { set(&f.Names, dir, names) }, names)
	return names, err
}

// Read implements [schema.Files].
func (r *Recorder) Read(path string, as files.Reading) ([]byte, error) {
	data, err := r.disk().Read(path, as)
	keep(r, ask("read", path), err, func(f *facts, data []byte) {
		r.size += int64(len(data) - len(f.content[path]))
		if r.size > MaxSize {
			data = nil // it will not be recorded
		}
		set(&f.content, path, data)
	}, data)
	return data, err
}

// Glob implements [schema.Files].
func (r *Recorder) Glob(dir, pattern string) ([]string, error) {
	names, err := r.disk().Glob(dir, pattern)
	q := ask("glob", dir, pattern)
	keep(r, q, err, func(f *facts, names []string) { set(&f.Globs, q, names) }, names)
	return names, err
}

// WorkDir implements [schema.Files].
func (r *Recorder) WorkDir() (string, error) {
	dir, err := r.disk().WorkDir()
	keep(r, ask("workdir"), err, func(f *facts, dir string) { f.Work = dir }, dir)
	return dir, err
}

// HomeDir implements [schema.Files].
func (r *Recorder) HomeDir() (string, error) {
	dir, err := r.disk().HomeDir()
	keep(r, ask("homedir"), err, func(f *facts, dir string) { f.Home = dir }, dir)
	return dir, err
}

// Installed implements [schema.Installer].
func (r *Recorder) Installed(root, source, version string) (load.InstalledModule, error) {
	found, err := r.Modules.Installed(root, source, version)
	m := installed{Root: root, Source: source, Version: version, InstalledModule: found}
	keep(r, ask("module", root, source, version), err, func(f *facts, m installed) {
		if !slices.Contains(f.Installed, m) {
			f.Installed = append(f.Installed, m)
		}
	}, m)
	return found, err
}
