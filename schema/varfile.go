package schema

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// envPrefix starts the names of environment variables that give values.
const envPrefix = "FRAY_VAR_"

// givenValues collects the values that come from outside, each source over the
// ones before it: environment, files that are read without being asked for,
// --var-file, --var.
func (e *evaluator) givenValues(vars map[string]*variable) map[string]given {
	values := map[string]given{}
	environ := cutPrefixes(e.opts.Environ, envPrefix)
	for _, name := range sortedKeys(environ) {
		if v := vars[name]; v != nil { // another program may have meant the rest
			values[name] = e.textValue(name, v, environ[name], "the environment variable "+envPrefix+name)
		}
	}
	for _, file := range e.source.varFiles {
		e.fileValues(file, vars, values)
	}
	for _, path := range e.opts.VarFiles {
		if file := e.readVarFile(path); file != nil {
			e.fileValues(file, vars, values)
		}
	}
	for _, arg := range e.opts.Vars {
		name, text, ok := strings.Cut(arg, "=")
		name = strings.TrimSpace(name)
		switch v := vars[name]; {
		case !ok:
			e.add(errorWithoutPlace("Invalid --var", fmt.Sprintf("--var %q has no value: write --var 'NAME=VALUE'.", arg)))
		case v == nil:
			e.add(errorWithoutPlace("Undeclared variable", fmt.Sprintf("--var names %q, but there is no such variable. %s", name, variableSuggestion(name, vars))))
		default:
			values[name] = e.textValue(name, v, text, "--var")
		}
	}
	return values
}

func (e *evaluator) textValue(name string, v *variable, text, from string) given {
	val, err := v.parseGiven(text)
	if err != nil {
		e.wrongGiven(name, v, given{from: from}, err.Error())
		return given{}
	}
	return given{val: val, from: from}
}

func (e *evaluator) readVarFile(path string) *hcl.File {
	abs, err := filepath.Abs(path)
	if err != nil {
		e.add(errorWithoutPlace("Unreadable variable file", fmt.Sprintf("%v.", err)))
		return nil
	}
	f, diags := readSource(path, abs)
	if diags.HasErrors() {
		e.extend(diags)
		return nil
	}
	file, diags := e.source.parseFile(f)
	e.extend(diags)
	if diags.HasErrors() {
		return nil
	}
	return file
}

// fileValues reads a variable file: lines NAME = VALUE, with constants.
func (e *evaluator) fileValues(file *hcl.File, vars map[string]*variable, into map[string]given) {
	body, ok := bodyOf(file)
	if !ok {
		return
	}
	for _, b := range body.Blocks {
		e.errorAt(b.DefRange(), "Block in a variable file", "A variable file holds lines NAME = VALUE only; blocks stand in .hcl files.")
	}
	for _, a := range sortedAttributes(body) {
		if vars[a.Name] == nil {
			rng := a.NameRange
			e.add(&hcl.Diagnostic{
				Severity: hcl.DiagWarning, Subject: &rng, Summary: "Undeclared variable",
				Detail: fmt.Sprintf("The configuration has no variable %q, so this value is not used. %s", a.Name, variableSuggestion(a.Name, vars)),
			})
			continue
		}
		rng := a.Expr.Range()
		val, diags := a.Expr.Value(nil)
		if diags.HasErrors() {
			e.errorAt(rng, "Invalid value for var."+a.Name, "A variable file holds constants: no references and no functions.")
			val = cty.NilVal
		}
		into[a.Name] = given{val: val, rng: &rng}
	}
}
