package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// lifecycle decodes the lifecycle block of a declaration, but for its conditions.
func (e *evaluator) lifecycle(decl *declaration) Lifecycle {
	b := decl.block.child("lifecycle")
	if b == nil {
		return Lifecycle{}
	}
	l := Lifecycle{
		PreventDestroy:      e.constantBool(b.attr("prevent_destroy"), false),
		CreateBeforeDestroy: e.constantBool(b.attr("create_before_destroy"), false),
		Ignore:              e.ignored(decl, b.attr("ignore_changes")),
	}
	if x := b.attr("replace_triggered_by"); x != nil {
		e.triggers(&l, x)
	}
	return l
}

// ignored reads ignore_changes: names of attributes, or all.
func (e *evaluator) ignored(decl *declaration, x *expression) []string {
	if x == nil {
		return nil
	}
	if hcl.ExprAsKeyword(x.expr) == "all" {
		return []string{"all"}
	}
	exprs, diags := hcl.ExprList(x.expr)
	if diags.HasErrors() {
		e.errorAt(x.expr.Range(), "Invalid value for ignore_changes", "Write a list of attributes, such as [environment.env, labels], or all.")
		return nil
	}
	var paths []string
	for _, expr := range exprs {
		traversal, diags := hcl.RelTraversalForExpr(expr)
		if diags.HasErrors() {
			e.errorAt(expr.Range(), "Invalid value for ignore_changes", "Write the name of an attribute without quotes, such as environment.env[\"NAME\"].")
			continue
		}
		path, detail := attributePath(decl.block.typ, traversal)
		if detail != "" {
			e.errorAt(expr.Range(), "Invalid value for ignore_changes", detail)
			continue
		}
		if strings.HasPrefix(path, "restart") { // which specs have as one
			path = "retries"
		}
		paths = append(paths, actorPaths(path)...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// attributePath reads the path of an attribute in a block of a type; detail says
// what is wrong with it.
func attributePath(typ *blockType, t hcl.Traversal) (path, detail string) {
	var names []string
	for i := range t {
		name, ok := relativeName(t[i])
		switch {
		case !ok:
			return "", "Write names, such as environment.env[\"NAME\"]."
		case typ == nil: // in the value of an attribute
		case typ.attr(name) != nil:
			typ = nil
		case len(typ.variants(name)) > 0 && name != "lifecycle":
			typ = typ.variants(name)[0]
		default:
			return "", fmt.Sprintf("%s has no attribute %q. %s", capitalized(typ.described()), name, didYouMean(name, slices.DeleteFunc(append(typ.attrNames(), typ.blockNames()...), func(other string) bool { return other == "lifecycle" })))
		}
		names = append(names, name)
	}
	return strings.Join(names, "."), ""
}

func relativeName(step hcl.Traverser) (string, bool) {
	if root, ok := step.(hcl.TraverseRoot); ok {
		return root.Name, true
	}
	return stepName(hcl.Traversal{step}, 0)
}

// triggers reads replace_triggered_by: things, attributes of them, and values.
func (e *evaluator) triggers(l *Lifecycle, x *expression) {
	exprs, diags := hcl.ExprList(x.expr)
	if diags.HasErrors() {
		e.errorAt(x.expr.Range(), "Invalid value for replace_triggered_by", "Write a list of references, such as [job.data, var.version].")
		return
	}
	var values []cty.Value
	for _, expr := range exprs {
		if trigger, ok := e.trigger(expr); ok {
			l.TriggeredBy = append(l.TriggeredBy, trigger)
			continue
		}
		if val, ok := e.triggerValue(expr); ok {
			values = append(values, val)
		}
	}
	slices.SortFunc(l.TriggeredBy, func(a, b Trigger) int {
		if c := a.Addr.Compare(b.Addr); c != 0 {
			return c
		}
		return strings.Compare(a.Path, b.Path)
	})
	l.TriggeredBy = slices.Compact(l.TriggeredBy)
	l.Trigger = e.digestOf(x, values)
}

// digestOf is the digest of values, "" while one is not known.
func (e *evaluator) digestOf(x *expression, values []cty.Value) string {
	if len(values) == 0 {
		return ""
	}
	all := cty.TupleVal(values)
	if !all.IsWhollyKnown() {
		return ""
	}
	data, err := ctyjson.Marshal(all, all.Type())
	if err != nil {
		e.errorAt(x.expr.Range(), "Invalid value for replace_triggered_by", sentence(err.Error()))
		return ""
	}
	sum, err := DigestOf(string(data))
	if err != nil {
		e.errorAt(x.expr.Range(), "Invalid value for replace_triggered_by", sentence(err.Error()))
	}
	return string(sum)
}

// trigger reads a reference to a thing, or to what is declared of it. False is
// for all other expressions.
func (e *evaluator) trigger(expr hcl.Expression) (Trigger, bool) {
	t, diags := hcl.AbsTraversalForExpr(expr)
	if diags.HasErrors() || !slices.Contains(Kinds(), Kind(t.RootName())) {
		return Trigger{}, false
	}
	for n := 2; n <= len(t); n++ {
		ref, d := e.mod.thingReference(t[:n])
		if d != nil {
			break
		}
		if next, ok := stepName(t, n); ok && next == string(KindJob) && ref.addr.Kind == KindJobGroup {
			continue
		}
		decl := e.decls.things[ref.addr.Base()]
		if n < len(t) && ref.addr.Key.IsZero() && decl.indexed() != single {
			if _, isIndex := t[n].(hcl.TraverseIndex); isIndex {
				continue
			}
		}
		path, detail := attributePath(decl.block.typ, t[n:])
		if detail != "" {
			break
		}
		return Trigger{Addr: e.global(ref.addr), Path: path}, true
	}
	return Trigger{}, false
}

// triggerValue evaluates what is no thing.
func (e *evaluator) triggerValue(expr hcl.Expression) (cty.Value, bool) {
	native, ok := expr.(hclsyntax.Expression)
	if !ok {
		return cty.NilVal, false
	}
	x := &expression{name: "replace_triggered_by", expr: native, rng: expr.Range()}
	if len(x.expr.Variables()) == 0 {
		e.errorAt(x.rng, "Invalid value for replace_triggered_by", "A constant never changes: refer to something, such as var.version.")
		return cty.NilVal, false
	}
	e.mod.resolve(x, allowed{})
	out := e.eval(x, nil)
	if !out.ok || !e.keepable(x, out) {
		return cty.NilVal, false
	}
	if isSensitive(out.val) {
		e.add(valueError(expr.Range(), expr, out.ctx, "Sensitive value", "A digest of the value is recorded, from which a short secret could be guessed. Refer to something that is no secret."))
		return cty.NilVal, false
	}
	val, _ := out.val.UnmarkDeep()
	return val, true
}
