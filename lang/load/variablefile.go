package load

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	hcljson "github.com/hashicorp/hcl/v2/json"

	"github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/syntax"
)

// Names of variable files. Those of the last two are read without being asked for.
const (
	VariablesEnding  = ".frayvars" // of all of them
	VariableFileName = "fray.frayvars"
	autoVarsEnding   = ".auto.frayvars"
	jsonEnding       = ".json" // of those that are JSON
)

// ParseVariableFile parses a variable file, as JSON if its name ends so, and
// keeps it for diagnostics.
func (s *Source) ParseVariableFile(f File) (*hcl.File, hcl.Diagnostics) {
	if !strings.HasSuffix(f.shown, jsonEnding) {
		return s.parseFile(f)
	}
	file := &hcl.File{Bytes: f.data}
	diags := syntax.CheckJSON(f.data, f.shown)
	if !diags.HasErrors() {
		var parsed *hcl.File
		if parsed, diags = hcljson.Parse(f.data, f.shown); parsed != nil {
			file = parsed
		}
		diags = syntax.FirstErrors(AboutVariableFile(diags), f.shown)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[f.shown] = file
	return file, diags
}

// AboutVariableFile replaces messages of the JSON parser, which takes all for
// configuration, what a whole file should be; but not of one with other errors.
func AboutVariableFile(diags hcl.Diagnostics) hcl.Diagnostics {
	whole := func(d *hcl.Diagnostic) bool { return libraryCause(d) == libraryNotAnObject }
	if slices.ContainsFunc(diags, func(d *hcl.Diagnostic) bool { return !whole(d) }) {
		return slices.DeleteFunc(diags, whole)
	}
	for _, d := range diags {
		d.Summary, d.Detail = "Not a variable file", "A variable file in JSON is one object: { \"NAME\": VALUE }."
	}
	return diags
}

// varFileNames lists the variable files of a directory that are read without
// being asked for, in order of precedence.
func varFileNames(disk files.System, dir string) ([]string, error) {
	names, err := configNames(disk, dir, "")
	if err != nil {
		return nil, err
	}
	rank := func(name string) int {
		stem := strings.TrimSuffix(name, jsonEnding)
		switch {
		case strings.HasSuffix(stem, autoVarsEnding):
			return 3
		case name == VariableFileName+jsonEnding:
			return 2
		case name == VariableFileName:
			return 1
		}
		return 0
	}
	names = slices.DeleteFunc(names, func(name string) bool { return rank(name) == 0 })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return names, nil
}

// parseAutoVars reads the variable files of the configuration's directory.
func (s *Source) parseAutoVars(shownDir string) ([]File, hcl.Diagnostics) {
	names, err := varFileNames(s.Disk, s.dir)
	if err != nil {
		return nil, nil // a single file in a directory that cannot be listed
	}
	var (
		files []File
		diags hcl.Diagnostics
	)
	for _, name := range names {
		f, readDiags := ReadFile(s.Disk, filepath.Join(shownDir, name), filepath.Join(s.dir, name))
		diags = append(diags, readDiags...)
		if readDiags.HasErrors() {
			continue
		}
		file, parseDiags := s.ParseVariableFile(f)
		diags = append(diags, parseDiags...)
		files = append(files, f)
		s.VariableFiles = append(s.VariableFiles, file)
	}
	return files, diags
}
