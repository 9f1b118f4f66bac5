package incremental

import (
	"time"

	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/state"
)

// noteLaunches notes which jobs launched others, and when the first of them is forgotten.
func (p *Planner) noteLaunches(d *reconcile.Reconciler) {
	p.parents, p.forget = map[string]bool{}, time.Time{}
	sooner := func(at time.Time) {
		if !at.IsZero() && (p.forget.IsZero() || at.Before(p.forget)) {
			p.forget = at
		}
	}
	for _, j := range d.Next.Jobs {
		if j.Launch != nil {
			p.parents[j.Launch.Parent] = true
			sooner(launch.ForgetAt(j))
		}
	}
	for _, j := range d.Next.Past {
		sooner(j.EndedAt.Add(launch.Retention))
	}
	sooner(launch.ForgetActorsAt(d.Next.RemovedActors))
	for _, r := range d.Next.Resources {
		if r.Launch != nil {
			p.parents[r.Launch.Parent] = true
		}
	}
}

// leavesChildren reports whether a job that was changed may end what it launched:
// was is how it was before.
func (p *Planner) leavesChildren(was, j *state.Job) bool {
	if j == nil {
		return true
	}
	if j.Launch != nil && j.Status.Ended() {
		return true // it will be forgotten some day
	}
	return p.parents[j.ID] && (j.Status.Ended() || j.Stop || !j.Running() || was == nil || was.Attempt != j.Attempt)
}
