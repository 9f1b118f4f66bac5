package loop

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// underway is an accepted proposal until what it changes is as it should be, or has failed.
type underway struct {
	proposal *Proposal
	revision uint64
	watched  []schema.Address // what it changes
}

// begun is an accepted proposal. One that changes nothing, as those are that a next leader reads again, is watched by the jobs
// that have not ended.
func begun(p *Proposal, proposed *plan.Plan, next *state.Document) *underway {
	u := &underway{proposal: p, revision: next.Revision}
	for i := range proposed.Changes {
		if c := &proposed.Changes[i]; c.Verb != plan.VerbNone {
			u.watched = append(u.watched, c.Addr)
		}
	}
	if len(u.watched) > 0 {
		return u
	}
	for i := range next.Desired.Jobs {
		if j := next.Jobs[next.Desired.Jobs[i].Addr]; j != nil && !j.Status.Ended() {
			u.watched = append(u.watched, j.Spec.Addr)
		}
	}
	return u
}

// verdict is what became of an accepted proposal by now, VerdictAccepted while it is being carried out, and a text about that.
func (u *underway) verdict(last *plan.Plan, doc *state.Document) (v Verdict, text string) {
	open := map[schema.Address]bool{}
	for i := range last.Changes {
		if last.Changes[i].Verb != plan.VerbNone {
			open[last.Changes[i].Addr] = true
		}
	}
	for i := range last.Pending {
		open[last.Pending[i].Addr] = true
	}
	v = VerdictCompleted
	var failed []*state.Job
	for _, addr := range u.watched {
		j := doc.Jobs[addr]
		switch {
		case j != nil && j.Status == schema.JobFailed && !open[addr]:
			failed = append(failed, j)
		case open[addr], j != nil && isComing(j):
			v = VerdictAccepted
		}
	}
	if len(failed) > 0 {
		first := slices.MinFunc(failed, func(a, b *state.Job) int { return a.Spec.Addr.Compare(b.Spec.Addr) })
		text = fmt.Sprintf("revision %d: %s failed: %s", u.revision, first.Spec.Addr, first.Reason)
		if len(failed) > 1 {
			text += fmt.Sprintf(" (and %d more)", len(failed)-1)
		}
		return VerdictFailed, text
	}
	return v, fmt.Sprintf("revision %d is carried out", u.revision)
}

// isComing reports whether a job is not yet what its declaration asks for.
func isComing(j *state.Job) bool {
	switch j.Status {
	case schema.JobPending:
		return true
	case schema.JobRunning:
		return j.Spec.HealthCheck != nil && !j.Ready
	case schema.JobSucceeded, schema.JobFailed, schema.JobStopped, schema.JobScheduled:
	}
	return false
}

// judgeUnderway tells what became of the proposal that was accepted last, once that is known.
func (l *leader) judgeUnderway(last *plan.Plan) {
	if l.underway == nil || last == nil {
		return
	}
	if v, text := l.underway.verdict(last, l.stepper.Document()); v != VerdictAccepted {
		l.underway.proposal.judged(v, text)
		l.underway = nil
	}
}

// begin watches an accepted proposal in place of the one before it, which is not completed any more.
func (l *leader) begin(u *underway) {
	if l.underway != nil && l.underway.proposal != u.proposal {
		l.underway.proposal.judged(VerdictSuperseded, fmt.Sprintf("revision %d took its place before everything ran", u.revision))
	}
	l.underway = u
}
