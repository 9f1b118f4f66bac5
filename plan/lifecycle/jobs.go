package lifecycle

import (
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Jobs decides what becomes of declared and recorded jobs.
type Jobs struct {
	*PoolUpkeep

	Verbs      map[schema.Address]plan.Verb // of jobs to be restarted or replaced
	withdrawn  []schema.Address             // recorded declarations that are made no more
	Dissolving bool                         // one of them is a reservation that has slices
	Staging    []Staging                    // jobs to be replaced that run on until what takes over is up
	idle       []*schema.Job                // jobs that neither run nor have ended

	creations change.Creations
	digests   schema.Digester

	met  map[Dependency]plan.Reason     // made when first asked for
	late map[schema.Address]*schema.Job // by group: a member that is overdue, nil: none is; see isOverdueStart
}

// Vacate takes a job that does not run off all that it has of a reservation if it cannot
// go on in one of its rooms, or on one of its slices: it is placed whole.
func (d *Jobs) Vacate(want *schema.Job) {
	j := d.JobAt(want.Addr)
	if DrawsWhole(&want.Resources) {
		if slices.ContainsFunc(j.Slices, func(name string) bool { return d.IsOthers(name, want.Addr) }) {
			d.Edit(want.Addr).Slices = nil
			d.Tally(want.Addr)
		}
		return
	}
	for _, name := range j.Slices {
		if d.CannotStay(want, name).None() {
			continue
		}
		for _, held := range j.Slices {
			if s := d.Next.Slices[held]; s != nil && d.Listed[held] == nil && d.Known(&s.Spec) {
				d.DropSlice(held)
			} else {
				d.terminate(held, change.Decided(state.CausePlacedAgain))
			}
		}
		d.Edit(want.Addr).Slices = nil
		d.Tally(want.Addr)
		return
	}
}

// Placeable reports whether a job waits for an attempt to start.
func (d *Jobs) Placeable(want *schema.Job) bool {
	j := d.JobAt(want.Addr)
	if j == nil || j.Running() || j.Status.Ended() || j.Stop || j.Replace || !j.YieldsTo.IsZero() {
		return false
	}
	_, changing := d.Verbs[want.Addr]
	return !changing || schema.EqualJobs(j.Spec, want) && !change.Triggered(want, j)
}

// WantedSlice reports whether a job or a declared reservation holds a slice, or it
// is kept for the next job.
// What a reservation has too much is pools' business.
func (d *Jobs) WantedSlice(name string, owner schema.Address) bool {
	if owner.Kind == schema.KindReservation {
		if _, recorded := d.Next.Resources[owner]; recorded {
			return true
		}
		_, held := d.HeldBy(name)
		return held
	}
	j := d.JobAt(owner)
	return j != nil && (slices.Contains(j.Slices, name) || slices.Contains(j.Staged, name) || d.IsKeptIdle(name))
}
