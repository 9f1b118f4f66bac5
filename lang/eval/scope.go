package eval

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/lang/syntax"
	"github.com/fray-ml/fray/schema"
)

// Scope is an evaluated configuration that can be asked what expressions come
// to, as they would in a file of its root module. It is not for concurrent use.
type Scope struct {
	Session *Session
	config  *schema.Config  // nil after errors
	roots   map[string]Late // what may be referred to besides what the files declare
}

// Late makes a value when it is referred to.
type Late func() (cty.Value, error)

// NewScope asks what is evaluated; config is what is decoded of it, nil after errors.
func NewScope(s *Session, config *schema.Config) *Scope {
	scope := &Scope{Session: s, config: config, roots: map[string]Late{}}
	scope.roots[string(configs.RootOutput)] = func() (cty.Value, error) { return scope.Outputs(), nil }
	return scope
}

// Config is what the configuration evaluates to, nil if it has errors.
func (sc *Scope) Config() *schema.Config { return sc.config }

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
	root := sc.Session.Root()
	vals := map[string]cty.Value{}
	for name, b := range root.Decls.Outputs {
		x := b.Attr("value")
		if x == nil {
			continue
		}
		out := root.Eval(x, nil)
		switch {
		case !out.OK:
			continue
		case root.ConstantBool(b.Attr("sensitive"), false):
			out.Value = mark.MakeSensitive(out.Value)
		}
		vals[name] = out.Value
	}
	return cty.ObjectVal(vals)
}

// Parse parses what was typed as one expression; name is for diagnostics.
func (sc *Scope) Parse(src, name string) (hclsyntax.Expression, hcl.Diagnostics) {
	if diags := syntax.CheckExpression([]byte(src), name); diags.HasErrors() {
		return nil, diags
	}
	expr, diags := hclsyntax.ParseExpression([]byte(src), name, hcl.InitialPos)
	if !diags.HasErrors() {
		syntax.Adapt(expr)
	}
	return expr, syntax.FirstErrors(diags, name)
}

// Eval returns what an expression comes to. With errors the value is not to be
// used.
func (sc *Scope) Eval(expr hcl.Expression) (cty.Value, hcl.Diagnostics) {
	var out configs.Result
	diags := sc.Reporting(func() { out = sc.evaluate(&configs.Expression{Name: "expression", Expr: expr, Range: expr.Range()}) })
	return out.Value, diags
}

// Reporting returns what is reported while something is done.
func (sc *Scope) Reporting(do func()) hcl.Diagnostics {
	*sc.Session.Report = *diagnose.New()
	do()
	return sc.Session.Sorted()
}

// evaluate evaluates an expression of the root module that is not in its files.
func (sc *Scope) evaluate(x *configs.Expression) configs.Result {
	with, ok := sc.Prepare(x)
	if !ok {
		return configs.Result{}
	}
	return sc.Session.Root().Eval(x, with)
}

// Prepare resolves an expression, and makes the values of the names that it
// refers to besides what the files declare.
func (sc *Scope) Prepare(x *configs.Expression) (map[string]cty.Value, bool) {
	root := sc.Session.Root()
	with, ok := sc.given(x)
	if !ok {
		return nil, false
	}
	root.Module.Resolve(x, configs.Allowed{})
	for _, ref := range x.Refs {
		if root.isFailed(ref.Symbol) {
			sc.Session.ErrorAt(ref.Range, "No value", fmt.Sprintf("%s has no value, because there are errors in the configuration.", ref.Symbol))
			return nil, false
		}
	}
	return with, !x.Broken
}

// given makes the values of the names that an expression refers to besides what
// the files declare.
func (sc *Scope) given(x *configs.Expression) (map[string]cty.Value, bool) {
	with := map[string]cty.Value{}
	for _, traversal := range configs.References(x.Expr) {
		name := traversal.RootName()
		if sc.roots[name] == nil {
			continue
		}
		val, err := sc.roots[name]()
		if err != nil {
			sc.Session.ErrorAt(traversal.SourceRange(), "No value", diagnose.Sentence(err.Error()))
			return nil, false
		}
		with[name] = val
	}
	if len(with) > 0 {
		x.Iterators, x.PerInstance = slices.Sorted(maps.Keys(with)), true
		x.Hoisted = x.Expr // it is evaluated once
	}
	return with, true
}
