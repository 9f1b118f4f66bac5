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
func givenValues(s *Session, vars map[string]*variable) map[string]given {
	outside := &outsideValues{Report: s.Report, source: s.Source, vars: vars, values: map[string]given{}}
	environ := cutPrefixes(s.Options.Environ, VariablePrefix)
	for _, name := range slices.Sorted(maps.Keys(environ)) {
		if vars[name] != nil { // another program may have meant the rest
			outside.values[name] = given{text: environ[name], from: "the environment variable " + VariablePrefix + name}
		}
	}
	for _, file := range s.Source.VariableFiles {
		outside.take(file)
	}
	for _, g := range s.Options.Given {
		switch g.Kind {
		case GivenVarFile:
			if file := outside.open(g.Text); file != nil {
				outside.take(file)
			}
		case GivenVar, GivenAnswer:
			outside.assign(g)
		}
	}
	outside.warnOfUnused()
	return outside.values
}

// outsideValues takes values for variables, each source over those before it.
type outsideValues struct {
	*diagnose.Report
	source *load.Source
	vars   map[string]*variable
	values map[string]given
	unused []*hcl.Attribute // of variable files, that no variable takes
}

// assign takes over a NAME=VALUE.
func (o *outsideValues) assign(g Given) {
	name, text, ok := strings.Cut(g.Text, "=")
	name = strings.TrimSpace(name)
	switch {
	case !ok:
		o.Add(diagnose.WithoutPlace("Invalid value for --var", fmt.Sprintf("--var %q has no value: write --var 'NAME=VALUE'.", g.Text)))
	case o.vars[name] == nil:
		o.Add(diagnose.WithoutPlace("Undeclared variable", fmt.Sprintf("--var names %q, but there is no such variable. %s", name, variableSuggestion(name, o.vars))))
	case g.Kind == GivenAnswer:
		o.values[name] = given{text: text}
	default:
		o.values[name] = given{text: text, from: "--var"}
	}
}

// open reads a variable file; nil for one that cannot be read, which is reported.
func (o *outsideValues) open(path string) *hcl.File {
	abs, err := filepath.Abs(path)
	if err != nil {
		o.Add(diagnose.WithoutPlace("Unreadable file", fmt.Sprintf("%v.", err)))
		return nil
	}
	f, diags := load.ReadFile(o.source.Disk, path, abs)
	if diags.HasErrors() {
		o.Extend(diags)
		return nil
	}
	file, diags := o.source.ParseVariableFile(f)
	o.Extend(diags)
	if diags.HasErrors() {
		return nil
	}
	return file
}

// take takes the values of one file: NAME = VALUE, with constants.
func (o *outsideValues) take(file *hcl.File) {
	if file == nil || file.Body == nil {
		return // could not be parsed, and is reported
	}
	attributes, diags := file.Body.JustAttributes()
	if body, ok := load.BodyOf(file); ok {
		diags = nil // of blocks, which are reported here
		for _, b := range body.Blocks {
			o.ErrorAt(b.DefRange(), "Block in a variable file", "A variable file holds lines NAME = VALUE only; blocks stand in .hcl files.")
		}
	}
	o.Extend(load.AboutVariableFile(diags))
	inOrder := func(a, b *hcl.Attribute) int { return cmp.Compare(a.Range.Start.Byte, b.Range.Start.Byte) }
	for _, a := range slices.SortedFunc(maps.Values(attributes), inOrder) {
		if o.vars[a.Name] == nil {
			o.unused = append(o.unused, a)
			continue
		}
		rng := a.Expr.Range()
		o.values[a.Name] = given{expr: a.Expr, rng: &rng}
	}
}

// maxUnusedNamed is how many values that no variable takes are named: a file
// that several configurations share may have any number of them.
const maxUnusedNamed = 3

func (o *outsideValues) warnOfUnused() {
	for i, a := range o.unused {
		rng := a.NameRange
		d := &hcl.Diagnostic{
			Severity: hcl.DiagWarning, Subject: &rng, Summary: "Undeclared variable",
			Detail: fmt.Sprintf("The configuration has no variable %q, so this value is not used. %s", a.Name, variableSuggestion(a.Name, o.vars)),
		}
		if more := len(o.unused) - maxUnusedNamed; i == maxUnusedNamed && more > 1 {
			d.Detail = fmt.Sprintf("No variable takes this value and %d more in variable files. Values that several configurations share may be given as %sNAME in the environment, where those that are not declared are passed over.",
				more-1, VariablePrefix)
			o.Add(d)
			return
		}
		o.Add(d)
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
