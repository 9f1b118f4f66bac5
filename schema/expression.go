package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// expression is an attribute's expression with what it refers to. One that does
// not refer to an instance (count.index, each) is evaluated once.
type expression struct {
	name string
	mode attributeMode
	expr hcl.Expression
	rng  hcl.Range // of the attribute

	iterators   []string // names that the dynamic blocks around it give
	refs        []reference
	broken      bool // refers to what is not there; told already
	perInstance bool // refers to count, each or self

	hoisted hcl.Expression // of one that is perInstance; nil until needed

	ctx    *hcl.EvalContext // with all refs but those to an instance; nil until needed
	result *evaluated       // of one that is not perInstance; nil until evaluated
}

// evaluated is the outcome of an evaluation. Without ok it failed, and why is
// told already.
type evaluated struct {
	val cty.Value
	ctx *hcl.EvalContext
	ok  bool
}

func newExpression(a *hclsyntax.Attribute, mode attributeMode) *expression {
	return &expression{name: a.Name, mode: mode, expr: a.Expr, rng: a.SrcRange}
}

// anew is a copy that is evaluated for itself.
func (x *expression) anew() *expression {
	c := *x
	c.ctx, c.result, c.hoisted = nil, nil, nil
	return &c
}

// sensitiveMark marks values that must not be shown.
type sensitiveMark struct{}

// isSensitive reports whether a value or any part of it is sensitive.
func isSensitive(v cty.Value) bool { return v.HasMarkDeep(sensitiveMark{}) }

// eval evaluates an expression for an instance, whose count or each is in
// instance; nil is for those without.
func (e *evaluator) eval(x *expression, instance map[string]cty.Value) evaluated {
	if x.broken {
		return evaluated{}
	}
	if x.result != nil {
		return *x.result
	}
	if x.ctx == nil {
		for _, ref := range x.refs {
			if e.isFailed(ref.symbol) {
				x.broken = true // the cause is told where it is
				return evaluated{}
			}
		}
		x.ctx = e.context(x.refs)
	}
	ctx, expr := x.ctx, x.expr
	if x.perInstance {
		ctx = ctx.NewChild()
		ctx.Variables = instance
		if x.hoisted == nil {
			x.hoisted = x.expr
			if native, ok := x.expr.(hclsyntax.Expression); ok {
				x.hoisted = hoist(native, x.ctx)
			}
		}
		expr = x.hoisted
	}
	val, diags := expr.Value(ctx)
	if x.perInstance && len(diags) > 0 { // told as it is written
		val, diags = x.expr.Value(ctx)
	}
	e.extend(e.improve(diags, x, ctx))
	out := evaluated{val: val, ctx: ctx, ok: !diags.HasErrors()}
	if !x.perInstance {
		x.result = &out
	}
	return out
}

// isFailed reports whether a symbol has no value, for a reason that is told.
func (e *evaluator) isFailed(s symbol) bool {
	if s.root != rootModule {
		return e.failed[s]
	}
	if e.failed[symbol{root: rootModule, name: s.name}] {
		return true
	}
	for _, child := range e.children[s.name] {
		for _, output := range child.outputsOf(s.output) {
			if child.failed[output] {
				return true
			}
		}
	}
	return false
}

// improve makes diagnostics of HCL's evaluation safe to show and more helpful.
func (e *evaluator) improve(diags hcl.Diagnostics, x *expression, ctx *hcl.EvalContext) hcl.Diagnostics {
	diags = redact(diags, x, ctx)
	for _, d := range diags {
		if unknown, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](d); ok {
			name := unknown.CalledFunctionNamespace() + unknown.CalledFunctionName()
			d.Detail = strings.TrimSpace(fmt.Sprintf("There is no function %q. %s", name, functionAdvice(name)))
		} else if hint := nameHint(d); hint != "" {
			d.Detail += " " + hint
		}
	}
	return diags
}

// redact removes from diagnostics what may repeat a sensitive value: a
// function's error quotes its arguments, and the context within a for expression
// has its elements without their marks.
func redact(diags hcl.Diagnostics, x *expression, ctx *hcl.EvalContext) hcl.Diagnostics {
	if len(diags) == 0 {
		return nil
	}
	if !hasSecrets(x.expr, ctx) {
		return diags
	}
	out := make(hcl.Diagnostics, 0, len(diags))
	for _, d := range diags {
		hidden := *d
		if strings.Contains(d.Detail, `"`) || strings.Contains(d.Detail, "`") || d.Extra != nil {
			hidden.Detail = "The reason is not shown, because a sensitive value is part of this expression. Try it with a value that is no secret."
		}
		if d.EvalContext != nil && d.EvalContext != ctx {
			hidden.Expression, hidden.EvalContext = x.expr, ctx
		}
		out = append(out, &hidden)
	}
	return out
}

// hasSecrets reports whether an expression refers to what must not be shown.
func hasSecrets(expr hcl.Expression, ctx *hcl.EvalContext) bool {
	return slices.ContainsFunc(expr.Variables(), func(traversal hcl.Traversal) bool {
		val, diags := traversal.TraverseAbs(ctx)
		return !diags.HasErrors() && (isSensitive(val) || isEphemeral(val))
	})
}

// context builds the variables that references need, and nothing else.
func (e *evaluator) context(refs []reference) *hcl.EvalContext {
	tree := valueTree{}
	called := map[string]map[string]bool{} // outputs by module; nil: all
	for _, ref := range refs {
		s := ref.symbol
		switch s.root {
		case rootVar:
			tree.put(e.variables[s.name], string(rootVar), s.name)
		case rootLocal:
			tree.put(e.locals[s.name], string(rootLocal), s.name)
		case rootPath:
			tree.put(e.paths(), string(rootPath))
		case rootThing:
			e.putThing(tree, s.addr)
		case rootData:
			kind, name, _ := strings.Cut(s.name, ".")
			tree.put(e.data[s.name], string(rootData), kind, name)
		case rootFray:
			tree.put(cty.StringVal(e.workspace()), string(rootFray), "workspace")
		case rootModule:
			outputs, seen := called[s.name]
			switch {
			case s.output == "":
				called[s.name] = nil
			case !seen:
				called[s.name] = map[string]bool{s.output: true}
			case outputs != nil:
				outputs[s.output] = true
			}
		case rootCount, rootEach, rootSelf, rootOutput, rootValidation:
		}
	}
	for name, outputs := range called {
		tree.put(e.moduleObject(name, outputs), string(rootModule), name)
	}
	ctx := e.base.NewChild()
	ctx.Variables = tree.values()
	return ctx
}

// valueTree is a tree of names with values as leaves, which becomes objects.
type valueTree map[string]any // cty.Value or valueTree

func (t valueTree) put(v cty.Value, path ...string) {
	for _, name := range path[:len(path)-1] {
		next, ok := t[name].(valueTree)
		if !ok {
			if _, whole := t[name].(cty.Value); whole {
				return // the whole is there already, this part in it
			}
			next = valueTree{}
			t[name] = next
		}
		t = next
	}
	t[path[len(path)-1]] = v
}

func (t valueTree) values() map[string]cty.Value {
	vals := make(map[string]cty.Value, len(t))
	for name, v := range t {
		switch v := v.(type) {
		case cty.Value:
			vals[name] = v
		case valueTree:
			vals[name] = cty.ObjectVal(v.values())
		}
	}
	return vals
}
