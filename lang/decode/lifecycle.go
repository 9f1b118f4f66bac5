package decode

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/language"
	"github.com/fray-ml/fray/lang/mark"
	"github.com/fray-ml/fray/schema"
)

// lifecycle decodes the lifecycle block of a declaration, but for its conditions.
func (e *Decoder) lifecycle(decl *configs.Declaration) schema.Lifecycle {
	b := decl.Block.Child("lifecycle")
	if b == nil {
		return schema.Lifecycle{}
	}
	l := schema.Lifecycle{
		PreventDestroy:      e.ConstantBool(b.Attr("prevent_destroy"), false),
		CreateBeforeDestroy: e.ConstantBool(b.Attr("create_before_destroy"), false),
		Ignore:              ignored(e.Reporter, decl.Block.Type, b.Attr("ignore_changes")),
	}
	if x := b.Attr("replace_triggered_by"); x != nil {
		l.TriggeredBy, l.Trigger = triggers{in: e.Evaluator, attr: x}.decode()
	}
	return l
}

// ignored reads ignore_changes: names of attributes, or all.
func ignored(r eval.Reporter, of *language.BlockType, x *configs.Expression) []string {
	if x == nil {
		return nil
	}
	if hcl.ExprAsKeyword(x.Expr) == "all" {
		return []string{"all"}
	}
	exprs, diags := hcl.ExprList(x.Expr)
	if diags.HasErrors() {
		r.ErrorAt(x.Expr.Range(), "Invalid value for ignore_changes", "Write a list of attributes, such as [environment.env, labels], or all.")
		return nil
	}
	var paths []string
	for _, expr := range exprs {
		traversal, diags := hcl.RelTraversalForExpr(expr)
		if diags.HasErrors() {
			r.ErrorAt(expr.Range(), "Invalid value for ignore_changes", "Write the name of an attribute without quotes, such as environment.env[\"NAME\"].")
			continue
		}
		path, detail := attributePath(of, traversal)
		if detail != "" {
			r.ErrorAt(expr.Range(), "Invalid value for ignore_changes", detail)
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
func attributePath(typ *language.BlockType, t hcl.Traversal) (path, detail string) {
	var names []string
	for i := range t {
		name, ok := relativeName(t[i])
		switch {
		case !ok:
			return "", "Write names, such as environment.env[\"NAME\"]."
		case typ == nil: // in the value of an attribute
		case typ.Attr(name) != nil:
			typ = nil
		case len(typ.Variants(name)) > 0 && name != "lifecycle":
			typ = typ.Variants(name)[0]
		default:
			return "", fmt.Sprintf("%s has no attribute %q. %s", diagnose.Capitalized(typ.Described()), name, diagnose.DidYouMean(name, slices.DeleteFunc(append(typ.AttrNames(), typ.BlockNames()...), func(other string) bool { return other == "lifecycle" })))
		}
		names = append(names, name)
	}
	return strings.Join(names, "."), ""
}

func relativeName(step hcl.Traverser) (string, bool) {
	if root, ok := step.(hcl.TraverseRoot); ok {
		return root.Name, true
	}
	return configs.StepName(hcl.Traversal{step}, 0)
}

// triggers decodes a replace_triggered_by: declarations, their attributes, and values.
type triggers struct {
	in   *eval.Evaluator
	attr *configs.Expression
}

// decode returns the references, and the digest of the values.
func (t triggers) decode() (refs []schema.Trigger, digest string) {
	e, x := t.in, t.attr
	exprs, diags := hcl.ExprList(x.Expr)
	if diags.HasErrors() {
		e.ErrorAt(x.Expr.Range(), "Invalid value for replace_triggered_by", "Write a list of references, such as [job.data, var.version].")
		return nil, ""
	}
	var values []cty.Value
	for _, expr := range exprs {
		if trigger, ok := t.reference(expr); ok {
			refs = append(refs, trigger)
			continue
		}
		if val, ok := t.value(expr); ok {
			values = append(values, val)
		}
	}
	slices.SortFunc(refs, func(a, b schema.Trigger) int {
		if c := a.Addr.Compare(b.Addr); c != 0 {
			return c
		}
		return strings.Compare(a.Path, b.Path)
	})
	return slices.Compact(refs), t.digestOf(values)
}

// digestOf is the digest of values, "" while one is not known.
func (t triggers) digestOf(values []cty.Value) string {
	e, x := t.in, t.attr
	if len(values) == 0 {
		return ""
	}
	all := cty.TupleVal(values)
	if !all.IsWhollyKnown() {
		return ""
	}
	data, err := ctyjson.Marshal(all, all.Type())
	if err != nil {
		e.ErrorAt(x.Expr.Range(), "Invalid value for replace_triggered_by", diagnose.Sentence(err.Error()))
		return ""
	}
	sum, err := schema.DigestOf(string(data))
	if err != nil {
		e.ErrorAt(x.Expr.Range(), "Invalid value for replace_triggered_by", diagnose.Sentence(err.Error()))
	}
	return string(sum)
}

// reference reads a reference to a declaration or to an attribute of one. False is for
// all other expressions.
func (t triggers) reference(expr hcl.Expression) (schema.Trigger, bool) {
	e := t.in
	steps, diags := hcl.AbsTraversalForExpr(expr)
	if diags.HasErrors() || !slices.Contains(schema.Kinds(), schema.Kind(steps.RootName())) {
		return schema.Trigger{}, false
	}
	for n := 2; n <= len(steps); n++ {
		ref, d := e.Module.AddressedReference(steps[:n])
		if d != nil {
			break
		}
		if next, ok := configs.StepName(steps, n); ok && slices.Contains(schema.GroupMembers(), schema.Kind(next)) && ref.Addr.Kind == schema.KindJobGroup {
			continue
		}
		decl := e.Decls.Addressed[ref.Addr.Base()]
		if n < len(steps) && ref.Addr.Key.IsZero() && decl.Indexed() != configs.Single {
			if _, isIndex := steps[n].(hcl.TraverseIndex); isIndex {
				continue
			}
		}
		path, detail := attributePath(decl.Block.Type, steps[n:])
		if detail != "" {
			break
		}
		return schema.Trigger{Addr: e.Global(ref.Addr), Path: path}, true
	}
	return schema.Trigger{}, false
}

// value evaluates a trigger that is not a reference to a declaration.
func (t triggers) value(expr hcl.Expression) (cty.Value, bool) {
	e := t.in
	native, ok := expr.(hclsyntax.Expression)
	if !ok {
		return cty.NilVal, false
	}
	x := &configs.Expression{Name: "replace_triggered_by", Expr: native, Range: expr.Range()}
	if len(configs.References(x.Expr)) == 0 {
		e.ErrorAt(x.Range, "Invalid value for replace_triggered_by", "A constant never changes: refer to something, such as var.version.")
		return cty.NilVal, false
	}
	e.Module.Resolve(x, configs.Allowed{})
	out := e.Eval(x, nil)
	if !out.OK || !e.Keepable(x, out) {
		return cty.NilVal, false
	}
	if mark.IsSensitive(out.Value) {
		e.Add(eval.ValueError(expr.Range(), expr, out.Context, "Sensitive value", "A digest of the value is recorded, from which a short secret could be guessed. Refer to something that is no secret."))
		return cty.NilVal, false
	}
	val, _ := out.Value.UnmarkDeep()
	return val, true
}
