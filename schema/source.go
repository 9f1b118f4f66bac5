package schema

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
)

// Source is a parsed, not yet evaluated configuration. It may be evaluated any
// number of times, with different options.
type Source struct {
	dir      string
	root     *moduleFiles
	varFiles []*hcl.File // read without being asked for, in order of precedence
	digest   string
	disk     Files

	mu    sync.Mutex
	files map[string]*hcl.File
}

// sourceFile is a file that belongs to the configuration.
type sourceFile struct {
	shown string // as diagnostics name it: the way the user wrote it
	abs   string
	data  []byte
}

// Parse reads the *.hcl files of directories (not of those below them) and
// single files; no path at all means the current directory. All syntax errors
// are collected. The Source is never nil: its Files serve the diagnostics.
func Parse(paths []string) (*Source, hcl.Diagnostics) { return Parser{}.Parse(paths) }

// Parser is how Parse finds modules that are archives. The zero Parser finds
// those in directories only.
type Parser struct {
	Modules Installer
	Files   Files // nil: DiskFiles
}

// Parse is [Parse].
func (p Parser) Parse(paths []string) (*Source, hcl.Diagnostics) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	s := &Source{files: map[string]*hcl.File{}, disk: p.Files}
	if s.disk == nil {
		s.disk = DiskFiles{}
	}
	r := newReport()
	var found []sourceFile
	for _, path := range paths {
		files, dir, diags := discover(s.disk, path)
		r.extend(diags)
		found = append(found, files...)
		s.dir = cmp.Or(s.dir, dir)
	}
	slices.SortFunc(found, func(a, b sourceFile) int { return strings.Compare(a.abs, b.abs) })
	found = slices.CompactFunc(found, func(a, b sourceFile) bool { return a.abs == b.abs })
	s.root = &moduleFiles{dir: s.dir}
	if len(found) > 0 {
		s.root.shown = filepath.Dir(found[0].shown)
	}
	s.root.bodies = s.parseFiles(r, found)
	loader := &moduleLoader{report: r, source: s, installer: p.Modules, read: map[string]*moduleFiles{s.dir: s.root}}
	loader.load()
	files := append(found, loader.files...)
	if s.dir != "" && len(found) > 0 {
		auto, diags := s.parseAutoVars(s.root.shown)
		r.extend(diags)
		files = append(files, auto...)
	}
	s.digest = digestFiles(s.dir, files)
	return s, r.sorted()
}

func (s *Source) parseFiles(r *report, files []sourceFile) []*hclsyntax.Body {
	var bodies []*hclsyntax.Body
	for _, f := range files {
		file, diags := s.parseFile(f)
		r.extend(diags)
		if body, ok := bodyOf(file); ok {
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
func (s *Source) Digest() string { return s.digest }

// discover lists and reads the files that a path stands for.
func discover(disk Files, path string) ([]sourceFile, string, hcl.Diagnostics) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, "", hcl.Diagnostics{errorWithoutPlace("Unreadable file", fmt.Sprintf("%s: %v.", path, err))}
	}
	kind, err := disk.Kind(abs)
	if err != nil {
		return nil, "", hcl.Diagnostics{missingPath(path, abs, err)}
	}
	if !kind.IsDir() {
		f, diags := readSource(disk, path, abs)
		if diags.HasErrors() {
			return nil, filepath.Dir(abs), diags
		}
		return []sourceFile{f}, filepath.Dir(abs), nil
	}
	names, err := configNames(disk, abs, ".hcl")
	if err != nil {
		return nil, abs, hcl.Diagnostics{errorWithoutPlace("Unreadable file", fmt.Sprintf("%v. Check its permissions.", err))}
	}
	if len(names) == 0 {
		return nil, abs, hcl.Diagnostics{errorWithoutPlace("No configuration here", fmt.Sprintf(
			"The directory %s has no .hcl file. Run `fray init` there to write a first one, or name the directory or file that is meant.", path))}
	}
	var (
		files []sourceFile
		diags hcl.Diagnostics
	)
	for _, name := range names {
		f, readDiags := readSource(disk, filepath.Join(path, name), filepath.Join(abs, name))
		diags = append(diags, readDiags...)
		if !readDiags.HasErrors() {
			files = append(files, f)
		}
	}
	return files, abs, diags
}

// missingPath says that a path cannot be read and which neighbor may be meant.
func missingPath(path, abs string, err error) *hcl.Diagnostic {
	if !errors.Is(err, fs.ErrNotExist) {
		return errorWithoutPlace("Unreadable file", fmt.Sprintf("%v.", err))
	}
	detail := fmt.Sprintf("There is no file or directory %s.", path)
	if entries, err := os.ReadDir(filepath.Dir(abs)); err == nil {
		names := make([]string, 0, len(entries))
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if near := Nearest(filepath.Base(abs), names); near != "" {
			detail += fmt.Sprintf(" Did you mean %q?", filepath.Join(filepath.Dir(path), near))
		}
	}
	return errorWithoutPlace("No such file or directory", detail)
}

// configNames lists the files of a directory with an ending, without hidden
// ones and editors' leftovers, in lexical order.
func configNames(disk Files, dir, ending string) ([]string, error) {
	all, err := disk.Names(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, name := range all {
		if strings.HasSuffix(name, ending) && name != ending && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "#") &&
			(ending == TestEnding || !strings.HasSuffix(name, TestEnding)) {
			names = append(names, name)
		}
	}
	return names, nil
}

func readSource(disk Files, shown, abs string) (sourceFile, hcl.Diagnostics) {
	data, err := disk.Read(abs, ReadSource)
	if err != nil {
		return sourceFile{}, hcl.Diagnostics{errorWithoutPlace("Unreadable file", fmt.Sprintf("Cannot read %s: %v.", shown, err))}
	}
	return sourceFile{shown: shown, abs: abs, data: data}, nil
}

// parseFile parses a file and keeps it for diagnostics.
func (s *Source) parseFile(f sourceFile) (*hcl.File, hcl.Diagnostics) {
	var file *hcl.File
	diags := checkNesting(f.data, f.shown)
	if diags.HasErrors() {
		file = &hcl.File{Bytes: f.data}
	} else {
		file, diags = hclsyntax.ParseConfig(f.data, f.shown, hcl.InitialPos)
		diags = firstOf(diags, f.shown)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[f.shown] = file
	return file, diags
}

// maxSyntaxErrors bounds what is said of one file: one that is no HCL at all
// would have an error on every line.
const maxSyntaxErrors = 10

// firstOf keeps the first errors of a file and counts the others.
func firstOf(diags hcl.Diagnostics, shown string) hcl.Diagnostics {
	more := len(diags) - maxSyntaxErrors
	if more <= 0 {
		return diags
	}
	rest := &hcl.Diagnostic{
		Severity: hcl.DiagError, Subject: diags[maxSyntaxErrors].Subject, Summary: "More syntax errors",
		Detail: fmt.Sprintf("And %d more like these in %s. If it is not meant to be HCL, name another file.", more, shown),
	}
	return append(slices.Clip(diags[:maxSyntaxErrors]), rest)
}

// parseAutoVars reads the variable files of the configuration's directory.
func (s *Source) parseAutoVars(shownDir string) ([]sourceFile, hcl.Diagnostics) {
	names, err := varFileNames(s.disk, s.dir)
	if err != nil {
		return nil, nil // a single file in a directory that cannot be listed
	}
	var (
		files []sourceFile
		diags hcl.Diagnostics
	)
	for _, name := range names {
		f, readDiags := readSource(s.disk, filepath.Join(shownDir, name), filepath.Join(s.dir, name))
		diags = append(diags, readDiags...)
		if readDiags.HasErrors() {
			continue
		}
		file, parseDiags := s.parseVarFile(f)
		diags = append(diags, parseDiags...)
		files = append(files, f)
		s.varFiles = append(s.varFiles, file)
	}
	return files, diags
}

func bodyOf(file *hcl.File) (*hclsyntax.Body, bool) {
	if file == nil {
		return nil, false
	}
	body, ok := file.Body.(*hclsyntax.Body)
	return body, ok && body != nil
}

func digestFiles(dir string, files []sourceFile) string {
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
