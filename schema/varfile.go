package schema

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	hcljson "github.com/hashicorp/hcl/v2/json"
)

// VariablePrefix starts the names of environment variables that give values.
const VariablePrefix = "FRAY_VAR_"

// Variable files that are read without being asked for.
const (
	varFileName    = "fray.frayvars"
	autoVarsEnding = ".auto.frayvars"
	jsonEnding     = ".json" // of those that are JSON
)

// GivenKind is a way to give variables their values on the command line.
type GivenKind string

// The ways to give variables their values.
const (
	GivenVar     GivenKind = "var"      // --var
	GivenVarFile GivenKind = "var-file" // --var-file
	GivenAnswer  GivenKind = "answer"   // typed in when it was asked for
)

// Given is what one flag says of variables. Later ones win.
type Given struct {
	Kind GivenKind
	Text string // "name=value"; of a GivenVarFile, its path
}

// IsOf reports whether it gives a value to one of some variables, and to no other.
func (g Given) IsOf(variables []string) bool {
	name, _, _ := strings.Cut(g.Text, "=")
	return g.Kind != GivenVarFile && slices.Contains(variables, strings.TrimSpace(name))
}

// givenValues collects the values that come from outside, each source over the
// ones before it: environment, files that are read without being asked for, and
// the command line in its order. Of a value nothing is read before it is known
// to be the one that counts.
func (e *evaluator) givenValues(vars map[string]*variable) map[string]given {
	values := map[string]given{}
	environ := cutPrefixes(e.opts.Environ, VariablePrefix)
	for _, name := range sortedKeys(environ) {
		if vars[name] != nil { // another program may have meant the rest
			values[name] = given{text: environ[name], from: "the environment variable " + VariablePrefix + name}
		}
	}
	files := &varFiles{evaluator: e, vars: vars, values: values}
	for _, file := range e.source.varFiles {
		files.read(file)
	}
	for _, g := range e.opts.Given {
		switch g.Kind {
		case GivenVarFile:
			if file := e.readVarFile(g.Text); file != nil {
				files.read(file)
			}
		case GivenVar, GivenAnswer:
			e.givenVar(g, vars, values)
		}
	}
	files.warnOfUnused()
	return values
}

// givenVar takes over a NAME=VALUE.
func (e *evaluator) givenVar(g Given, vars map[string]*variable, into map[string]given) {
	name, text, ok := strings.Cut(g.Text, "=")
	name = strings.TrimSpace(name)
	switch {
	case !ok:
		e.add(errorWithoutPlace("Invalid value for --var", fmt.Sprintf("--var %q has no value: write --var 'NAME=VALUE'.", g.Text)))
	case vars[name] == nil:
		e.add(errorWithoutPlace("Undeclared variable", fmt.Sprintf("--var names %q, but there is no such variable. %s", name, variableSuggestion(name, vars))))
	case g.Kind == GivenAnswer:
		into[name] = given{text: text}
	default:
		into[name] = given{text: text, from: "--var"}
	}
}

func (e *evaluator) readVarFile(path string) *hcl.File {
	abs, err := filepath.Abs(path)
	if err != nil {
		e.add(errorWithoutPlace("Unreadable file", fmt.Sprintf("%v.", err)))
		return nil
	}
	f, diags := readSource(e.source.disk, path, abs)
	if diags.HasErrors() {
		e.extend(diags)
		return nil
	}
	file, diags := e.source.parseVarFile(f)
	e.extend(diags)
	if diags.HasErrors() {
		return nil
	}
	return file
}

// parseVarFile parses a variable file, as JSON where its name says so, and
// keeps it for diagnostics.
func (s *Source) parseVarFile(f sourceFile) (*hcl.File, hcl.Diagnostics) {
	if !strings.HasSuffix(f.shown, jsonEnding) {
		return s.parseFile(f)
	}
	file := &hcl.File{Bytes: f.data}
	diags := checkJSONNesting(f.data, f.shown)
	if !diags.HasErrors() {
		var parsed *hcl.File
		if parsed, diags = hcljson.Parse(f.data, f.shown); parsed != nil {
			file = parsed
		}
		diags = firstOf(aboutVarFile(diags), f.shown)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[f.shown] = file
	return file, diags
}

// aboutVarFile says in place of the JSON parser, which takes all for
// configuration, what a whole file should be; but not of one with other errors.
func aboutVarFile(diags hcl.Diagnostics) hcl.Diagnostics {
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
func varFileNames(disk Files, dir string) ([]string, error) {
	names, err := configNames(disk, dir, "")
	if err != nil {
		return nil, err
	}
	rank := func(name string) int {
		stem := strings.TrimSuffix(name, jsonEnding)
		switch {
		case strings.HasSuffix(stem, autoVarsEnding):
			return 3
		case name == varFileName+jsonEnding:
			return 2
		case name == varFileName:
			return 1
		}
		return 0
	}
	names = slices.DeleteFunc(names, func(name string) bool { return rank(name) == 0 })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	return names, nil
}

// varFiles takes values out of variable files, one file over another.
type varFiles struct {
	*evaluator
	vars   map[string]*variable
	values map[string]given
	unused []*hcl.Attribute // that no variable takes
}

// read takes the values of one file: NAME = VALUE, with constants.
func (f *varFiles) read(file *hcl.File) {
	if file == nil || file.Body == nil {
		return // could not be parsed, and told
	}
	attributes, diags := file.Body.JustAttributes()
	if body, ok := bodyOf(file); ok {
		diags = nil // of blocks, which are told here
		for _, b := range body.Blocks {
			f.errorAt(b.DefRange(), "Block in a variable file", "A variable file holds lines NAME = VALUE only; blocks stand in .hcl files.")
		}
	}
	f.extend(aboutVarFile(diags))
	inOrder := func(a, b *hcl.Attribute) int { return cmp.Compare(a.Range.Start.Byte, b.Range.Start.Byte) }
	for _, a := range slices.SortedFunc(maps.Values(attributes), inOrder) {
		if f.vars[a.Name] == nil {
			f.unused = append(f.unused, a)
			continue
		}
		rng := a.Expr.Range()
		f.values[a.Name] = given{expr: a.Expr, rng: &rng}
	}
}

// maxUnusedNamed is how many values that no variable takes are named: a file
// that several configurations share may have any number of them.
const maxUnusedNamed = 3

func (f *varFiles) warnOfUnused() {
	for i, a := range f.unused {
		rng := a.NameRange
		d := &hcl.Diagnostic{
			Severity: hcl.DiagWarning, Subject: &rng, Summary: "Undeclared variable",
			Detail: fmt.Sprintf("The configuration has no variable %q, so this value is not used. %s", a.Name, variableSuggestion(a.Name, f.vars)),
		}
		if more := len(f.unused) - maxUnusedNamed; i == maxUnusedNamed && more > 1 {
			d.Detail = fmt.Sprintf("No variable takes this value and %d more in variable files. Values that several configurations share may be given as %sNAME in the environment, where those that are not declared are passed over.",
				more-1, VariablePrefix)
			f.add(d)
			return
		}
		f.add(d)
	}
}
