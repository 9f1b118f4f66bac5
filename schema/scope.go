package schema

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Scope is an evaluated configuration that can be asked what expressions come
// to, as they would in a file of its root module. It is not for concurrent use.
type Scope struct {
	session *session
	config  *Config         // nil after errors
	roots   map[string]Late // what may be referred to besides what the files declare
}

// Late makes a value when it is referred to.
type Late func() (cty.Value, error)

// Scope evaluates a configuration as Evaluate does. Where it has mistakes, the
// Scope knows what has a value in spite of them.
func (s *Source) Scope(opts Options) (*Scope, hcl.Diagnostics) {
	all := s.session(opts, maxInstances)
	config, diags := all.evaluate()
	if all.rank == nil { // not even begun
		return s.Bare(), diags
	}
	scope := &Scope{session: all, config: config, roots: map[string]Late{}}
	scope.roots[string(rootOutput)] = func() (cty.Value, error) { return scope.Outputs(), nil }
	return scope, slices.Clone(diags)
}

// Bare is the Scope of a configuration in which nothing is declared: it knows
// functions and paths.
func (s *Source) Bare() *Scope {
	empty := &Source{dir: s.dir, root: &moduleFiles{dir: s.dir, shown: "."}}
	scope, _ := empty.Scope(Options{})
	return scope
}

// Config is what the configuration evaluates to, nil if it has errors.
func (sc *Scope) Config() *Config { return sc.config }

// With is the Scope with more names to refer to.
func (sc *Scope) With(roots map[string]Late) *Scope {
	c := *sc
	c.roots = maps.Clone(sc.roots)
	maps.Copy(c.roots, roots)
	return &c
}

// Outputs is what the outputs of the configuration come to: output.NAME. Those
// that have no value are left out.
func (sc *Scope) Outputs() cty.Value {
	root := sc.session.root()
	vals := map[string]cty.Value{}
	for name, b := range root.decls.outputs {
		x := b.attr("value")
		if x == nil {
			continue
		}
		out := root.eval(x, nil)
		switch {
		case !out.ok:
			continue
		case root.constantBool(b.attr("sensitive"), false):
			out.val = markSensitive(out.val)
		}
		vals[name] = out.val
	}
	return cty.ObjectVal(vals)
}

// Parse parses what was typed as one expression; name is for diagnostics.
func (sc *Scope) Parse(src, name string) (hclsyntax.Expression, hcl.Diagnostics) {
	if diags := checkExpressionNesting([]byte(src), name); diags.HasErrors() {
		return nil, diags
	}
	expr, diags := hclsyntax.ParseExpression([]byte(src), name, hcl.InitialPos)
	return expr, firstOf(diags, name)
}

// Eval returns what an expression comes to. With errors the value is not to be
// used.
func (sc *Scope) Eval(expr hcl.Expression) (cty.Value, hcl.Diagnostics) {
	var out evaluated
	diags := sc.reporting(func() { out = sc.eval(&expression{name: "expression", expr: expr, rng: expr.Range()}) })
	return out.val, diags
}

// reporting returns what is reported while something is done.
func (sc *Scope) reporting(do func()) hcl.Diagnostics {
	*sc.session.report = *newReport()
	do()
	return sc.session.sorted()
}

// eval evaluates an expression of the root module that is not in its files.
func (sc *Scope) eval(x *expression) evaluated {
	with, ok := sc.prepare(x)
	if !ok {
		return evaluated{}
	}
	return sc.session.root().eval(x, with)
}

// prepare resolves an expression, and makes the values of the names that it
// refers to besides what the files declare.
func (sc *Scope) prepare(x *expression) (map[string]cty.Value, bool) {
	root := sc.session.root()
	with, ok := sc.given(x)
	if !ok {
		return nil, false
	}
	root.mod.resolve(x, allowed{})
	for _, ref := range x.refs {
		if root.isFailed(ref.symbol) {
			sc.session.errorAt(ref.rng, "No value", fmt.Sprintf("%s has no value, because there are errors in the configuration.", ref.symbol))
			return nil, false
		}
	}
	return with, !x.broken
}

// given makes the values of the names that an expression refers to besides what
// the files declare.
func (sc *Scope) given(x *expression) (map[string]cty.Value, bool) {
	with := map[string]cty.Value{}
	for _, traversal := range x.expr.Variables() {
		name := traversal.RootName()
		if sc.roots[name] == nil {
			continue
		}
		val, err := sc.roots[name]()
		if err != nil {
			sc.session.errorAt(traversal.SourceRange(), "No value", sentence(err.Error()))
			return nil, false
		}
		with[name] = val
	}
	if len(with) > 0 {
		x.iterators, x.perInstance = sortedKeys(with), true
		x.hoisted = x.expr // it is evaluated once
	}
	return with, true
}

// FailedCondition is the Extra of a diagnostic about a validation, condition or
// assertion that does not hold.
type FailedCondition struct {
	Of string // "var.NAME", "check.NAME", "output.NAME" or an address, with its module

	variable bool // it is a validation of a variable
}
