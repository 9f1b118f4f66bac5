package markdown

import "github.com/fray-ml/fray/plan"

// PoliciesOf are the results of the policies of a plan, one for each finding.
func PoliciesOf(p *plan.Plan) []PolicyResult {
	var all []PolicyResult
	for i := range p.Policies {
		of := &p.Policies[i]
		r := PolicyResult{Name: of.Name, Severity: SeverityDeny, Status: PolicyPassed}
		if of.Severity == plan.PolicyWarn {
			r.Severity = SeverityWarn
		}
		if of.Override != nil {
			r.By, r.Reason = of.Override.By, of.Override.Reason
		}
		if len(of.Violations) == 0 {
			all = append(all, r)
		}
		for j := range of.Violations {
			found := &of.Violations[j]
			one := r
			one.Message = found.Message
			switch {
			case of.Status == plan.PolicyOverridden:
				one.Status = PolicyOverridden
			case found.Broken:
				one.Status = PolicyError
			default:
				one.Status = PolicyFailed
			}
			if of.NotOverridden != "" {
				one.Message += " (not overridden: " + of.NotOverridden + ")"
			}
			all = append(all, one)
		}
	}
	return all
}
