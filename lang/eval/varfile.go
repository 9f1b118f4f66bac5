package eval

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/load"
)

// givenValues collects the values that come from outside, each source over the
// ones before it: environment, files that are read without being asked for, and
// the command line in its order. Of a value nothing is read before it is known
// to be the one that counts.
func (e *Evaluator) givenValues(vars map[string]*variable) map[string]given {
	values := map[string]given{}
	environ := cutPrefixes(e.Options.Environ, VariablePrefix)
	for _, name := range slices.Sorted(maps.Keys(environ)) {
		if vars[name] != nil { // another program may have meant the rest
			values[name] = given{text: environ[name], from: "the environment variable " + VariablePrefix + name}
		}
	}
	files := &varFiles{Evaluator: e, vars: vars, values: values}
	for _, file := range e.Source.VariableFiles {
		files.read(file)
	}
	for _, g := range e.Options.Given {
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
func (e *Evaluator) givenVar(g Given, vars map[string]*variable, into map[string]given) {
	name, text, ok := strings.Cut(g.Text, "=")
	name = strings.TrimSpace(name)
	switch {
	case !ok:
		e.Add(diagnose.WithoutPlace("Invalid value for --var", fmt.Sprintf("--var %q has no value: write --var 'NAME=VALUE'.", g.Text)))
	case vars[name] == nil:
		e.Add(diagnose.WithoutPlace("Undeclared variable", fmt.Sprintf("--var names %q, but there is no such variable. %s", name, variableSuggestion(name, vars))))
	case g.Kind == GivenAnswer:
		into[name] = given{text: text}
	default:
		into[name] = given{text: text, from: "--var"}
	}
}

func (e *Evaluator) readVarFile(path string) *hcl.File {
	abs, err := filepath.Abs(path)
	if err != nil {
		e.Add(diagnose.WithoutPlace("Unreadable file", fmt.Sprintf("%v.", err)))
		return nil
	}
	f, diags := load.ReadFile(e.Source.Disk, path, abs)
	if diags.HasErrors() {
		e.Extend(diags)
		return nil
	}
	file, diags := e.Source.ParseVariableFile(f)
	e.Extend(diags)
	if diags.HasErrors() {
		return nil
	}
	return file
}

// varFiles takes values out of variable files, one file over another.
type varFiles struct {
	*Evaluator
	vars   map[string]*variable
	values map[string]given
	unused []*hcl.Attribute // that no variable takes
}

// read takes the values of one file: NAME = VALUE, with constants.
func (f *varFiles) read(file *hcl.File) {
	if file == nil || file.Body == nil {
		return // could not be parsed, and is reported
	}
	attributes, diags := file.Body.JustAttributes()
	if body, ok := load.BodyOf(file); ok {
		diags = nil // of blocks, which are reported here
		for _, b := range body.Blocks {
			f.ErrorAt(b.DefRange(), "Block in a variable file", "A variable file holds lines NAME = VALUE only; blocks stand in .hcl files.")
		}
	}
	f.Extend(load.AboutVariableFile(diags))
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
			f.Add(d)
			return
		}
		f.Add(d)
	}
}

func cutPrefixes(environ []string, prefix string) map[string]string {
	found := map[string]string{}
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if rest, has := strings.CutPrefix(name, prefix); ok && has && rest != "" {
			found[rest] = value
		}
	}
	return found
}
