package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// lint warns of what is legal and unwise, once everything else is right. The
// warnings are a closed list (docs/errors.md), each with a way to silence it that
// says more about the configuration than it did before.
func (s *session) lint(c *Config) {
	for _, m := range s.all {
		if m.isOurs() {
			m.lintNames()
		}
	}
	s.lintVariables()
	s.lintJobs(c.Desired.Jobs)
	s.lintReservations(&c.Desired)
}

func (r *report) warnAt(rng hcl.Range, summary, detail string) {
	r.add(&hcl.Diagnostic{Severity: hcl.DiagWarning, Subject: &rng, Summary: summary, Detail: detail})
}

// isOurs reports whether a module is in a directory that the user writes in,
// rather than in an archive.
func (m *module) isOurs() bool { return m.files.archive == "" }

// lintNames warns of what is given a name that nothing uses. A name that begins
// with an underscore is meant to be there without use.
func (m *module) lintNames() {
	used := m.usedNames()
	unused := func(s symbol) bool { return !used[s] && !strings.HasPrefix(s.name, "_") }
	for _, name := range m.decls.variableNames() {
		if unused(symbol{root: rootVar, name: name}) {
			m.warnAt(m.decls.variables[name].rng(), "Unused variable", fmt.Sprintf("Nothing refers to var.%s. Remove the block, or name it _%s if its values are to be accepted all the same.", name, name))
		}
	}
	for _, name := range sortedKeys(m.decls.locals) {
		if unused(symbol{root: rootLocal, name: name}) {
			m.warnAt(m.decls.locals[name].x.rng, "Unused local value", fmt.Sprintf("Nothing refers to local.%s. Remove it, or name it _%s to keep it.", name, name))
		}
	}
	for _, name := range sortedKeys(m.decls.data) {
		decl := m.decls.data[name]
		if decl.check == "" && !used[symbol{root: rootData, name: name}] && !strings.HasPrefix(decl.block.name, "_") {
			m.warnAt(decl.block.rng(), "Unused data", fmt.Sprintf("data.%s is read in every plan and nothing refers to it. Remove the block, or move it into a check if being able to read it is the point.", name))
		}
	}
}

// usedNames are the variables, locals and data that something refers to, but for
// the validation of a variable itself.
func (m *module) usedNames() map[symbol]bool {
	used := map[symbol]bool{}
	m.eachExpression(func(x *expression, of symbol) {
		for _, ref := range x.refs {
			if ref.symbol != of {
				used[ref.symbol] = true
			}
		}
		if x.mode != modeRaw {
			return
		}
		for _, t := range x.expr.Variables() { // references that are read, not evaluated
			name, _ := stepName(t, 1)
			if t.RootName() == string(rootData) {
				of, _ := stepName(t, 2)
				name += "." + of
			}
			used[symbol{root: rootName(t.RootName()), name: name}] = true
		}
	})
	return used
}

// eachExpression visits every expression of a module, with the variable that it
// stands in.
func (m *module) eachExpression(visit func(x *expression, of symbol)) {
	plain := func(x *expression) { visit(x, symbol{}) }
	d := m.decls
	for _, name := range sortedKeys(d.locals) {
		plain(d.locals[name].x)
	}
	for _, name := range d.variableNames() {
		d.variables[name].walk(func(x *expression) { visit(x, symbol{root: rootVar, name: name}) })
	}
	blocks := slices.Concat([]*block{d.fray, d.controller}, d.imports, d.removals, d.checks)
	for _, b := range d.providers {
		blocks = append(blocks, b)
	}
	for _, b := range d.outputs {
		blocks = append(blocks, b)
	}
	for _, some := range []map[string]*declaration{d.calls, d.data} {
		for _, decl := range some {
			blocks = append(blocks, decl.block)
		}
	}
	for _, decl := range d.things {
		if decl.group == nil { // those of a group are in its block
			blocks = append(blocks, decl.block)
		}
	}
	for _, b := range blocks {
		b.walk(plain)
	}
}

// lintVariables warns of variables that no value from outside fits, because
// values are taken as text where no type is stated.
func (s *session) lintVariables() {
	decls := s.root().decls
	for _, name := range decls.variableNames() {
		x := decls.variables[name].attr("default")
		if x == nil || decls.variables[name].attr("type") != nil {
			continue
		}
		val, diags := x.expr.Value(s.base)
		if diags.HasErrors() || val.IsNull() || val.Type().IsPrimitiveType() || !val.IsWhollyKnown() {
			continue
		}
		s.warnAt(decls.variables[name].rng(), "Variable without a type", fmt.Sprintf(
			"The default is %s, but a value from --var or the environment is taken as text where no type is stated. Add type = %s.", friendly(val), suggestedType(val)))
	}
}

// suggestedType is the type that a default most likely stands for.
func suggestedType(val cty.Value) string {
	elements := val.Type()
	switch {
	case elements.IsTupleType() && val.LengthInt() == 0:
		return "list(any)"
	case elements.IsTupleType():
		if list, err := convert.Convert(val, cty.List(cty.DynamicPseudoType)); err == nil {
			return typeexpr.TypeString(list.Type())
		}
		return "any"
	case elements.IsObjectType() && val.LengthInt() == 0:
		return "map(any)"
	}
	return typeexpr.TypeString(val.Type())
}
