package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/schema"
)

// Check warns of what is legal and unwise, once everything else is right. The
// warnings are a closed list (docs/errors.md), each with a way to silence it that
// has more to report about the configuration than before. Once canceled, some are missing.
func Check(s *eval.Session, c *schema.Config) {
	for _, m := range s.Modules {
		if !isOurs(m) {
			continue
		}
		if s.Options.Partial { // who runs something is not told of what is not used
			lintNames(m)
		}
		lintData(m)
	}
	lintVariables(s)
	lintJobs(s, c.Desired.Jobs)
	lintReservations(s, &c.Desired)
}

// isOurs reports whether a module is in a directory that the user writes in,
// rather than in an archive.
func isOurs(m *configs.Module) bool { return m.Files.Archive == "" }

// lintNames warns of what is given a name that nothing uses. A name that begins
// with an underscore is meant to be there without use.
func lintNames(m *configs.Module) {
	used := usedNames(m)
	unused := func(s configs.Symbol) bool { return !used[s] && !strings.HasPrefix(s.Name, "_") }
	for _, name := range m.Decls.VariableNames() {
		if unused(configs.Symbol{Root: configs.RootVar, Name: name}) {
			m.WarnAt(m.Decls.Variables[name].Range(), "Unused variable", fmt.Sprintf("Nothing refers to var.%s. Remove the block, or name it _%s if its values are to be accepted all the same.", name, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Decls.Locals)) {
		if unused(configs.Symbol{Root: configs.RootLocal, Name: name}) {
			m.WarnAt(m.Decls.Locals[name].Expression.Range, "Unused local value", fmt.Sprintf("Nothing refers to local.%s. Remove it, or name it _%s to keep it.", name, name))
		}
	}
}

// lintData warns of data that is read for nothing.
func lintData(m *configs.Module) {
	used := usedNames(m)
	for _, name := range slices.Sorted(maps.Keys(m.Decls.Data)) {
		decl := m.Decls.Data[name]
		if decl.Check == "" && !used[configs.Symbol{Root: configs.RootData, Name: name}] && !strings.HasPrefix(decl.Block.Name, "_") {
			m.WarnAt(decl.Block.Range(), "Unused data", fmt.Sprintf("data.%s is read in every plan and nothing refers to it. Remove the block, or move it into a check if being able to read it is the point.", name))
		}
	}
}

// usedNames are the variables, locals and data that something refers to, but for
// the validation of a variable itself.
func usedNames(m *configs.Module) map[configs.Symbol]bool {
	used := map[configs.Symbol]bool{}
	eachExpression(m, func(x *configs.Expression, of configs.Symbol) {
		for _, ref := range x.Refs {
			if ref.Symbol != of {
				used[ref.Symbol] = true
			}
		}
		if x.Mode != language.ModeRaw {
			return
		}
		for _, t := range configs.References(x.Expr) { // references that are read, not evaluated
			name, _ := configs.StepName(t, 1)
			if t.RootName() == string(configs.RootData) {
				of, _ := configs.StepName(t, 2)
				name += "." + of
			}
			used[configs.Symbol{Root: configs.Root(t.RootName()), Name: name}] = true
		}
	})
	return used
}

// eachExpression visits every expression of a module, with the variable that it
// stands in, unless it is canceled.
func eachExpression(m *configs.Module, visit func(x *configs.Expression, of configs.Symbol)) {
	plain := func(x *configs.Expression) { visit(x, configs.Symbol{}) }
	d := m.Decls
	for _, name := range slices.Sorted(maps.Keys(d.Locals)) {
		plain(d.Locals[name].Expression)
	}
	for _, name := range d.VariableNames() {
		if m.Canceled() {
			return
		}
		d.Variables[name].Walk(func(x *configs.Expression) { visit(x, configs.Symbol{Root: configs.RootVar, Name: name}) })
	}
	blocks := slices.Concat([]*configs.Block{d.Fray, d.Controller}, d.Imports, d.Removals, d.Checks)
	for _, b := range d.Providers {
		blocks = append(blocks, b)
	}
	for _, b := range d.Outputs {
		blocks = append(blocks, b)
	}
	for _, some := range []map[string]*configs.Declaration{d.Calls, d.Data} {
		for _, decl := range some {
			blocks = append(blocks, decl.Block)
		}
	}
	for _, decl := range d.Addressed {
		if m.Canceled() {
			return
		}
		if decl.Group == nil { // those of a group are in its block
			blocks = append(blocks, decl.Block)
		}
	}
	for _, b := range blocks {
		if m.Canceled() {
			return
		}
		b.Walk(plain)
	}
}

// lintVariables warns of variables that no value from outside fits, because
// values are taken as text where no type is stated.
func lintVariables(s *eval.Session) {
	decls := s.Root().Decls
	for _, name := range decls.VariableNames() {
		x := decls.Variables[name].Attr("default")
		if x == nil || decls.Variables[name].Attr("type") != nil {
			continue
		}
		val, diags := x.Expr.Value(s.Base)
		if diags.HasErrors() || val.IsNull() || val.Type().IsPrimitiveType() || !val.IsWhollyKnown() {
			continue
		}
		s.WarnAt(decls.Variables[name].Range(), "Variable without a type", fmt.Sprintf(
			"The default is %s, but a value from --var or the environment is taken as text where no type is stated. Add type = %s.", diagnose.Friendly(val), suggestedType(val)))
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
