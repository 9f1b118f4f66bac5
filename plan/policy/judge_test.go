package policy

import (
	"strings"
	"testing"

	"github.com/fray-ml/fray/plan"
)

// Check 18: deny stops, warn does not, a rule without a result denies, and only users that
// a policy names override it.
func TestJudge(t *testing.T) {
	t.Parallel()
	violated := []plan.PolicyViolation{{Message: "no"}}
	broken := []plan.PolicyViolation{{Message: "no"}, {Message: "no value", Broken: true}}
	ada := Who{User: "ada", Host: "ws1"}
	for name, c := range map[string]struct {
		policy  plan.PolicyResult
		asked   []Override
		who     Who
		want    plan.PolicyStatus
		refused string
	}{
		"nothing found":             {policy: plan.PolicyResult{Severity: plan.PolicyDeny}, want: plan.PolicyPassed},
		"denied":                    {policy: plan.PolicyResult{Severity: plan.PolicyDeny, Violations: violated}, want: plan.PolicyDenied},
		"warned":                    {policy: plan.PolicyResult{Severity: plan.PolicyWarn, Violations: violated}, want: plan.PolicyWarned},
		"a warning without result":  {policy: plan.PolicyResult{Severity: plan.PolicyWarn, Violations: broken}, want: plan.PolicyDenied},
		"overridden":                {policy: plan.PolicyResult{Severity: plan.PolicyDeny, Violations: violated, Overriders: []string{"ada"}}, asked: []Override{{"p", "why"}}, who: ada, want: plan.PolicyOverridden},
		"overridden by full name":   {policy: plan.PolicyResult{Severity: plan.PolicyDeny, Violations: broken, Overriders: []string{"ada@ws1"}}, asked: []Override{{"p", "why"}}, who: ada, want: plan.PolicyOverridden},
		"overridden by anyone":      {policy: plan.PolicyResult{Severity: plan.PolicyDeny, Violations: violated, Overriders: []string{"*"}}, asked: []Override{{"p", "why"}}, who: ada, want: plan.PolicyOverridden},
		"by another user":           {policy: plan.PolicyResult{Severity: plan.PolicyDeny, Violations: violated, Overriders: []string{"grace"}}, asked: []Override{{"p", "why"}}, who: ada, want: plan.PolicyDenied, refused: "ada@ws1 may not: grace may"},
		"on another host":           {policy: plan.PolicyResult{Severity: plan.PolicyDeny, Violations: violated, Overriders: []string{"ada@ws2"}}, asked: []Override{{"p", "why"}}, who: ada, want: plan.PolicyDenied, refused: "may not"},
		"by no user":                {policy: plan.PolicyResult{Severity: plan.PolicyDeny, Violations: violated}, asked: []Override{{"p", "why"}}, who: ada, want: plan.PolicyDenied, refused: "no override block"},
		"a user without a name":     {policy: plan.PolicyResult{Severity: plan.PolicyDeny, Violations: violated, Overriders: []string{""}}, asked: []Override{{"p", "why"}}, want: plan.PolicyDenied, refused: "may not"},
		"an override without cause": {policy: plan.PolicyResult{Severity: plan.PolicyDeny, Overriders: []string{"ada"}}, asked: []Override{{"p", "why"}}, who: ada, want: plan.PolicyPassed},
	} {
		c.policy.Name = "p"
		got, err := Judge([]plan.PolicyResult{c.policy}, c.asked, c.who)
		if err != nil || got[0].Status != c.want || !strings.Contains(got[0].NotOverridden, c.refused) || (c.refused == "") != (got[0].NotOverridden == "") {
			t.Errorf("%s: %+v, %v; want %s, %q", name, got, err, c.want, c.refused)
		}
		if overridden := got[0].Override != nil; overridden != (c.want == plan.PolicyOverridden) {
			t.Errorf("%s: the override is %+v", name, got[0].Override)
		}
		if p := (&plan.Plan{Policies: got}); (len(p.DeniedBy()) > 0) != (c.want == plan.PolicyDenied) {
			t.Errorf("%s: denied by %v", name, p.DeniedBy())
		}
	}
}

func TestOverridesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, asked := range [][]Override{{{"q", "why"}}, {{"p", "why"}, {"p", "again"}}} {
		if got, err := Judge([]plan.PolicyResult{{Name: "p"}}, asked, Who{}); err == nil {
			t.Errorf("%v: %+v, want an error", asked, got)
		}
	}
	for _, text := range []string{"", "p", "p=", "=why", "p= ", " =why"} {
		if o, err := ParseOverride(text); err == nil {
			t.Errorf("%q is %+v, want an error", text, o)
		}
	}
	if o, err := ParseOverride(" a.b = x=y "); err != nil || o != (Override{"a.b", "x=y"}) {
		t.Errorf("got %+v, %v", o, err)
	}
}
