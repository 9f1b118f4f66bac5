package decode

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// Conditions checks the conditions of all declarations in the module.
func (e *Decoder) Conditions() []schema.Condition {
	var all []schema.Condition
	for _, decl := range e.Decls.Sorted(schema.KindReservation, schema.KindJob, schema.KindActorService) {
		if lifecycle := decl.Block.Child("lifecycle"); lifecycle != nil && len(lifecycle.Blocks)+len(lifecycle.Dynamics) > 0 {
			all = append(all, e.lifecycleConditions(decl, lifecycle)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.Decls.Outputs)) {
		for _, b := range e.Decls.Outputs[name].Blocks["precondition"] {
			all = append(all, e.condition(schema.Precondition, e.Named("output."+name), b, nil))
		}
	}
	for _, check := range e.Decls.Checks {
		for _, b := range check.Blocks["assert"] {
			all = append(all, e.condition(schema.Assertion, e.Named("check."+check.Name), b, nil))
		}
	}
	return all
}

func (e *Decoder) lifecycleConditions(decl *configs.Declaration, lifecycle *configs.Block) []schema.Condition {
	var all []schema.Condition
	instances := decl.Instances
	if decl.Addr.Kind == schema.KindReservation {
		instances = []configs.Instance{{}}
	}
	for _, i := range instances {
		s := eval.RepetitionData(i.Values())
		b, ok := e.Expanded(lifecycle, s)
		if !ok {
			continue
		}
		of := e.Global(i.Addr(decl.Addr)).String()
		for _, pre := range b.Blocks[string(schema.Precondition)] {
			all = append(all, e.condition(schema.Precondition, of, pre, s))
		}
		for _, post := range b.Blocks[string(schema.Postcondition)] {
			all = append(all, e.condition(schema.Postcondition, of, post, e.withSelf(s, decl, i)))
		}
	}
	return all
}

// withSelf adds what an instance is itself to what its conditions may refer to.
func (e *Decoder) withSelf(s eval.RepetitionData, decl *configs.Declaration, i configs.Instance) eval.RepetitionData {
	with := eval.RepetitionData{"self": e.Object(decl.Addr)}
	if decl.Addr.Kind == schema.KindJob {
		with["self"] = e.InstanceOf(decl, i)
	}
	maps.Copy(with, s)
	return with
}

// condition evaluates one condition; of those that do not hold, one of a check
// warns.
func (e *Decoder) condition(kind schema.ConditionKind, of string, b *configs.Block, s eval.RepetitionData) schema.Condition {
	h := e.Holds(b, s)
	c := schema.Condition{Kind: kind, Of: of, Status: h.Status, Message: h.Message, Range: b.Range()}
	if h.Status != schema.ConditionFails {
		return c
	}
	d := eval.ValueError(h.Range, h.Expr, h.Context, "", h.Message)
	switch kind {
	case schema.Precondition:
		d.Summary = "Precondition does not hold"
	case schema.Postcondition:
		d.Summary = "Postcondition does not hold"
	case schema.Assertion:
		d.Summary, d.Severity = "Check does not hold", hcl.DiagWarning
	}
	d.Detail = fmt.Sprintf("%s: %s", of, h.Message)
	d.Extra = diagnose.FailedCondition{Of: of}
	e.Add(d)
	return c
}
