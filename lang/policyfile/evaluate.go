package policyfile

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/lang/funcs"
	"github.com/fray-ml/fray/lang/load"
)

// PlanRoot is the name by which rules refer to the plan.
const PlanRoot = "plan"

// PlanParts are the parts of the plan.
func PlanParts() []string {
	return []string{
		"by_namespace", "changes", "counts", "format_version", "job_groups", "jobs", "mode", "namespaces", "providers", "replace",
		"reservations", "revision", "targets", "time", "total", "who", "workspace",
	}
}

// Severity is what a violation causes.
type Severity string

// The severities.
const (
	Deny Severity = "deny"
	Warn Severity = "warn"
)

func severities() []string { return []string{string(Deny), string(Warn)} }

// Outcome is how a plan stands to a policy.
type Outcome struct {
	Policy      *Policy
	Description string
	Severity    Severity
	Overriders  []string // sorted
	Findings    []Finding
}

// Finding is a violation of a rule, or why it has no result.
type Finding struct {
	Message string
	Address string    // of each.value, "" if it has none
	Broken  bool      // the rule has no result
	Range   hcl.Range // of the condition
}

// Inputs are the values of a set's variables.
type Inputs map[string]eval.Assigned

// Evaluate evaluates every policy against a plan. With errors the set as a whole cannot be
// evaluated, since its variables are wrong.
func (s *Set) Evaluate(plan cty.Value, inputs Inputs) ([]Outcome, hcl.Diagnostics) {
	e, diags := s.evaluator(plan, eval.Options{Assigned: inputs})
	if diags.HasErrors() {
		return nil, diags
	}
	outcomes := make([]Outcome, 0, len(s.Policies))
	for _, p := range s.Policies {
		outcomes = append(outcomes, e.policy(p))
	}
	return outcomes, diags
}

// Check reports what is wrong with the expressions of a set. sample is a plan whose parts
// all have their types; its values need not be known. Variables without a value are unknown.
func (s *Set) Check(sample cty.Value) hcl.Diagnostics {
	e, diags := s.evaluator(sample, eval.Options{Partial: true})
	if diags.HasErrors() {
		return diags
	}
	e.report = diagnose.New()
	for _, name := range slices.Sorted(maps.Keys(s.locals)) {
		e.local(name, s.locals[name].Range)
	}
	for _, p := range s.Policies {
		e.policy(p)
	}
	for _, c := range s.Calls {
		_, _, more := e.call(c)
		e.report.Extend(more)
	}
	return append(diags, e.report.Sorted()...)
}

// CallOf evaluates what a policy_set block hands to its set: values of variables, and the
// names of the policies that hold, nil for all of them.
func (s *Set) CallOf(c *Call, inputs Inputs) (Inputs, []string, hcl.Diagnostics) {
	e, diags := s.evaluator(cty.DynamicVal, eval.Options{Assigned: inputs})
	if diags.HasErrors() {
		return nil, nil, diags
	}
	return e.call(c)
}

// evaluator evaluates the expressions of one set.
type evaluator struct {
	set    *Set
	base   *hcl.EvalContext
	locals map[string]*local
	report *diagnose.Report // of Check: what is wrong with expressions; nil otherwise
}

// local is a value of a locals block, once it is asked for.
type local struct {
	underway bool
	value    cty.Value
	diags    hcl.Diagnostics
}

func (s *Set) evaluator(plan cty.Value, opts eval.Options) (*evaluator, hcl.Diagnostics) {
	vars, diags := s.variableValues(opts)
	return &evaluator{set: s, locals: map[string]*local{}, base: &hcl.EvalContext{
		Functions: funcs.In(s.source.Folder(), opts.Moment),
		Variables: map[string]cty.Value{
			PlanRoot: plan, "var": cty.ObjectVal(vars),
			"path": cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal(s.Dir)}),
		},
	}}, diags
}

// variableValues has the variables evaluated as those of a configuration that declares
// nothing else.
func (s *Set) variableValues(opts eval.Options) (map[string]cty.Value, hcl.Diagnostics) {
	source := load.Empty(s.Dir)
	source.Root.Bodies = []*hclsyntax.Body{{Attributes: hclsyntax.Attributes{}, Blocks: s.variables}}
	session := eval.NewSession(source, opts, eval.MaxInstances)
	if d := session.Evaluate(); d != nil {
		return nil, hcl.Diagnostics{d}
	}
	return session.Root().Variables, slices.Clone(session.Sorted())
}

// scope is where expressions of one block are evaluated: the locals that they refer to, and
// what a rule is for.
func (e *evaluator) scope(each map[string]cty.Value, xs ...*configs.Expression) (*hcl.EvalContext, hcl.Diagnostics) {
	vals := map[string]cty.Value{}
	var diags hcl.Diagnostics
	for _, x := range xs {
		if x == nil {
			continue
		}
		for _, traversal := range configs.References(x.Expr) {
			if traversal.RootName() != string(configs.RootLocal) {
				continue
			}
			for _, name := range e.localNames(traversal) {
				l := e.local(name, traversal.SourceRange())
				vals[name] = l.value
				diags = append(diags, l.diags...)
			}
		}
	}
	ctx := e.base.NewChild()
	ctx.Variables = map[string]cty.Value{"local": cty.ObjectVal(vals)}
	maps.Copy(ctx.Variables, each)
	return ctx, diags
}

// localNames are the locals that a reference needs: one, or all.
func (e *evaluator) localNames(traversal hcl.Traversal) []string {
	if len(traversal) > 1 {
		if step, ok := traversal[1].(hcl.TraverseAttr); ok {
			return []string{step.Name}
		}
	}
	return slices.Sorted(maps.Keys(e.set.locals))
}

// local is the value of a local that is referred to at some place.
func (e *evaluator) local(name string, at hcl.Range) *local {
	if l := e.locals[name]; l != nil {
		if l.underway {
			return failedLocal(diagnose.ErrorAt(at, "Cycle of references", fmt.Sprintf("local.%s refers to itself, over other names or directly.", name)))
		}
		return l
	}
	x := e.set.locals[name]
	if x == nil {
		return failedLocal(diagnose.ErrorAt(at, "Reference to nothing", fmt.Sprintf("There is no local.%s. %s", name, diagnose.DidYouMean(name, slices.Collect(maps.Keys(e.set.locals))))))
	}
	l := &local{underway: true}
	e.locals[name] = l
	l.value, l.diags = e.value(x)
	l.underway = false
	if e.report != nil {
		e.report.Extend(l.diags)
	}
	return l
}

func failedLocal(d *hcl.Diagnostic) *local {
	return &local{value: cty.DynamicVal, diags: hcl.Diagnostics{d}}
}

// value evaluates an expression with the locals that it needs.
func (e *evaluator) value(x *configs.Expression) (cty.Value, hcl.Diagnostics) {
	ctx, diags := e.scope(nil, x)
	if diags.HasErrors() {
		return cty.DynamicVal, diags
	}
	return evaluated(x, ctx)
}

// evaluated is the value of an expression in a scope.
func evaluated(x *configs.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	val, diags := x.Expr.Value(ctx)
	if !diags.HasErrors() {
		return val, diags
	}
	return cty.DynamicVal, eval.Helpful(redacted(diags, x, ctx))
}

// call evaluates what a policy_set block hands to its set.
func (e *evaluator) call(c *Call) (Inputs, []string, hcl.Diagnostics) {
	inputs := Inputs{}
	var diags hcl.Diagnostics
	if c.inputs != nil {
		val, more := e.value(c.inputs)
		rng := c.inputs.Expr.Range()
		diags = append(diags, more...)
		switch plain, _ := val.Unmark(); {
		case more.HasErrors() || !plain.IsKnown():
		case plain.IsNull() || !plain.Type().IsObjectType() && !plain.Type().IsMapType():
			diags = append(diags, diagnose.ErrorAt(rng, "Invalid value for inputs", "Write { NAME = VALUE, … } with the variables of the set."))
		default:
			for it := plain.ElementIterator(); it.Next(); {
				name, value := it.Element()
				inputs[name.AsString()] = eval.Assigned{Value: value, Range: rng}
			}
		}
	}
	chosen, more := e.texts(c.policies)
	return inputs, chosen, append(diags, more...)
}

// texts evaluates a list of strings; nil if it is not written.
func (e *evaluator) texts(x *configs.Expression) ([]string, hcl.Diagnostics) {
	if x == nil {
		return nil, nil
	}
	val, diags := e.value(x)
	if diags.HasErrors() {
		return nil, diags
	}
	wrong := hcl.Diagnostics{diagnose.ErrorAt(x.Expr.Range(), "Invalid value for "+x.Name, "Want a list of strings.")}
	plain, _ := val.UnmarkDeep()
	if !plain.IsWhollyKnown() && e.report != nil {
		return nil, nil
	}
	if !plain.IsWhollyKnown() || plain.IsNull() || !plain.CanIterateElements() {
		return nil, wrong
	}
	found := []string{}
	for it := plain.ElementIterator(); it.Next(); {
		_, item := it.Element()
		if !isText(item) {
			return nil, wrong
		}
		found = append(found, item.AsString())
	}
	slices.SortFunc(found, cmp.Compare[string])
	return slices.Compact(found), nil
}

func isText(v cty.Value) bool {
	return v.Type() == cty.String && v.IsKnown() && !v.IsNull() && !v.IsMarked()
}
