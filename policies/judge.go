package policies

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/fray-ml/fray/lang/policyfile"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/policy"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Judge holds a plan, which is compared with a state, to the policies, and puts their
// results into it.
func (p *Policies) Judge(pl *plan.Plan, doc *state.Document, r policy.Request) error {
	if p == nil {
		return nil
	}
	var found []plan.PolicyResult
	if !p.empty() {
		var diags hcl.Diagnostics
		found, diags = p.Findings(Value(policy.InputOf(pl, doc, r)))
		if err := p.terminal.Diagnostics(p.Files(), diags); err != nil {
			return err
		}
	}
	var err error
	pl.Policies, err = policy.Judge(found, p.overrides, r.Who)
	return err
}

// empty reports whether there is no policy at all.
func (p *Policies) empty() bool {
	for i := range p.sources {
		if len(p.sources[i].set.Policies) > 0 {
			return false
		}
	}
	return true
}

// With are the policies with other values of the variables of the stack's own files, and
// only those of some names, nil for all.
func (p *Policies) With(inputs policyfile.Inputs, only []string) *Policies {
	c := *p
	c.sources = slices.Clone(p.sources)
	for i := range c.sources {
		s := &c.sources[i]
		if s.name == "" {
			s.inputs = inputs
		}
		if only == nil {
			continue
		}
		named := []string{}
		for _, one := range s.set.Policies {
			if s.holds(one.Name) && slices.Contains(only, s.qualified(one.Name)) {
				named = append(named, one.Name)
			}
		}
		s.only = named
	}
	return &c
}

// Names are those of the policies that hold, sorted.
func (p *Policies) Names() []string {
	var names []string
	for i := range p.sources {
		for _, one := range p.sources[i].set.Policies {
			if p.sources[i].holds(one.Name) {
				names = append(names, p.sources[i].qualified(one.Name))
			}
		}
	}
	slices.Sort(names)
	return names
}

// Check reports what is wrong with the expressions of the policies, whatever the plan.
func (p *Policies) Check() hcl.Diagnostics {
	var diags hcl.Diagnostics
	sample := Sample()
	for i := range p.sources {
		if p.sources[i].name == "" { // a set from elsewhere has its own tests
			diags = append(diags, p.sources[i].set.Check(sample)...)
		}
	}
	return diags
}

// Findings are what the policies find in a plan, before it is judged.
func (p *Policies) Findings(value cty.Value) ([]plan.PolicyResult, hcl.Diagnostics) {
	var results []plan.PolicyResult
	var diags hcl.Diagnostics
	for i := range p.sources {
		s := &p.sources[i]
		outcomes, more := s.set.Evaluate(value, s.inputs)
		diags = append(diags, more...)
		for j := range outcomes {
			if o := &outcomes[j]; s.holds(o.Policy.Name) {
				results = append(results, resultOf(s, o))
			}
		}
	}
	return results, diags
}

func resultOf(s *source, o *policyfile.Outcome) plan.PolicyResult {
	r := plan.PolicyResult{
		Name: s.qualified(o.Policy.Name), Description: o.Description, Severity: plan.PolicyDeny, Source: s.shown, Overriders: o.Overriders,
	}
	if o.Severity == policyfile.Warn {
		r.Severity = plan.PolicyWarn
	}
	for _, f := range o.Findings {
		v := plan.PolicyViolation{Message: f.Message, Broken: f.Broken, File: f.Range.Filename, Line: f.Range.Start.Line}
		if addr, err := schema.ParseAddress(f.Address); err == nil {
			v.Addr = addr
		}
		r.Violations = append(r.Violations, v)
	}
	return r
}
