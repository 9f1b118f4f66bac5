package proposal

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/policy"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/policies"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Judge holds a plan of the change, which is compared with doc, to the policies.
func (c *Change) Judge(l *configuration.Loaded, p *plan.Plan, doc *state.Document) error {
	return c.Policies.Judge(p, doc, c.policyRequest(l))
}

// named are the targets as they were asked for: those of a destroy are in Unlaunch.
func (c *Change) named() []schema.Address {
	if c.Mode == plan.ModeDestroy {
		return c.Unlaunch
	}
	return c.Targets
}

// DeniedError reports that policies deny the plan.
type DeniedError struct{ policies []*plan.PolicyResult }

// Error names the policies, and how those can be overridden that may be.
func (e *DeniedError) Error() string {
	var names, overridable []string
	for _, r := range e.policies {
		names = append(names, r.Name)
		if len(r.Overriders) > 0 && r.NotOverridden == "" {
			overridable = append(overridable, fmt.Sprintf("--override=%s=REASON (%s)", r.Name, strings.Join(r.Overriders, ", ")))
		}
	}
	subject := "the policy " + names[0] + " denies"
	if len(names) > 1 {
		subject = fmt.Sprintf("%d policies deny", len(names))
	}
	text := subject + " this plan; nothing was done"
	if len(names) > 1 {
		text += ": " + strings.Join(names, ", ")
	}
	if len(overridable) > 0 {
		text += "; to carry it out in spite of that: " + strings.Join(overridable, " ")
	}
	return text
}

// Explained is the error with the first messages of the policies, for where the plan is
// not shown.
func (e *DeniedError) Explained() string {
	var found []string
	for _, r := range e.policies {
		for _, v := range r.Violations {
			if len(found) == maxExplained {
				return e.Error() + ": " + strings.Join(found, " ") + " …"
			}
			found = append(found, r.Name+": "+oneLine(v.Message))
		}
	}
	return e.Error() + ": " + strings.Join(found, " ")
}

// oneLine is a text without line breaks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// maxExplained is how many messages an error has.
const maxExplained = 5

// CheckPolicies is a [DeniedError] if policies deny a plan.
func CheckPolicies(p *plan.Plan) error {
	if denied := p.DeniedBy(); len(denied) > 0 {
		return &DeniedError{denied}
	}
	return nil
}

// Overrides are the overrides of a plan as the state records them, once the plan is accepted.
func Overrides(p *plan.Plan) []state.Override {
	var made []state.Override
	for _, r := range p.OverriddenPolicies() {
		made = append(made, state.Override{Policy: r.Name, By: r.Override.By, Reason: r.Override.Reason, At: time.Now().UTC().Truncate(time.Second)})
	}
	return made
}

// CheckAccepted holds what a change makes of a document, next, to the policies: a
// [DeniedError] if they deny it. Of the plan only the changes are known.
func (c *Change) CheckAccepted(ctx context.Context, l *configuration.Loaded, doc, next *state.Document) error {
	p, _, err := reconcile.Proposed(&next.Desired, next, time.Now())
	if err != nil {
		return err
	}
	p.Mode = c.Mode
	if err := ExplainPlan(ctx, l, p, c, doc); err != nil {
		return err
	}
	if err := c.Judge(l, p, doc); err != nil {
		return err
	}
	return CheckPolicies(p)
}

// FirstInput is what policies see of the first plan of a configuration: nothing was applied yet.
func FirstInput(desired schema.Desired, workspace string) (policy.Input, error) {
	doc := &state.Document{}
	next := apply.Accept(doc, apply.Request{Desired: desired})
	now := time.Now().UTC().Truncate(time.Second)
	p, _, err := reconcile.Proposed(&next.Desired, next, now)
	if err != nil {
		return policy.Input{}, err
	}
	return policy.InputOf(p, doc, policy.Request{Workspace: workspace, Who: policies.Me(), Time: now}), nil
}

// Input is what policies see of a plan of the change.
func (c *Change) Input(l *configuration.Loaded, p *plan.Plan, doc *state.Document) policy.Input {
	return policy.InputOf(p, doc, c.policyRequest(l))
}

func (c *Change) policyRequest(l *configuration.Loaded) policy.Request {
	return policy.Request{
		Targets: c.named(), Replace: c.Replace, Workspace: l.Stack.Workspace, Who: policies.Me(), Time: time.Now().UTC().Truncate(time.Second),
	}
}
