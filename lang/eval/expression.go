package eval

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/funcs"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/schema"
)

// Eval evaluates an expression for an instance, whose count or each is in
// instance; nil is for those without.
func (e *Evaluator) Eval(x *configs.Expression, instance map[string]cty.Value) configs.Result {
	if x.Broken {
		return configs.Result{}
	}
	if x.Result != nil {
		return *x.Result
	}
	if x.Context == nil {
		for _, ref := range x.Refs {
			if e.isFailed(ref.Symbol) {
				x.Broken = true // the cause is reported where it is
				return configs.Result{}
			}
		}
		x.Context = e.context(x.Refs)
	}
	ctx, expr := x.Context, x.Expr
	e.Momentary = e.Momentary || x.Momentary
	drew := func() bool { return false }
	if x.PerInstance || x.Momentary {
		ctx = ctx.NewChild()
		ctx.Variables = instance
		ctx.Functions, drew = e.functionsOf(x, instance)
	}
	if x.PerInstance {
		if x.Momentary {
			x.Hoisted = x.Expr
		}
		if x.Hoisted == nil {
			x.Hoisted = x.Expr
			if native, ok := x.Expr.(hclsyntax.Expression); ok {
				x.Hoisted = hoist(native, x.Context)
			}
		}
		expr = x.Hoisted
	}
	val, diags := expr.Value(ctx)
	if !x.PerInstance && x.Repeated && drew() { // in a template that it renders
		x.PerInstance = true
	}
	if x.PerInstance && len(diags) > 0 { // reported where it is written
		val, diags = x.Expr.Value(ctx)
	}
	e.Extend(e.improve(diags, x, ctx))
	out := configs.Result{Value: val, Context: ctx, OK: !diags.HasErrors()}
	if !x.PerInstance {
		x.Result = &out
	}
	return out
}

// functionsOf are what an expression calls otherwise than others do, nil for none, and
// whether it drew something at random.
func (e *Evaluator) functionsOf(x *configs.Expression, instance map[string]cty.Value) (functions map[string]function.Function, drew func() bool) {
	if !x.Momentary || e.Options.Moment.Applied.IsZero() {
		return nil, func() bool { return false }
	}
	rng := x.Expr.Range()
	key := ""
	for _, root := range []configs.Root{configs.RootCount, configs.RootEach} {
		if of, is := instance[string(root)]; is && of.Type().IsObjectType() {
			key = keyOf(of)
		}
	}
	at := fmt.Sprintf("%s %s:%d %s %s", e.Path, filepath.Base(rng.Filename), rng.Start.Byte, x.Name, key)
	return funcs.At(e.Source.Folder(), e.Options.Moment, funcs.Place(at))
}

// keyOf is the index or the key of an instance.
func keyOf(instance cty.Value) string {
	for _, name := range []string{"index", "key"} {
		if !instance.Type().HasAttribute(name) {
			continue
		}
		if text, err := convert.Convert(instance.GetAttr(name), cty.String); err == nil && text.IsKnown() && !text.IsNull() && !text.IsMarked() {
			return text.AsString()
		}
	}
	return ""
}

// isFailed reports whether a symbol has no value, for a reason that is reported.
func (e *Evaluator) isFailed(s configs.Symbol) bool {
	if s.Root != configs.RootModule {
		return e.failed[s]
	}
	if e.failed[configs.Symbol{Root: configs.RootModule, Name: s.Name}] {
		return true
	}
	for _, child := range e.Children[s.Name] {
		for _, output := range child.outputsOf(s.Output) {
			if child.failed[output] {
				return true
			}
		}
	}
	return false
}

// improve makes diagnostics of HCL's evaluation safe to show and more helpful.
func (e *Evaluator) improve(diags hcl.Diagnostics, x *configs.Expression, ctx *hcl.EvalContext) hcl.Diagnostics {
	return Helpful(Redact(diags, x, ctx))
}

// Helpful adds to diagnostics of HCL's evaluation what may be meant.
func Helpful(diags hcl.Diagnostics) hcl.Diagnostics {
	diags = typeHints(diags)
	for _, d := range diags {
		if unknown, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallUnknownDiagExtra](d); ok {
			name := unknown.CalledFunctionNamespace() + unknown.CalledFunctionName()
			d.Detail = strings.TrimSpace(fmt.Sprintf("There is no function %q. %s", name, funcs.Advice(name)))
		} else if hint := nameHint(d); hint != "" {
			d.Detail += " " + hint
		}
	}
	return diags
}

// Redact removes from diagnostics what may repeat a sensitive value: a
// function's error quotes its arguments, and the context within a for expression
// has its elements without their marks.
func Redact(diags hcl.Diagnostics, x *configs.Expression, ctx *hcl.EvalContext) hcl.Diagnostics {
	if len(diags) == 0 {
		return nil
	}
	if !hasSecrets(x.Expr, ctx) {
		return diags
	}
	out := make(hcl.Diagnostics, 0, len(diags))
	for _, d := range diags {
		hidden := *d
		if strings.Contains(d.Detail, `"`) || strings.Contains(d.Detail, "`") || d.Extra != nil {
			hidden.Detail = "The reason is not shown, because a sensitive value is part of this expression. Try it with a value that is no secret."
		}
		if d.EvalContext != nil && d.EvalContext != ctx {
			hidden.Expression, hidden.EvalContext = x.Expr, ctx
		}
		out = append(out, &hidden)
	}
	return out
}

// hasSecrets reports whether an expression refers to what must not be shown.
func hasSecrets(expr hcl.Expression, ctx *hcl.EvalContext) bool {
	return slices.ContainsFunc(expr.Variables(), func(traversal hcl.Traversal) bool {
		val, diags := traversal.TraverseAbs(ctx)
		return !diags.HasErrors() && (mark.IsSensitive(val) || mark.IsEphemeral(val))
	})
}

// context builds the variables that references need, and nothing else.
func (e *Evaluator) context(refs []configs.Reference) *hcl.EvalContext {
	tree := valueTree{}
	called := map[string]map[string]bool{} // outputs by module; nil: all
	for _, ref := range refs {
		s := ref.Symbol
		switch s.Root {
		case configs.RootVar:
			tree.put(e.Variables[s.Name], string(configs.RootVar), s.Name)
		case configs.RootLocal:
			tree.put(e.locals[s.Name], string(configs.RootLocal), s.Name)
		case configs.RootPath:
			tree.put(e.paths(e.Module), string(configs.RootPath))
		case configs.RootAddressed:
			tree.putObject(s.Addr, e.Object(s.Addr))
		case configs.RootData:
			kind, name, _ := strings.Cut(s.Name, ".")
			tree.put(e.data[s.Name], string(configs.RootData), kind, name)
		case configs.RootFray:
			tree.put(cty.StringVal(e.workspace()), string(configs.RootFray), "workspace")
		case configs.RootModule:
			outputs, seen := called[s.Name]
			switch {
			case s.Output == "":
				called[s.Name] = nil
			case !seen:
				called[s.Name] = map[string]bool{s.Output: true}
			case outputs != nil:
				outputs[s.Output] = true
			}
		case configs.RootCount, configs.RootEach, configs.RootSelf, configs.RootOutput, configs.RootValidation:
		}
	}
	for name, outputs := range called {
		tree.put(moduleObject(e.Decls.Calls[name].Repetition, e.Children[name], outputs), string(configs.RootModule), name)
	}
	ctx := e.Base.NewChild()
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

// putObject puts the value of a declared object where references find it.
func (t valueTree) putObject(addr schema.Address, val cty.Value) {
	if addr.Group != "" {
		t.put(val, string(schema.KindJobGroup), addr.Group, string(addr.Kind), addr.Name)
		return
	}
	t.put(val, string(addr.Kind), addr.Name)
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
