package change

import (
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// maxCauseCommits is how many commits are kept as a cause.
const maxCauseCommits = 5

// Merged returns an accepted document with the commits by which it came about as a cause of all
// that is to change by it. doc is not changed.
func Merged(doc *state.Document, followed *state.Followed) *state.Document {
	next := doc.Clone()
	next.Followed = followed
	kept := min(len(followed.Commits), maxCauseCommits)
	caused := func(c *state.ChangeCauses) *state.ChangeCauses {
		with := state.ChangeCauses{}
		if c != nil {
			with = *c
		}
		with.Commits, with.MoreCommits = followed.Commits[:kept], len(followed.Commits)-kept+followed.More
		return &with
	}
	for i := range next.Desired.Jobs {
		want := &next.Desired.Jobs[i]
		if j := next.Jobs[want.Addr]; j != nil && !SameSpec(want, j) {
			explained := *j
			explained.Causes = caused(j.Causes)
			next.Jobs[want.Addr] = &explained
		}
	}
	resource := func(addr schema.Address, want state.Resource) {
		if cur, exists := next.Resources[addr]; exists && !plan.SameResource(cur, want) {
			cur.Causes = caused(cur.Causes)
			next.Resources[addr] = cur
		}
	}
	for i := range next.Desired.Namespaces {
		resource(next.Desired.Namespaces[i].Addr, state.Resource{Namespace: &next.Desired.Namespaces[i]})
	}
	for i := range next.Desired.Reservations {
		resource(next.Desired.Reservations[i].Addr, state.Resource{Reservation: &next.Desired.Reservations[i]})
	}
	for i := range next.Desired.Groups {
		resource(next.Desired.Groups[i].Addr, state.Resource{Group: &next.Desired.Groups[i]})
	}
	for i := range next.Desired.Notifications {
		resource(next.Desired.Notifications[i].Addr, state.Resource{Notification: &next.Desired.Notifications[i]})
	}
	return next
}
