package lifecycle

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// DrawsWhole reports whether a job has whole slices of a reservation.
func DrawsWhole(r *schema.Resources) bool { return r.Reservation != "" && !r.Packed }

// ListedPacked are the packed slices that the hosts of listed slices are to serve, as if a
// provider listed them.
func ListedPacked(obs *plan.Observed, listed map[string]*schema.SliceStatus) []*schema.SliceStatus {
	var found []*schema.SliceStatus
	for on, host := range listed {
		for _, g := range obs.Assignments[on].PackedTasks {
			found = append(found, snapshot.PackedStatus(snapshot.PackedSpec(g.Owner, g.Index, &host.Spec, g), host))
		}
	}
	return found
}

// packedDrift takes in what became of a recorded packed slice; it reports false for
// another slice. The host's own slice records what happened to it.
func (d *Slices) packedDrift(s *state.Slice, listed bool) bool {
	if s.Spec.On == "" {
		return false
	}
	if !listed && s.Listed && d.Known(&s.Spec) {
		d.terminate(s.Spec.Name, state.Termination{Cause: state.CauseHostGone, Text: "slice " + s.Spec.On + ", on which it was, is gone"})
	}
	return true
}

// takeAssignedShare records what a packed slice has of its host, where the host is to serve another share under
// its name: it was placed anew, and the controller did not live to save that. Its job is placed again.
func takeAssignedShare(d *Slices, s *state.Slice) {
	host, listed := d.Listed[s.Spec.On]
	if s.Spec.On == "" || !listed {
		return
	}
	assigned := d.Obs.Assignments[s.Spec.On].PackedTasks
	i := slices.IndexFunc(assigned, func(g state.PackedTask) bool { return g.Slice == s.Spec.Name })
	if i < 0 {
		return
	}
	if g := assigned[i]; g.Host != s.Spec.OnHost || g.CPU != s.Spec.CPU || g.Memory != s.Spec.Memory || g.Disk != s.Spec.Disk {
		d.EditSlice(s.Spec.Name).Spec = snapshot.PackedSpec(s.Spec.Owner, s.Spec.Index, &host.Spec, g)
		d.terminate(s.Spec.Name, change.Decided(state.CauseReshaped))
	}
}

// bringUpPacked is BringUp for a packed slice.
func (d *Slices) bringUpPacked(spec schema.SliceSpec) plan.Reason {
	if why := d.bringUpHost(spec.On); !why.None() {
		return why
	}
	name := spec.Name
	s := d.Next.Slices[name]
	if s.PendingSince.IsZero() {
		return d.askHost(s)
	}
	st, listed := d.Listed[name]
	h := d.Host(name, 0)
	if !listed || h == nil || h.Address == "" || !d.IsReportedServed(&spec) {
		return d.slowPacked(s)
	}
	if s.UpAt.IsZero() {
		d.EditSlice(name).UpAt = d.Now
	}
	return d.emptied(st)
}

// askHost assigns a packed slice to its host, once nothing is left of a former one of
// that name.
func (d *Slices) askHost(s *state.Slice) plan.Reason {
	name := s.Spec.Name
	switch {
	case d.IsServed(&s.Spec):
		return plan.Underway("what is left of the old slice " + name + " is being cleared away")
	case d.hasMailbox(name):
		d.Forget(name, s.Spec.Owner)
		return plan.Underway("what is left of the old slice " + name + " is being cleared away")
	}
	d.EditSlice(name).PendingSince = d.Now
	return d.hostIsAssigned(&s.Spec)
}

func (d *Slices) hostIsAssigned(spec *schema.SliceSpec) plan.Reason {
	return plan.Underway(fmt.Sprintf("host %d of slice %s is making room", spec.OnHost, spec.On))
}

// slowPacked waits for a host to serve a packed slice, as long as machines may take to boot.
func (d *Slices) slowPacked(s *state.Slice) plan.Reason {
	deadline := s.PendingSince.Add(plan.BootTimeout)
	if d.Now.Before(deadline) {
		d.WakeAt(deadline)
		return d.hostIsAssigned(&s.Spec)
	}
	why := fmt.Sprintf("host %d of slice %s did not make room in time", s.Spec.OnHost, s.Spec.On)
	d.terminate(s.Spec.Name, state.Termination{Cause: state.CauseBoot, Text: why})
	return plan.Because(plan.WaitRetry, why)
}

// CannotStay says why a job cannot run on a packed slice that it holds, nothing if it can.
func (d *Slices) CannotStay(want *schema.Job, name string) plan.Reason {
	s := d.Next.Slices[name]
	if s == nil || s.Spec.On == "" {
		return plan.Because(plan.WaitRoom, "slice "+name+" is not to be had any more")
	}
	if !s.Terminating.IsZero() {
		return plan.Because(plan.WaitRoom, fmt.Sprintf("slice %s is being given up: %s", name, s.Terminating.Text))
	}
	if _, listed := d.Listed[s.Spec.On]; !listed && !d.Known(&s.Spec) {
		return plan.Reason{} // nothing may be concluded
	}
	if d.isCrowdedOut(&s.Spec) {
		return plan.Because(plan.WaitRoom, fmt.Sprintf("slice %s has no room for it any more", s.Spec.On))
	}
	if p := d.PoolOf(want.Resources.Reservation); p != nil {
		for i := range p.Specs {
			if p.Specs[i].Name == s.Spec.On {
				return d.Closed(&p.Specs[i])
			}
		}
	}
	return plan.Because(plan.WaitRoom, fmt.Sprintf("slice %s is not to be kept", s.Spec.On))
}

// PackedSpecOf is the spec of a packed slice that a job holds, false if it cannot stay there.
func (d *Slices) PackedSpecOf(want *schema.Job, name string) (schema.SliceSpec, bool) {
	s := d.Next.Slices[name]
	if s == nil || !d.CannotStay(want, name).None() {
		return schema.SliceSpec{}, false
	}
	return s.Spec, true
}
