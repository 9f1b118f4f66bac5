package lifecycle

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// Conclusion is what becomes of jobs, attempts, slices and pools, and what later stages
// of a plan read of it. It does not change.
type Conclusion struct {
	Snapshot snapshot.Snapshot // with these decisions

	Idle       []*schema.Job                       // jobs that neither run nor have ended, to be placed
	Replacing  []Staging                           // jobs that run on until their new slices are up
	Changing   map[schema.Address]plan.Verb        // jobs to be restarted or replaced
	Leaving    map[schema.Address]bool             // jobs that are declared no more
	Settled    []schema.Address                    // jobs that wait no more, unless Snapshot names them
	Blocked    map[schema.Address]plan.Change      // shown in place of what is done
	Dissolving bool                                // a reservation that is declared no more has slices
	Warm       map[capacity.WarmKind][]string      // slices that idle for the next job of their kind
	Awaited    map[schema.ProviderName]plan.Amount // for what idle slices are deleted already
	Moving     map[schema.Address]capacity.Holding // jobs that count for two namespaces or users
	holders    map[string]schema.Address           // of slices of reservations; nil: not looked for yet
}

// Conclude decides what becomes of all that is declared or recorded, but for the
// placement of jobs.
func Conclude(s snapshot.Snapshot) Conclusion {
	d := Begin(s)
	d.Plan.Changes = make([]plan.Change, 0, len(d.Desired.Jobs)+len(d.Desired.Groups)+8)
	if fresh := len(d.Desired.Jobs) - len(d.Doc.Jobs); fresh > 0 { // a list that grows to a million is copied several times
		d.EditedJobs, d.idle = slices.Grow(d.EditedJobs, fresh), slices.Grow(d.idle, fresh)
	}
	snapshot.ExpectAll(d.Draft)
	d.FindDrift()
	d.Guard()
	d.Declare()
	for i := range d.Desired.Jobs {
		d.Advance(&d.Desired.Jobs[i])
	}
	d.reapChildren()
	d.Removals()
	d.forgetRemovedActors()
	d.FindWarm()
	d.KeepPools()
	return d.Conclusion()
}

// ConcludeJobs is Conclude where nothing but these jobs and the pools needs a decision. It reports
// false where one of them is to change in a way that a lifecycle rule blocks.
func ConcludeJobs(s snapshot.Snapshot, jobs []*schema.Job) (Conclusion, bool) {
	d := Begin(s)
	d.Plan.Changes = make([]plan.Change, 0, len(jobs))
	d.FindDrift()
	for _, want := range jobs {
		if want.Lifecycle.PreventDestroy {
			if _, blocked := d.IsBlocked(want); blocked {
				return Conclusion{}, false
			}
		}
		d.Advance(want)
	}
	d.FindWarm()
	d.KeepPools()
	return d.Conclusion(), true
}

// ConcludeRemovals is Conclude where nothing is declared, and of what is recorded nothing but
// these jobs, and slices that are no other job's, needs a decision. They are given in the
// order of addresses and in that in which they are removed.
func ConcludeRemovals(s snapshot.Snapshot, removed, order []schema.Address, blockers map[schema.Address][]schema.Address) Conclusion {
	d := Begin(s)
	d.FindDrift()
	d.Leaving = make(map[schema.Address]bool, len(d.Doc.Jobs))
	for addr := range d.Doc.Jobs {
		d.Leaving[addr] = true
	}
	d.takeDown(removed, order, blockers)
	d.FindWarm()
	d.KeepPools()
	return d.Conclusion()
}

// Begin is a draft of a snapshot about which nothing has been concluded.
func Begin(s snapshot.Snapshot) *Declarations {
	c := Conclusion{Snapshot: s, Changing: map[schema.Address]plan.Verb{}}
	return c.Draft()
}

// Final is [snapshot.Snapshot.Final] of a Conclusion.
func (c Conclusion) Final() Conclusion {
	c.Snapshot = c.Snapshot.Final()
	return c
}

// Draft returns a copy of the Conclusion that one stage may change.
func (c *Conclusion) Draft() *Declarations {
	ofSlices := &Slices{Headroom: capacity.NewHeadroom(c.Snapshot.Draft(), c.holders)}
	attempts := &Attempts{Slices: ofSlices, Settled: slices.Clip(c.Settled)}
	pools := &PoolUpkeep{Attempts: attempts, coming: maps.Clone(c.Awaited)}
	jobs := &Jobs{
		PoolUpkeep: pools, Verbs: c.Changing, Dissolving: c.Dissolving,
		Staging: slices.Clip(c.Replacing), idle: slices.Clip(c.Idle),
	}
	d := &Declarations{Jobs: jobs, shown: c.Blocked}
	d.Leaving, d.Warm = c.Leaving, c.Warm
	d.CountMoving(c.Moving)
	return d
}

// Conclusion returns what the draft holds. The draft must not be changed any more.
func (d *Declarations) Conclusion() Conclusion {
	return Conclusion{
		Snapshot: d.Snapshot(), Idle: d.idle, Replacing: d.Staging, Changing: d.Verbs, Leaving: d.Leaving,
		Settled: d.Settled, Blocked: d.shown, Dissolving: d.Dissolving, Warm: d.Warm, Awaited: d.coming,
		Moving: d.Moving(), holders: d.Holders,
	}
}
