package recorded

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/funcs"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/schema"
)

// Configuration is a recorded configuration.
type Configuration struct {
	Paths     []string     `json:"paths"` // absolute, of files and directories
	Given     []eval.Given `json:"given,omitempty"`
	Environ   []string     `json:"environ,omitempty"`
	Local     bool         `json:"local,omitempty"`
	Workspace string       `json:"workspace,omitempty"`
	// Moment is that of the plan and of its apply.
	Moment funcs.Moment `json:"moment,omitzero"`
	// Targets are what of it was taken over, none: all.
	Targets []schema.Address `json:"targets,omitempty"`

	facts

	size int64 // of the files
}

// facts are the recorded answers of files and modules.
type facts struct {
	Kinds     map[string]fs.FileMode `json:"kinds,omitempty"` // by path
	Names     map[string][]string    `json:"names,omitempty"` // by directory
	Globs     map[question][]string  `json:"globs,omitempty"`
	Failures  map[question]failure   `json:"failures,omitempty"`
	Installed []installed            `json:"modules,omitempty"`
	Work      string                 `json:"work_dir,omitempty"`
	Home      string                 `json:"home_dir,omitempty"`

	content map[string][]byte // by path
}

// question is what was asked of files and modules: its parts, quoted.
type question string

func ask(parts ...string) question {
	quoted := make([]string, len(parts))
	for i, w := range parts {
		quoted[i] = strconv.Quote(w)
	}
	return question(strings.Join(quoted, " "))
}

// failure is an answer that was an error.
type failure struct {
	Text   string `json:"text"`
	Absent bool   `json:"absent,omitempty"` // it is an fs.ErrNotExist
}

func (f failure) Error() string { return f.Text }

// Is has what was not there be not there again.
func (f failure) Is(target error) bool { return f.Absent && target == fs.ErrNotExist }

type installed struct {
	Root    string `json:"root"`
	Source  string `json:"source"`
	Version string `json:"version,omitempty"`

	load.InstalledModule
}

// errUnheard: the recording has no answer, since when it was made, that was not
// asked.
var errUnheard = errors.New("it is not in the recording of the configuration")

// Parse reads the configuration again.
func (c *Configuration) Parse() (*lang.Source, error) {
	source, diags := lang.Parser{Files: player{&c.facts}, Modules: player{&c.facts}}.Parse(c.Paths)
	if diags.HasErrors() {
		return nil, diags
	}
	return source, nil
}

// Options are those that it was evaluated with, without what became known.
func (c *Configuration) Options() eval.Options {
	return eval.Options{Given: c.Given, Environ: c.Environ, Local: c.Local, Workspace: c.Workspace, Moment: c.Moment}
}

// player answers as was heard.
type player struct{ *facts }

var (
	_ files.System   = player{}
	_ load.Installer = player{}
)

// replay is an answer, or why there is none.
func replay[V any](p player, q question, answer V, found bool) (V, error) {
	if f, failed := p.Failures[q]; failed {
		return answer, f
	}
	if !found {
		return answer, errUnheard
	}
	return answer, nil
}

// Kind implements [schema.Files].
func (p player) Kind(path string) (fs.FileMode, error) {
	kind, found := p.Kinds[path]
	return replay(p, ask("kind", path), kind, found)
}

// Names implements [schema.Files].
func (p player) Names(dir string) ([]string, error) {
	names, found := p.facts.Names[dir]
	return replay(p, ask("names", dir), names, found)
}

// Read implements [schema.Files].
func (p player) Read(path string, _ files.Reading) ([]byte, error) {
	data, found := p.content[path]
	return replay(p, ask("read", path), data, found)
}

// Glob implements [schema.Files].
func (p player) Glob(dir, pattern string) ([]string, error) {
	q := ask("glob", dir, pattern)
	names, found := p.Globs[q]
	return replay(p, q, names, found)
}

// WorkDir implements [schema.Files].
func (p player) WorkDir() (string, error) { return replay(p, ask("workdir"), p.Work, p.Work != "") }

// HomeDir implements [schema.Files].
func (p player) HomeDir() (string, error) { return replay(p, ask("homedir"), p.Home, p.Home != "") }

// Installed implements [schema.Installer].
func (p player) Installed(root, source, version string) (load.InstalledModule, error) {
	q := ask("module", root, source, version)
	for _, m := range p.facts.Installed {
		if ask("module", m.Root, m.Source, m.Version) == q {
			return replay(p, q, m.InstalledModule, true)
		}
	}
	return replay(p, q, load.InstalledModule{}, false)
}

// TooLarge is the error of a configuration that reads more than is recorded.
type TooLarge struct {
	Size  int64 // in bytes
	Files int
}

func (e TooLarge) Error() string {
	if e.Files > maxFiles {
		return fmt.Sprintf("it reads %d files, and at most %d are recorded", e.Files, maxFiles)
	}
	return fmt.Sprintf("the files that it reads have %d MiB, and at most %d MiB are recorded", (e.Size+1<<20-1)>>20, MaxSize>>20)
}
