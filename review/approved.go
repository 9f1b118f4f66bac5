package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/forge"
)

// Approval is the question whether a reviewed plan may be applied on a commit.
type Approval struct {
	Target    Target
	Commit    string // that is to be applied
	Pull      forge.Pull
	Approvals []forge.Approval
	Needed    int // approvals; 0: merging is enough
	// Plan is the marker of the plan's comment; Found: there is one.
	Plan  Marker
	Found bool
}

// Rejection is why the plan may not be applied; "": it may.
func (a *Approval) Rejection() string {
	switch {
	case !a.Found:
		return fmt.Sprintf("pull request %d has no comment of fray ci plan for %s by this token's user", a.Pull.Number, a.Target)
	case a.Plan.Commit != a.Pull.Head:
		return fmt.Sprintf("the plan in pull request %d is of commit %s, and its head is %s: let fray ci plan run on the head", a.Pull.Number, short(a.Plan.Commit), short(a.Pull.Head))
	case !a.Plan.Changes:
		return ""
	case a.Plan.Plan == "":
		return fmt.Sprintf("the plan in pull request %d was not saved: encrypt the state, which encrypts saved plans", a.Pull.Number)
	case !a.Pull.Merged && a.Commit != a.Pull.Head:
		return fmt.Sprintf("pull request %d is not merged, and commit %s is not its head", a.Pull.Number, short(a.Commit))
	case !a.Pull.Merged && a.Needed == 0:
		return fmt.Sprintf("pull request %d is not merged", a.Pull.Number)
	}
	if by := a.by(); len(by) < a.Needed {
		return fmt.Sprintf("pull request %d has %s of commit %s, and %d needed", a.Pull.Number, counted(len(by), "approval", "approvals"), short(a.Pull.Head), a.Needed)
	}
	return ""
}

// by are the people whose approval is of what is applied.
func (a *Approval) by() []string {
	var by []string
	for _, approval := range a.Approvals {
		if (approval.Commit == "" || approval.Commit == a.Pull.Head) && !slices.Contains(by, approval.By) {
			by = append(by, approval.By)
		}
	}
	return by
}

// Outputs are those of a step that finds the plan.
func (a *Approval) Outputs() []Output {
	return []Output{
		{"pull", fmt.Sprint(a.Pull.Number)}, {"changes", fmt.Sprint(a.Plan.Changes)}, {"run", fmt.Sprint(a.Plan.Run)},
		{"plan_sha256", a.Plan.Plan}, {"artifact", a.Target.Artifact()}, {"approved_by", strings.Join(a.by(), ",")},
	}
}
