package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// Override is a request to carry a plan out although a policy denies it.
type Override struct {
	Policy string
	Reason string
}

// Everyone is the user of an override block that stands for all users.
const Everyone = "*"

// ParseOverride reads "POLICY=REASON".
func ParseOverride(text string) (Override, error) {
	name, why, _ := strings.Cut(text, "=")
	name, why = strings.TrimSpace(name), strings.TrimSpace(why)
	if name == "" || why == "" {
		return Override{}, fmt.Errorf("--override=%q: want POLICY=REASON; the reason goes on record", text)
	}
	return Override{Policy: name, Reason: why}, nil
}

// Judge decides how a plan stands to the policies that found something in it, or nothing.
// An override of what does not deny the plan has no effect; one of a policy that does not
// exist is an error.
func Judge(found []plan.PolicyResult, asked []Override, who Who) ([]plan.PolicyResult, error) {
	results := slices.Clone(found)
	slices.SortStableFunc(results, func(a, b plan.PolicyResult) int { return cmp.Compare(a.Name, b.Name) })
	reasons := map[string]string{}
	for _, o := range asked {
		if !slices.ContainsFunc(results, func(r plan.PolicyResult) bool { return r.Name == o.Policy }) {
			return nil, fmt.Errorf("--override=%s: there is no such policy%s", o.Policy, suggestion(o.Policy, results))
		}
		if _, twice := reasons[o.Policy]; twice {
			return nil, fmt.Errorf("--override=%s is given twice: give one reason", o.Policy)
		}
		reasons[o.Policy] = o.Reason
	}
	for i := range results {
		r := &results[i]
		if r.Status = standing(r); r.Status != plan.PolicyDenied {
			continue
		}
		reason, requested := reasons[r.Name]
		switch {
		case !requested:
		case mayOverride(r.Overriders, who):
			r.Status, r.Override = plan.PolicyOverridden, &plan.PolicyOverride{By: who.Name(), Reason: reason}
		case len(r.Overriders) == 0:
			r.NotOverridden = "the policy has no override block, so that no user may override it"
		default:
			r.NotOverridden = fmt.Sprintf("%s may not: %s may", who.Name(), strings.Join(r.Overriders, ", "))
		}
	}
	return results, nil
}

// standing is how a plan stands to a policy that no override is asked of. A rule without a
// result denies, of whichever severity: what it would have found is not known.
func standing(r *plan.PolicyResult) plan.PolicyStatus {
	broken := slices.ContainsFunc(r.Violations, func(v plan.PolicyViolation) bool { return v.Broken })
	switch {
	case len(r.Violations) == 0:
		return plan.PolicyPassed
	case r.Severity == plan.PolicyWarn && !broken:
		return plan.PolicyWarned
	}
	return plan.PolicyDenied
}

func mayOverride(users []string, who Who) bool {
	return slices.ContainsFunc(users, func(u string) bool {
		return u == Everyone || who.User != "" && (u == who.User || u == who.Name())
	})
}

func suggestion(name string, results []plan.PolicyResult) string {
	names := make([]string, 0, len(results))
	for i := range results {
		names = append(names, results[i].Name)
	}
	switch near := schema.Nearest(name, names); {
	case near != "":
		return fmt.Sprintf("; did you mean %q?", near)
	case len(names) == 0:
		return ": no policy holds here"
	}
	return "; there are " + strings.Join(names, ", ")
}
