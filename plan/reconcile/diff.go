package reconcile

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Diff compares desired with doc and obs at the time now and returns what
// follows. None of them is changed; doc's lineage must be set.
func Diff(desired *schema.Desired, doc *state.Document, obs *plan.Observed, now time.Time) *plan.Plan {
	return Whole(snapshot.Input{Desired: launch.Wanted(desired, doc, now), Doc: doc, Obs: obs, Now: now}).Plan
}

// Whole decides about all that is declared, launched or recorded. Each stage takes over what
// the one before it has found, which nothing else reads.
func Whole(in snapshot.Input) *Reconciler {
	observed := snapshot.Take(in)
	concluded := lifecycle.Conclude(observed.Final())
	replaced := schedule.Replace(concluded.Final())
	decided := schedule.Schedule(schedule.Input{Conclusion: replaced.Final(), Queue: replaced.Idle})
	decided.Conclusion = decided.Conclusion.Final()
	return Complete(decided)
}

// Reconciler completes a plan once jobs are placed: it deletes what is unwanted, writes
// what hosts are to serve, and records why jobs wait.
type Reconciler struct {
	*lifecycle.Declarations

	Held     []*schema.Job           // jobs without slices that wait for what they depend on
	Clearing map[schema.Address]bool // owners of slices that are not wanted
}

// Complete completes a plan with these decisions: damaged assignments, slices without a
// job, packed tasks, capacity, and the reasons of jobs that wait.
func Complete(decided schedule.Decisions) *Reconciler {
	d := New(decided)
	d.rewriteDamaged()
	d.Orphans()
	d.Monitor()
	listed := capacity.Demand{}
	d.CountListed(listed)
	d.Capacity(listed, d.Demand())
	d.conclude()
	return d
}

// New begins to complete a plan with these decisions.
func New(decided schedule.Decisions) *Reconciler {
	return &Reconciler{Declarations: decided.Conclusion.Draft(), Held: decided.Held}
}

// conclude puts the plan in order and records why jobs wait.
func (d *Reconciler) conclude() {
	byAddr := func(a, b plan.Change) int { return a.Addr.Compare(b.Addr) }
	if !slices.IsSortedFunc(d.Plan.Changes, byAddr) {
		slices.SortStableFunc(d.MutableChanges(), byAddr)
	}
	d.ShowBlocked()
	d.ConcludeWaits()
	d.Stamp()
	d.Plan.Next = d.Next
}
