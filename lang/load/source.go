package load

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/syntax"
	"github.com/fray-ml/fray/schema"
)

// TestEnding ends the names of files with tests. They are no part of the
// configuration that they stand beside.
const TestEnding = ".fraytest.hcl"

// ScenarioEnding ends the names of files with scenarios of rehearsals and of the emulated
// cloud, which are no part of a configuration either.
const ScenarioEnding = ".scenario.hcl"

// PolicyEnding ends the names of files with policies, PolicyTestEnding those of their
// tests. Neither is a part of the configuration.
const (
	PolicyEnding     = ".policy.hcl"
	PolicyTestEnding = ".policytest.hcl"
)

// Source is a parsed, not yet evaluated configuration. It may be evaluated any
// number of times, with different options.
type Source struct {
	dir           string
	Root          *Directory
	VariableFiles []*hcl.File   // read without being asked for, in order of precedence
	digest        func() string // nil: there are no files
	Disk          files.System
	syntax        Syntax

	mu    sync.Mutex
	files map[string]*hcl.File
}

// File is a file that belongs to the configuration.
type File struct {
	shown string // as diagnostics name it: the way the user wrote it
	abs   string
	data  []byte
}

// Parser knows where modules and files are. The zero loader finds modules
// in directories only.
type Parser struct {
	Modules Installer
	Files   files.System // nil: DiskFiles
	Syntax  Syntax       // nil: ParseSyntax
}

// Syntax parses the text of a file in the native syntax; shown is its name in
// diagnostics. The file it returns is never nil.
type Syntax func(text []byte, shown string) (*hcl.File, hcl.Diagnostics)

// ParseSyntax parses a file after it has checked that the parser can bear it.
func ParseSyntax(text []byte, shown string) (*hcl.File, hcl.Diagnostics) {
	if diags := syntax.CheckConfig(text, shown); diags.HasErrors() {
		return &hcl.File{Bytes: text}, diags
	}
	file, diags := hclsyntax.ParseConfig(text, shown, hcl.InitialPos)
	if body, ok := BodyOf(file); ok {
		syntax.Adapt(body)
	}
	return file, syntax.FirstErrors(diags, shown)
}

// Parse reads the *.hcl files of directories (not of those below them) and
// single files; no path at all means the current directory. All syntax errors
// are collected. What is parsed is never nil: its Files serve the diagnostics.
func (p Parser) Parse(paths []string) (*Source, hcl.Diagnostics) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	s := &Source{files: map[string]*hcl.File{}, Disk: p.Files, syntax: p.Syntax}
	if s.Disk == nil {
		s.Disk = files.Disk{}
	}
	if s.syntax == nil {
		s.syntax = ParseSyntax
	}
	r := diagnose.New()
	var found []File
	for _, path := range paths {
		files, dir, diags := Discover(s.Disk, path)
		r.Extend(diags)
		found = append(found, files...)
		s.dir = cmp.Or(s.dir, dir)
	}
	slices.SortFunc(found, func(a, b File) int { return strings.Compare(a.abs, b.abs) })
	found = slices.CompactFunc(found, func(a, b File) bool { return a.abs == b.abs })
	s.Root = &Directory{Dir: s.dir}
	if len(found) > 0 {
		s.Root.Shown = filepath.Dir(found[0].shown)
	}
	s.Root.Bodies = s.ParseFiles(r, found)
	calls := &moduleLoader{Report: r, source: s, installer: p.Modules, read: map[string]*Directory{s.dir: s.Root}}
	calls.load()
	files := append(found, calls.files...)
	if s.dir != "" && len(found) > 0 {
		auto, diags := s.parseAutoVars(s.Root.Shown)
		r.Extend(diags)
		files = append(files, auto...)
	}
	s.digest = sync.OnceValue(func() string { return digestFiles(s.dir, files) })
	return s, r.Sorted()
}

// ParseFiles parses files and returns the bodies of those that are HCL.
func (s *Source) ParseFiles(r *diagnose.Report, files []File) []*hclsyntax.Body {
	var bodies []*hclsyntax.Body
	for _, f := range files {
		file, diags := s.parseFile(f)
		r.Extend(diags)
		if body, ok := BodyOf(file); ok {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// Files returns what was read, by the names that diagnostics use: the
// configuration, and the variable files of evaluations so far.
func (s *Source) Files() map[string]*hcl.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.files)
}

// Dir is the absolute directory of the configuration: that of the first path.
func (s *Source) Dir() string { return s.dir }

// Digest is a hash of all files, the variable files that are read without being
// asked for among them. It depends on neither their order nor on where the
// directory is. Saved plans are bound to it.
func (s *Source) Digest() string {
	if s.digest == nil {
		return ""
	}
	return s.digest()
}

// Discover lists and reads the files that a path stands for.
func Discover(disk files.System, path string) ([]File, string, hcl.Diagnostics) {
	abs, err := absolute(disk, path)
	if err != nil {
		return nil, "", hcl.Diagnostics{diagnose.WithoutPlace("Unreadable file", fmt.Sprintf("%s: %v.", path, err))}
	}
	kind, err := disk.Kind(abs)
	if err != nil {
		return nil, "", hcl.Diagnostics{missingPath(path, abs, err)}
	}
	if !kind.IsDir() && strings.HasSuffix(abs, hclJSONEnding) {
		return nil, filepath.Dir(abs), hcl.Diagnostics{diagnose.WithoutPlace("Unreadable file", instead(path))}
	}
	if !kind.IsDir() {
		f, diags := ReadFile(disk, path, abs)
		if diags.HasErrors() {
			return nil, filepath.Dir(abs), diags
		}
		return []File{f}, filepath.Dir(abs), nil
	}
	names, err := configNames(disk, abs, ".hcl")
	if err != nil {
		return nil, abs, hcl.Diagnostics{diagnose.WithoutPlace("Unreadable file", fmt.Sprintf("%v. Check its permissions.", err))}
	}
	foreign := foreignFiles(disk, abs)
	if len(names) == 0 {
		detail := "Run `fray init` there to write a first one, or name the directory or file that is meant."
		if len(foreign) > 0 {
			detail = instead(foreign[0])
		}
		return nil, abs, hcl.Diagnostics{diagnose.WithoutPlace("No configuration here", fmt.Sprintf("The directory %s has no .hcl file. %s", path, detail))}
	}
	var (
		files []File
		diags hcl.Diagnostics
	)
	for _, name := range foreign {
		if strings.HasSuffix(name, hclJSONEnding) {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagWarning, Summary: "File is not read", Detail: instead(filepath.Join(path, name))})
		}
	}
	for _, name := range names {
		f, readDiags := ReadFile(disk, filepath.Join(path, name), filepath.Join(abs, name))
		diags = append(diags, readDiags...)
		if !readDiags.HasErrors() {
			files = append(files, f)
		}
	}
	return files, abs, diags
}

// hclJSONEnding ends the names of files in the JSON form of the syntax, which Terraform
// has and fray has not.
const hclJSONEnding = ".hcl.json"

// foreignFiles are the files of a directory that people may take for a configuration.
func foreignFiles(disk files.System, dir string) []string {
	var found []string
	for _, ending := range []string{hclJSONEnding, ".tf", ".tf.json"} {
		names, err := configNames(disk, dir, ending)
		if err == nil {
			found = append(found, names...)
		}
	}
	return found
}

// instead is what to do with a file of another tool or form.
func instead(path string) string {
	if name, is := strings.CutSuffix(path, hclJSONEnding); is {
		return fmt.Sprintf("%s is JSON, and a configuration is read in the native syntax only: write it as %s.hcl. A program that generates JSON can write variables instead, as *.auto.frayvars.json.", path, name)
	}
	return fmt.Sprintf("%s is Terraform's: fray has blocks of its own, in files that end with .hcl. `fray init` writes a first one.", path)
}

// absolute is a path as the operating system knows it.
func absolute(disk files.System, path string) (string, error) {
	if filepath.IsAbs(path) {
		return filepath.Clean(path), nil
	}
	dir, err := disk.WorkDir()
	if err != nil { // a recording that was made without it
		return filepath.Abs(path)
	}
	return filepath.Join(dir, path), nil
}

// missingPath is the message for a path that cannot be read, with a suggestion.
func missingPath(path, abs string, err error) *hcl.Diagnostic {
	if !errors.Is(err, fs.ErrNotExist) {
		return diagnose.WithoutPlace("Unreadable file", fmt.Sprintf("%v.", err))
	}
	detail := fmt.Sprintf("There is no file or directory %s.", path)
	if entries, err := os.ReadDir(filepath.Dir(abs)); err == nil {
		names := make([]string, 0, len(entries))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if near := schema.Nearest(filepath.Base(abs), names); near != "" {
			detail += fmt.Sprintf(" Did you mean %q?", filepath.Join(filepath.Dir(path), near))
		}
	}
	return diagnose.WithoutPlace("No such file or directory", detail)
}

// configNames lists the files of a directory with an ending, without hidden
// ones and editors' leftovers, in lexical order.
func configNames(disk files.System, dir, ending string) ([]string, error) {
	all, err := disk.Names(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		if strings.HasSuffix(name, ending) && name != ending && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "#") && !isApart(name, ending) {
			names = append(names, name)
		}
	}
	return names, nil
}

// isApart reports whether a file is no part of the configuration beside it, and not of the
// kind whose ending is looked for.
func isApart(name, ending string) bool {
	return slices.ContainsFunc([]string{TestEnding, ScenarioEnding, PolicyEnding, PolicyTestEnding}, func(apart string) bool {
		return apart != ending && strings.HasSuffix(name, apart)
	})
}

// PolicyNames lists the files of a directory that have policies, or with PolicyTestEnding
// their tests, in lexical order.
func PolicyNames(disk files.System, dir, ending string) ([]string, error) {
	return configNames(disk, dir, ending)
}

// ConfigNames lists the files of a configuration in a directory, in lexical order.
func ConfigNames(disk files.System, dir string) ([]string, error) {
	return configNames(disk, dir, ".hcl")
}

// ReadFile reads a file of a configuration.
func ReadFile(disk files.System, shown, abs string) (File, hcl.Diagnostics) {
	data, err := disk.Read(abs, files.ReadSource)
	if err != nil {
		return File{}, hcl.Diagnostics{diagnose.WithoutPlace("Unreadable file", fmt.Sprintf("Cannot read %s: %v.", shown, err))}
	}
	return File{shown: shown, abs: abs, data: data}, nil
}

// parseFile parses a file and keeps it for diagnostics.
func (s *Source) parseFile(f File) (*hcl.File, hcl.Diagnostics) {
	file, diags := s.syntax(f.data, f.shown)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[f.shown] = file
	return file, diags
}

// BodyOf returns the body of a file in the native syntax.
func BodyOf(file *hcl.File) (*hclsyntax.Body, bool) {
	if file == nil {
		return nil, false
	}
	body, ok := file.Body.(*hclsyntax.Body)
	return body, ok && body != nil
}

func digestFiles(dir string, files []File) string {
	lines := make([]string, 0, len(files))
	for _, f := range files {
		name := f.abs
		if rel, err := filepath.Rel(dir, f.abs); err == nil {
			name = filepath.ToSlash(rel)
		}
		sum := sha256.Sum256(f.data)
		lines = append(lines, fmt.Sprintf("%x %q\n", sum, name))
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(sum[:])
}

// Empty is a configuration without files in a directory.
func Empty(dir string) *Source {
	return &Source{dir: dir, Root: &Directory{Dir: dir, Shown: "."}, files: map[string]*hcl.File{}, Disk: files.Disk{}, syntax: ParseSyntax}
}

// Folder is the directory of the configuration.
func (s *Source) Folder() files.Folder { return files.NewFolder(s.Disk, s.dir) }

// VariableNames lists the variables of the root module.
func (s *Source) VariableNames() []string {
	names := map[string]bool{}
	for _, body := range s.Root.Bodies {
		for _, b := range body.Blocks {
			if b.Type == "variable" && len(b.Labels) == 1 {
				names[b.Labels[0]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
