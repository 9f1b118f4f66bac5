package lifecycle

import (
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A job with create_before_destroy that is replaced while it runs gets its new
// slices first, beside the old ones, and runs on until all of them are up. Then
// its attempt is stopped; when every host has confirmed that, the new slices take
// the place of the old ones, which are deleted, and the next attempt starts. So
// there are never two attempts, and where there is room for both there is little
// time between them. The jobs of a group that are replaced go through it together.
//
// Staged are the slices that wait to take over. They are recorded and saved
// before they are asked for: a controller that finds them later knows whose they are, and
// looks there for an attempt that was started and not recorded. They have names of
// their own, by the next indices that are free, and keep them.
//
// Where there is no room for both the old slices go first, as without it: when a
// provider's limit or a reservation is too small, or a quota is used up. A
// provider that is merely out of stock is waited for, since deleting what runs
// would not change that.

// Staging is a job that may get new slices beside those it has.
type Staging struct {
	Want   *schema.Job
	Change int // index among the plan's changes
}

// Stages reports whether a job is to be replaced by way of staged slices, and
// nothing has been given up yet.
func (d *Jobs) Stages(want *schema.Job) bool {
	j := d.Next.Jobs[want.Addr]
	return want.Lifecycle.CreateBeforeDestroy && d.Verbs[want.Addr] == plan.VerbReplace &&
		j.Running() && j.Last().StopGeneration == 0 && !slices.ContainsFunc(j.Slices, d.isTerminating)
}

// HandOver ends a job's attempt and, when that is confirmed, lets the staged
// slices take over.
func (d *Jobs) HandOver(want *schema.Job) {
	addr := want.Addr
	if !d.stopAndReportStopped(addr, change.Replaced(d.Next.Jobs[addr]).Text) {
		return
	}
	j := d.Next.Jobs[addr]
	if DrawsWhole(&j.Spec.Resources) {
		if left := d.giveBack(j); len(left) > 0 {
			d.Wait(addr, left...)
			return
		}
	}
	d.releaseReplacedSlices(j, j.Staged)
	e := d.Renew(want)
	e.Slices, e.Staged = e.Staged, nil
	d.NoteChoice(want)
	d.Tally(addr)
}

// Unstage gives up what waited to take over.
func (d *Jobs) Unstage(addr schema.Address) {
	j := d.Next.Jobs[addr]
	if len(j.Staged) == 0 {
		return
	}
	for _, name := range j.Staged {
		if s := d.Next.Slices[name]; s != nil && s.Spec.Owner == addr {
			d.terminate(name, change.Decided(state.CauseUnneeded))
		}
	}
	d.Edit(addr).Staged = nil
	d.Tally(addr)
}
