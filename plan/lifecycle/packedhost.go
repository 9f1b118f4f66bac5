package lifecycle

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// bringUpHost brings up the slice on which a packed slice is placed, once in a Diff.
func (d *Slices) bringUpHost(name string) plan.Reason {
	if why, done := d.hosting[name]; done {
		return why
	}
	if d.hosting == nil {
		d.hosting = map[string]plan.Reason{}
	}
	s := d.Next.Slices[name]
	if s == nil {
		return plan.Because(plan.WaitRoom, "slice "+name+" is not to be had any more")
	}
	spec := s.Spec
	if p := d.PoolOf(spec.Owner.Scoped()); p != nil {
		if n := slices.IndexFunc(p.Specs, func(of schema.SliceSpec) bool { return of.Name == name }); n >= 0 {
			spec = p.Specs[n]
		}
	}
	d.hosting[name] = d.BringUp(spec)
	return d.hosting[name]
}

// Monitor updates the slices that have packed tasks or had some: those that are lost
// under them, and what their hosts are told.
func (d *Slices) Monitor() {
	names := slices.Collect(maps.Keys(d.Packed))
	for name, a := range d.Obs.Assignments {
		if len(a.PackedTasks) > 0 && len(d.Packed[name]) == 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		st, listed := d.Listed[name]
		if !listed {
			continue
		}
		if _, held := d.PackedOn(name); held {
			d.monitorHost(st)
		}
		d.assignPacked(name)
	}
}

// monitorHost deletes a slice that is lost and has hosts started that are down.
// No other step does, since its packed tasks hold it.
func (d *Slices) monitorHost(st *schema.SliceStatus) {
	s := d.RecordOf(st)
	switch {
	case st.Phase == schema.SliceDead:
		d.Remove(st, d.died(st))
	case !s.Terminating.IsZero() || st.Phase == schema.SliceDeleting:
		d.Remove(st, state.Termination{})
	default:
		if lost := d.LostHost(st); !lost.IsZero() {
			d.Remove(st, lost)
		} else if len(st.Down) > 0 {
			d.repair(st)
		}
	}
}

// assignPacked has the hosts of a slice serve the recorded packed tasks. The
// generation stays: nothing else that runs there is touched.
func (d *Slices) assignPacked(name string) {
	packed := d.packedTasksOf(name)
	cur := d.Obs.Assignments[name]
	same := slices.Equal(packed, cur.PackedTasks)
	takes := !same && slices.ContainsFunc(cur.PackedTasks, func(g state.PackedTask) bool { return !slices.Contains(packed, g) })
	if i, acting := d.Acting[name]; acting {
		if a := &d.MutableActions()[i]; a.Verb == plan.Assign {
			assigned := *a.Assignment // another stage's stays as it is
			assigned.PackedTasks = packed
			a.Assignment, a.AfterSave = &assigned, a.AfterSave || takes
		}
		return
	}
	if _, damaged := d.Obs.Damaged[name]; same || damaged {
		return // what is damaged is written anew with what runs there
	}
	d.Act(plan.Action{
		Verb: plan.Assign, Addr: d.changedPacked(packed, cur.PackedTasks), Slice: &schema.SliceSpec{Name: name},
		Object: cur.Object, AfterSave: takes,
		Assignment: &state.Assignment{Slice: name, Stack: d.Stack, Generation: cur.Generation, Run: cur.Run, Why: cur.Why, PackedTasks: packed},
	})
}

// packedTasksOf are the packed tasks that a slice's hosts are to serve, sorted by name. One
// that is not served yet waits until it fits beside those that are: what was decided
// about them may have been lost with the state's last write. So may be that the slice was
// given to a job as a whole.
func (d *Slices) packedTasksOf(name string) []state.PackedTask {
	var told []state.PackedTask
	rooms := map[int]*snapshot.FreeHost{}
	_, whole := d.HeldWhole(name)
	for _, packed := range d.Packed[name] {
		s := d.Next.Slices[packed]
		if s == nil || !s.Terminating.IsZero() || s.PendingSince.IsZero() {
			continue
		}
		if !d.IsServed(&s.Spec) {
			if whole {
				continue
			}
			n := s.Spec.OnHost
			if rooms[n] == nil {
				rooms[n] = d.roomLeft(name, n)
			}
			need := d.ShareOfPacked(&s.Spec)
			if !rooms[n].Lacks(&need).None() {
				continue
			}
			rooms[n].Take(&need, 1)
		}
		told = append(told, state.PackedTask{
			Slice: packed, Host: s.Spec.OnHost, Owner: s.Spec.Owner, Index: s.Spec.Index,
			CPU: s.Spec.CPU, Memory: s.Spec.Memory, Disk: s.Spec.Disk,
		})
	}
	return told
}

// roomLeft is what a host of a listed slice has beside the packed tasks that it serves.
func (d *Slices) roomLeft(name string, n int) *snapshot.FreeHost {
	r := capacity.EmptyRoom(d.Listed[name].Spec, n)
	for _, packed := range d.Packed[name] {
		if s := d.Next.Slices[packed]; s != nil && s.Spec.OnHost == n && d.IsServed(&s.Spec) {
			taken := d.ShareOfPacked(&s.Spec)
			r.Take(&taken, 1)
		}
	}
	return r
}

// isCrowdedOut reports whether a packed task that is not served yet has no room beside
// those that are, or on a slice that a job has as a whole.
func (d *Slices) isCrowdedOut(spec *schema.SliceSpec) bool {
	if d.IsServed(spec) {
		return false
	}
	if _, whole := d.HeldWhole(spec.On); whole {
		return true
	}
	if _, listed := d.Listed[spec.On]; !listed {
		return false
	}
	need := d.ShareOfPacked(spec)
	return !d.roomLeft(spec.On, spec.OnHost).Lacks(&need).None()
}

// leftPacked waits for packed tasks that hosts of a slice still serve, and that are neither
// recorded nor assigned any more.
func (d *Slices) leftPacked(st *schema.SliceStatus) plan.Reason {
	for n := range st.Spec.Hosts {
		h := d.Host(st.Spec.Name, n)
		if h != nil && slices.ContainsFunc(h.PackedTasks, func(packed string) bool { return d.Next.Slices[packed] == nil }) {
			return plan.Underway(fmt.Sprintf("an older task on host %d of slice %s is being stopped", n, st.Spec.Name))
		}
	}
	return plan.Reason{}
}

// changedPacked is the owner of the first packed task that is new, or else of the first
// that leaves.
func (d *Slices) changedPacked(is, was []state.PackedTask) schema.Address {
	for _, lists := range [2][2][]state.PackedTask{{is, was}, {was, is}} {
		for _, g := range lists[0] {
			if !slices.Contains(lists[1], g) {
				return g.Owner
			}
		}
	}
	return schema.Address{}
}
