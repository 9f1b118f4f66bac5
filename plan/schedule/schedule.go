package schedule

import (
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/schema"
)

// Input is what Schedule decides on.
type Input struct {
	Conclusion lifecycle.Conclusion
	Queue      []*schema.Job // jobs that neither run nor have ended, in address order
}

// Decisions are what Schedule decided.
type Decisions struct {
	Conclusion lifecycle.Conclusion // with these decisions

	Placed  []schema.Address // jobs that are given slices
	Started []schema.Address // jobs whose next attempt begins
	Evicted []schema.Address // jobs that begin to make room for others
	Waits   []plan.Waiting   // for what the others wait
	Held    []*schema.Job    // of these: jobs without slices that wait for what they depend on
}

// Schedule gives slices to the jobs of a queue, a group at a time and all or none, ends
// jobs of lower bands where that makes room, starts jobs whose hosts are up, and settles
// what becomes of slices that no job holds after that. The input stays as it is.
func Schedule(s Input) Decisions {
	d := newPlacer(s.Conclusion.Draft())
	queue, before := slices.Clone(s.Queue), len(d.Waits)
	InOrder(queue)
	d.Place(queue)
	d.Start(queue)
	d.SettleIdle()
	after := d.Conclusion()
	return Decisions{
		Conclusion: after, Placed: d.placed, Started: d.started, Evicted: d.evicted, Waits: after.Snapshot.Waits()[before:], Held: d.Held,
	}
}

// Replace moves jobs on that are replaced while they run: they get new slices, all of a
// group or none, and hand over to these once they are up.
func Replace(c lifecycle.Conclusion) lifecycle.Conclusion {
	if len(c.Replacing) == 0 {
		return c
	}
	d := newPlacer(c.Draft())
	d.Stage()
	return d.Conclusion()
}
