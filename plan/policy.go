package plan

import (
	"github.com/fray-ml/fray/schema"
)

// PolicyResult is what a policy finds in a plan.
type PolicyResult struct {
	Name        string         `json:"name"` // "NAME", or "SET.NAME" of a policy in a set
	Description string         `json:"description,omitempty"`
	Severity    PolicySeverity `json:"severity"`
	Status      PolicyStatus   `json:"status"`
	// Source is where it comes from, for people: a directory, or an archive with its version.
	Source     string            `json:"source"`
	Violations []PolicyViolation `json:"violations,omitempty"`
	// Override is who overrides it and why, nil: no caller does.
	Override *PolicyOverride `json:"override,omitempty"`
	// NotOverridden is why a requested override does not count, "" if none was requested.
	NotOverridden string `json:"not_overridden,omitempty"`
	// Overriders are the users that may override it, sorted; none: no user may.
	Overriders []string `json:"overriders,omitempty"`
}

// PolicyViolation is one finding of a rule.
type PolicyViolation struct {
	Message string         `json:"message"`
	Addr    schema.Address `json:"address,omitzero"` // what it is about, if the rule is for each of several
	// Broken: the rule has no result, because it failed or reads a value that is not known yet.
	Broken bool   `json:"broken,omitempty"`
	File   string `json:"file"` // with the condition
	Line   int    `json:"line"`
}

// PolicyOverride is a decision that a policy does not hold for one plan.
type PolicyOverride struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// PolicySeverity is what a violation of a policy causes.
type PolicySeverity string

// The severities.
const (
	PolicyDeny PolicySeverity = "deny" // the plan is not carried out
	PolicyWarn PolicySeverity = "warn" // it is shown
)

// PolicySeverities lists them.
func PolicySeverities() []PolicySeverity { return []PolicySeverity{PolicyDeny, PolicyWarn} }

// PolicyStatus is how a plan stands to a policy.
type PolicyStatus string

// The statuses.
const (
	PolicyPassed     PolicyStatus = "passed"
	PolicyWarned     PolicyStatus = "warned"
	PolicyDenied     PolicyStatus = "denied"
	PolicyOverridden PolicyStatus = "overridden" // it would deny, and a user who may override it did
)

// PolicyStatuses lists them.
func PolicyStatuses() []PolicyStatus {
	return []PolicyStatus{PolicyPassed, PolicyWarned, PolicyDenied, PolicyOverridden}
}

// DeniedBy are the policies that deny the plan.
func (p *Plan) DeniedBy() []*PolicyResult { return p.policiesThat(PolicyDenied) }

// OverriddenPolicies are the policies that would deny the plan and are overridden.
func (p *Plan) OverriddenPolicies() []*PolicyResult { return p.policiesThat(PolicyOverridden) }

func (p *Plan) policiesThat(stand PolicyStatus) []*PolicyResult {
	var found []*PolicyResult
	for i := range p.Policies {
		if p.Policies[i].Status == stand {
			found = append(found, &p.Policies[i])
		}
	}
	return found
}
