package reconcile

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/schedule"
	plansnapshot "github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Diff compares desired with doc and obs at the time now and returns what
// follows. doc is not changed; its lineage must be set.
func Diff(desired *schema.Desired, doc *state.Document, obs *plan.Observed, now time.Time) *plan.Plan {
	d := NewReconciler(launch.Wanted(desired, doc, now), doc, obs, now)
	d.Run()
	return d.Plan
}

// Whole looks at everything. [Planner] has a shorter way to the same plan.
func (d *Reconciler) Run() {
	d.Plan.Changes = make([]plan.Change, 0, len(d.Desired.Jobs)+len(d.Desired.Groups)+8)
	d.FindDrift()
	d.Guard()
	d.Declare()
	for i := range d.Desired.Jobs {
		d.Advance(&d.Desired.Jobs[i])
	}
	d.reapChildren()
	d.Removals()
	d.FindWarm()
	d.KeepPools()
	d.Stage()
	schedule.InOrder(d.Idle)
	d.Place(d.Idle)
	d.Start(d.Idle)
	d.SettleIdle()
	d.rewriteDamaged()
	d.Orphans()
	d.Monitor()
	d.Capacity(d.Demand())
	d.conclude()
}

// Reconciler carries out the decisions of one plan in their order.
type Reconciler struct {
	*schedule.Placer

	Clearing map[schema.Address]bool // owners of slices that are not wanted
}

// NewReconciler stacks the stages upon each other; each knows those below it.
func NewReconciler(desired *schema.Desired, doc *state.Document, obs *plan.Observed, now time.Time) *Reconciler {
	snapshot := plansnapshot.NewSnapshot(desired, doc, obs, now)
	capacity := capacity.NewHeadroom(plansnapshot.NewEvidence(snapshot))
	return &Reconciler{Placer: schedule.NewPlacer(lifecycle.NewDeclarations(capacity))}
}

// conclude puts the plan in order and records why jobs wait.
func (d *Reconciler) conclude() {
	byAddr := func(a, b plan.Change) int { return a.Addr.Compare(b.Addr) }
	if !slices.IsSortedFunc(d.Plan.Changes, byAddr) {
		slices.SortStableFunc(d.Plan.Changes, byAddr)
	}
	d.ShowBlocked()
	d.ConcludeWaits()
	d.Stamp()
	d.Plan.Next = d.Next
}
