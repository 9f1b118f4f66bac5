package schema

import (
	"fmt"
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// held is how a block with a condition and an error_message stands.
type held struct {
	status  ConditionStatus
	message string
	rng     hcl.Range // of the condition
	expr    hcl.Expression
	ctx     *hcl.EvalContext
}

// holds evaluates a condition. One that is wrong itself is reported, and stands
// as unknown.
func (e *evaluator) holds(b *block, s scope) held {
	h := held{status: ConditionUnknown}
	condition, message := b.attr("condition"), b.attr("error_message")
	if condition == nil || message == nil {
		return h
	}
	h.rng, h.expr = condition.expr.Range(), condition.expr
	out := e.eval(condition, s)
	if !out.ok {
		return h
	}
	h.ctx = out.ctx
	text := e.errorMessage(message, s)
	val, _ := out.val.UnmarkDeep()
	val, err := convert.Convert(val, cty.Bool)
	switch {
	case err != nil || val.IsNull():
		e.add(valueError(h.rng, h.expr, out.ctx, "Invalid value for condition", "Want a condition that is true or false."))
	case !val.IsKnown():
	case val.True():
		h.status = ConditionHolds
	default:
		h.status = ConditionFails
		h.message = text
	}
	return h
}

// errorMessage is the error_message of a condition that does not hold.
func (e *evaluator) errorMessage(x *expression, s scope) string {
	const fallback = "The condition does not hold."
	out := e.eval(x, s)
	if !out.ok {
		return fallback
	}
	if isSensitive(out.val) || isEphemeral(out.val) {
		return fallback + " Its error_message is not shown, because it contains a sensitive value."
	}
	text, err := convert.Convert(out.val, cty.String)
	switch {
	case err != nil:
		e.wrongValue(x, out, fmt.Errorf("want a string, this is %s", friendly(out.val)))
		return fallback
	case !text.IsKnown() || text.IsNull():
		return fallback
	}
	return text.AsString()
}

// conditions looks at the conditions of everything in the module.
func (e *evaluator) conditions() []Condition {
	var all []Condition
	for _, decl := range e.decls.sorted(KindReservation, KindJob, KindActorService) {
		if lifecycle := decl.block.child("lifecycle"); lifecycle != nil && len(lifecycle.blocks)+len(lifecycle.dynamics) > 0 {
			all = append(all, e.lifecycleConditions(decl, lifecycle)...)
		}
	}
	for _, name := range sortedKeys(e.decls.outputs) {
		for _, b := range e.decls.outputs[name].blocks["precondition"] {
			all = append(all, e.condition(Precondition, e.named("output."+name), b, nil))
		}
	}
	for _, check := range e.decls.checks {
		for _, b := range check.blocks["assert"] {
			all = append(all, e.condition(Assertion, e.named("check."+check.name), b, nil))
		}
	}
	return all
}

// named is a name in this module as the rest knows it.
func (e *evaluator) named(name string) string {
	if e.path == "" {
		return name
	}
	return e.path + "." + name
}

func (e *evaluator) lifecycleConditions(decl *declaration, lifecycle *block) []Condition {
	var all []Condition
	instances := decl.instances
	if decl.addr.Kind == KindReservation {
		instances = []instance{{}}
	}
	for _, i := range instances {
		s := scope(i.values())
		b, ok := e.expanded(lifecycle, s)
		if !ok {
			continue
		}
		of := e.global(i.addr(decl.addr)).String()
		for _, pre := range b.blocks[string(Precondition)] {
			all = append(all, e.condition(Precondition, of, pre, s))
		}
		for _, post := range b.blocks[string(Postcondition)] {
			all = append(all, e.condition(Postcondition, of, post, e.withSelf(s, decl, i)))
		}
	}
	return all
}

// withSelf adds what an instance is itself to what its conditions may refer to.
func (e *evaluator) withSelf(s scope, decl *declaration, i instance) scope {
	with := scope{"self": e.object(decl.addr)}
	if decl.addr.Kind == KindJob {
		with["self"] = e.instanceOf(decl, i)
	}
	maps.Copy(with, s)
	return with
}

// condition looks at one condition; of those that do not hold, one of a check
// warns.
func (e *evaluator) condition(kind ConditionKind, of string, b *block, s scope) Condition {
	h := e.holds(b, s)
	c := Condition{Kind: kind, Of: of, Status: h.status, Message: h.message, Range: b.rng()}
	if h.status != ConditionFails {
		return c
	}
	d := valueError(h.rng, h.expr, h.ctx, "", h.message)
	switch kind {
	case Precondition:
		d.Summary = "Precondition does not hold"
	case Postcondition:
		d.Summary = "Postcondition does not hold"
	case Assertion:
		d.Summary, d.Severity = "Check does not hold", hcl.DiagWarning
	}
	d.Detail = fmt.Sprintf("%s: %s", of, h.message)
	d.Extra = FailedCondition{Of: of}
	e.add(d)
	return c
}
