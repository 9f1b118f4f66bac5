package policyfile

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
	"github.com/fray-ml/fray/lang/mark"
)

// policy evaluates a policy. What of it has no value is a finding, which denies.
func (e *evaluator) policy(p *Policy) Outcome {
	o := Outcome{Policy: p, Severity: Deny}
	if x := p.block.Attr("description"); x != nil {
		o.Description = e.text(&o, x)
	}
	if x := p.block.Attr("severity"); x != nil {
		switch text := e.text(&o, x); Severity(text) {
		case Deny, Warn:
			o.Severity = Severity(text)
		default:
			if text != "" {
				e.broken(&o, x.Expr.Range(), diagnose.ErrorAt(x.Expr.Range(), "Invalid value for severity", `Write "deny" or "warn".`))
			}
		}
	}
	if x := p.block.Child("override").Attr("users"); x != nil {
		users, diags := e.texts(x)
		o.Overriders = users
		e.broken(&o, x.Expr.Range(), diags...)
	}
	for _, b := range p.block.Blocks[ruleBlock] {
		e.rule(&o, b)
	}
	return o
}

// text evaluates an attribute that is a string, "" if it has no value.
func (e *evaluator) text(o *Outcome, x *configs.Expression) string {
	val, diags := e.value(x)
	switch {
	case diags.HasErrors():
		e.broken(o, x.Expr.Range(), diags...)
	case mark.IsSensitive(val) || mark.IsEphemeral(val):
		e.broken(o, x.Expr.Range(), diagnose.ErrorAt(x.Expr.Range(), "Sensitive value", fmt.Sprintf("%s would show a sensitive value.", diagnose.Capitalized(x.Name))))
	case isText(val):
		return val.AsString()
	case !val.IsKnown() && e.report != nil:
	default:
		e.broken(o, x.Expr.Range(), diagnose.ErrorAt(x.Expr.Range(), "Invalid value for "+x.Name, "Want a string that is known."))
	}
	return ""
}

// broken records that a part of a policy has no value.
func (e *evaluator) broken(o *Outcome, at hcl.Range, diags ...*hcl.Diagnostic) {
	for _, d := range diags {
		if e.report != nil {
			e.report.Add(d)
		}
		o.Findings = append(o.Findings, Finding{Message: problem(d), Broken: true, Range: at})
	}
}

// problem is a diagnostic as one text.
func problem(d *hcl.Diagnostic) string {
	return strings.TrimSpace(strings.TrimSuffix(d.Summary, ".") + ": " + d.Detail)
}

// rule checks the condition of a rule, for each of several if it says so.
func (e *evaluator) rule(o *Outcome, b *configs.Block) {
	condition, message, forEach := b.Attr("condition"), b.Attr("error_message"), b.Attr("for_each")
	if condition == nil || message == nil {
		return // reported
	}
	r := ruleCheck{evaluator: e, outcome: o, condition: condition, message: message}
	var diags hcl.Diagnostics
	if r.scope, diags = e.scope(nil, condition, message); diags.HasErrors() {
		e.broken(o, condition.Expr.Range(), diags...)
		return
	}
	if forEach == nil {
		r.check(nil, "")
		return
	}
	all, diags := e.value(forEach)
	if diags.HasErrors() {
		e.broken(o, condition.Expr.Range(), diags...)
		return
	}
	plain, marks := all.Unmark()
	_, sensitive := marks[mark.Sensitive{}]
	at := forEach.Expr.Range()
	switch {
	case !plain.IsKnown() && e.report != nil:
		r.check(map[string]cty.Value{"key": cty.DynamicVal, "value": cty.DynamicVal}, "")
	case !plain.IsKnown():
		e.broken(o, at, diagnose.ErrorAt(at, "Not known at plan time", "It depends on values that are known only after apply."))
	case sensitive:
		e.broken(o, at, diagnose.ErrorAt(at, "Sensitive value", "Messages name what the rule is for, and would show it: use nonsensitive() if that is no secret."))
	case plain.IsNull() || !plain.CanIterateElements():
		e.broken(o, at, diagnose.ErrorAt(at, "Invalid value for for_each", "Want a list, a set or a map; this is "+diagnose.Friendly(plain)+"."))
	default:
		for it := plain.ElementIterator(); it.Next(); {
			key, value := it.Element()
			r.check(map[string]cty.Value{"key": key, "value": value}, addressIn(value))
		}
	}
}

// addressIn is the address of what a rule is for, "" if it has none.
func addressIn(value cty.Value) string {
	if value.IsMarked() || !value.IsKnown() || value.IsNull() || !value.Type().IsObjectType() || !value.Type().HasAttribute("address") {
		return ""
	}
	if address := value.GetAttr("address"); isText(address) {
		return address.AsString()
	}
	return ""
}

// ruleCheck checks one rule.
type ruleCheck struct {
	*evaluator
	outcome            *Outcome
	condition, message *configs.Expression
	scope              *hcl.EvalContext
}

func (r *ruleCheck) check(each map[string]cty.Value, address string) {
	ctx := r.scope
	if each != nil {
		ctx = ctx.NewChild()
		ctx.Variables = map[string]cty.Value{"each": cty.ObjectVal(each)}
	}
	at := r.condition.Expr.Range()
	if r.report != nil {
		_, diags := evaluated(r.message, ctx)
		r.report.Extend(diags)
	}
	found := Finding{Address: address, Range: at, Broken: true}
	val, diags := evaluated(r.condition, ctx)
	if diags.HasErrors() {
		if r.report != nil {
			r.report.Extend(diags)
		}
		found.Message = problem(diags[0])
		r.outcome.Findings = append(r.outcome.Findings, found)
		return
	}
	val, _ = val.UnmarkDeep()
	val, err := convert.Convert(val, cty.Bool)
	switch {
	case err == nil && !val.IsKnown() && r.report != nil:
		return
	case err != nil || val.IsNull():
		d := diagnose.ErrorAt(at, "Invalid value for condition", "Want a condition that is true or false.")
		if r.report != nil {
			r.report.Add(d)
		}
		found.Message = problem(d)
	case !val.IsKnown():
		found.Message = "Unknown condition: it depends on values that are known only after apply, or on a sensitive value."
	case val.True():
		return
	default:
		found.Message, found.Broken = r.messageIn(ctx), false
	}
	r.outcome.Findings = append(r.outcome.Findings, found)
}

// messageIn is the error_message of a rule that is violated.
func (r *ruleCheck) messageIn(ctx *hcl.EvalContext) string {
	const fallback = "The condition does not hold."
	val, diags := evaluated(r.message, ctx)
	switch {
	case diags.HasErrors():
		return fallback + " Its error_message has no value: " + problem(diags[0])
	case mark.IsSensitive(val) || mark.IsEphemeral(val):
		return fallback + " Its error_message is not shown, because it contains a sensitive value."
	}
	text, err := convert.Convert(val, cty.String)
	if err != nil || !text.IsKnown() || text.IsNull() || strings.TrimSpace(text.AsString()) == "" {
		return fallback
	}
	return text.AsString()
}

// redacted are diagnostics of an expression without sensitive values, which HCL quotes.
// Values that are sealed cannot be quoted; those of sensitive variables can.
func redacted(diags hcl.Diagnostics, x *configs.Expression, ctx *hcl.EvalContext) hcl.Diagnostics {
	for _, traversal := range configs.References(x.Expr) {
		val, err := traversal.TraverseAbs(ctx)
		if err.HasErrors() || !hasSecret(val) {
			continue
		}
		out := make(hcl.Diagnostics, 0, len(diags))
		for _, d := range diags {
			out = append(out, diagnose.ErrorAt(x.Expr.Range(), d.Summary, "The reason is not shown, because a sensitive value is part of this expression. Try it with a value that is no secret."))
		}
		return out
	}
	return diags
}

// hasSecret reports whether a value has a sensitive part that is known.
func hasSecret(val cty.Value) bool {
	plain, marked := val.UnmarkDeepWithPaths()
	for _, at := range marked {
		_, sensitive := at.Marks[mark.Sensitive{}]
		_, ephemeral := at.Marks[mark.Ephemeral{}]
		if !sensitive && !ephemeral {
			continue
		}
		if part, err := at.Path.Apply(plain); err != nil || part.IsKnown() {
			return true
		}
	}
	return false
}
