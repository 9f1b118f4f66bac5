package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// FindDrift takes in what the inventories say of recorded slices and names what
// the world did to them by itself.
func (d *Slices) FindDrift() {
	var died, gone, edited []string
	d.ForgetZoneHealth()
	d.noteConditions()
	d.RecordPacked()
	for name, s := range d.Doc.Slices {
		st, listed := d.Listed[name]
		if listed && st.Phase == schema.SliceDead && s.Terminating.IsZero() && s.Spec.On == "" {
			died = append(died, name)
		}
		if listed && st.Cause == schema.ErrorPreempted && !s.Preempted {
			d.EditSlice(name).Preempted = true
		}
		takeAssignedShare(d, s)
		if listed && !slices.Equal(st.Edited, s.Edited) {
			d.EditSlice(name).Edited = st.Edited
			edited = append(edited, name)
		}
		switch {
		case listed && !s.Listed:
			e := d.EditSlice(name)
			e.Listed, e.Failed, e.Error, e.Tries, e.RetryAt, e.OverQuota = true, "", "", 0, time.Time{}, false
			e.PendingSince = d.Now // it may have waited long for its turn, or for capacity
		case d.packedDrift(s, listed):
		case !listed && s.Listed && s.Terminating.IsZero() && d.Known(&s.Spec):
			gone = append(gone, name)
		}
	}
	slices.Sort(died)
	for _, name := range died {
		st := d.Listed[name]
		d.Blame(d.Doc.Slices[name], st.Cause, "slice "+name+" died: "+st.Reason)
	}
	slices.Sort(edited)
	for _, name := range edited {
		if st := d.Listed[name]; len(st.Edited) > 0 {
			d.Drift(EditedDrift(st.Spec.Owner, name, st.Edited))
		}
	}
	slices.Sort(gone)
	for _, name := range gone {
		spec := d.Doc.Slices[name].Spec
		if s := d.Doc.Slices[name]; !s.UpAt.IsZero() {
			d.Blame(s, "", "slice "+name+" has gone")
		} // else its creation has failed, and says why when it is asked for again
		d.Drift(plan.Drift{Kind: plan.DriftSliceGone, Addr: spec.Owner, Slice: name, Found: fmt.Sprintf("slice %s is gone", name), Then: "will be created again if it is still needed"})
		d.PutSlice(state.Slice{Spec: spec})
	}
}

// EditedDrift is that a slice has other labels or tags than were asked for.
func EditedDrift(owner schema.Address, name string, edited []string) plan.Drift {
	return plan.Drift{
		Kind: plan.DriftSliceEdited, Addr: owner, Slice: name,
		Found: fmt.Sprintf("slice %s was changed at its provider: %s", name, strings.Join(edited, ", ")), Then: "will be set again",
	}
}

// BringUp moves one slice towards having all its hosts up and idle, and says
// what is waited for, nothing when it is there.
func (d *Slices) BringUp(spec schema.SliceSpec) plan.Reason {
	if spec.On != "" {
		return d.bringUpPacked(spec)
	}
	name := spec.Name
	st, listed := d.Listed[name]
	if !listed {
		return d.ask(spec)
	}
	s := d.RecordOf(st)
	switch {
	case st.Phase == schema.SliceDeleting:
		d.Remove(st, state.Termination{})
		return plan.Underway("the old slice " + name + " is being deleted")
	case st.Phase == schema.SliceDead:
		d.Remove(st, d.died(st))
		return plan.Underway(fmt.Sprintf("slice %s is dead (%s) and is being deleted", name, st.Reason))
	case !s.Terminating.IsZero():
		d.Remove(st, s.Terminating)
		return plan.Because(plan.WaitRetry, fmt.Sprintf("slice %s is being deleted: %s", name, s.Terminating.Text))
	case st.Spec.Fixed() != spec.Fixed():
		d.Remove(st, change.Decided(state.CauseReshaped))
		return plan.Underway(fmt.Sprintf("slice %s has another shape and is being deleted", name))
	}
	d.freshen(st, &spec)
	return d.hostsUp(st)
}

// freshen changes in place what of a slice can be.
func (d *Slices) freshen(st *schema.SliceStatus, spec *schema.SliceSpec) {
	if st.Spec.Cloud.Live == spec.Cloud.Live && len(st.Edited) == 0 || st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting {
		return
	}
	if s := d.Next.Slices[spec.Name]; s != nil && s.RetryAt.After(d.Now) {
		d.WakeAt(s.RetryAt)
		return
	}
	made := d.MadeAs(st.Spec)
	made.Cloud.Live = spec.Cloud.Live
	d.Act(plan.Action{Verb: plan.UpdateSlice, Addr: st.Spec.Owner, Slice: &made})
}

// hostsUp says what is missing until every host of a listed slice has reported
// in and runs nothing. What the provider says of a slice's progress does not
// matter: hosts that report are up, and hosts that do not are not.
func (d *Slices) hostsUp(st *schema.SliceStatus) plan.Reason {
	name := st.Spec.Name
	if lost := d.LostHost(st); !lost.IsZero() {
		d.Remove(st, lost)
		return plan.Because(plan.WaitRetry, fmt.Sprintf("slice %s is being deleted: %s", name, lost.Text))
	}
	missing := 0
	for n := range st.Spec.Hosts {
		h := d.Host(name, n)
		if h == nil || h.Address == "" {
			missing++
			continue
		}
		if h.Notice != "" { // it takes no more tasks, and a slice dies as a whole
			why := state.Termination{Cause: state.CauseNotice, Text: fmt.Sprintf("host %d has notice: %s", n, h.Notice)}
			d.Remove(st, why)
			return plan.Underway(fmt.Sprintf("slice %s is being deleted: %s", name, why.Text))
		}
	}
	if missing > 0 && d.bootOverdue(st) {
		kind, why := overdueBoot(st, missing)
		d.Worsen(&st.Spec, kind, why.Text)
		d.Remove(st, why)
		return plan.Because(plan.WaitRetry, fmt.Sprintf("slice %s is being deleted: %s", name, why.Text))
	}
	if len(st.Down) > 0 {
		d.repair(st)
		text := fmt.Sprintf("%s of slice %s %s being started again", hostList(st.Down), name, isAre(len(st.Down)))
		if st.DownReason != "" {
			text += ", as the agent ended: " + st.DownReason
		}
		return plan.Underway(text)
	}
	if missing > 0 {
		return notUpYet(st, missing)
	}
	if d.Next.Slices[name].UpAt.IsZero() {
		d.Cleared(&st.Spec)
		e := d.EditSlice(name)
		e.UpAt, e.Failed, e.Error, e.Tries = d.Now, "", "", 0
	}
	return d.emptied(st)
}

// overdueBoot is what it means that hosts of a slice have had their time to report.
func overdueBoot(st *schema.SliceStatus, missing int) (schema.ErrorKind, state.Termination) {
	if st.Waiting {
		return schema.ErrorCapacity, state.Termination{Cause: state.CauseQueue, Text: "it waited in the cloud's queue for too long: " + st.Reason}
	}
	text := fmt.Sprintf("%d of %d hosts did not report in time", missing, st.Spec.Hosts)
	if st.Reason != "" {
		text += ": " + st.Reason
	}
	return schema.ErrorPreempted, state.Termination{Cause: state.CauseBoot, Text: text}
}

// notUpYet says how far a slice has come.
func notUpYet(st *schema.SliceStatus, missing int) plan.Reason {
	where := "slice " + st.Spec.Name
	if st.Spec.Zone != "" {
		where += " in " + st.Spec.Zone
	}
	text := fmt.Sprintf("%d of %d hosts of %s have not reported in yet", missing, st.Spec.Hosts, where)
	if st.Waiting {
		text = where + " has no machines yet"
	}
	if st.Reason != "" && len(st.Down) == 0 {
		text += ": " + st.Reason
	}
	return plan.Underway(text)
}

// bootOverdue reports whether a slice has had its time for the first reports of
// its hosts. Where reports of a slice that was up are missing, its mailbox was
// lost, and the time starts again.
func (d *Slices) bootOverdue(st *schema.SliceStatus) bool {
	name := st.Spec.Name
	s := d.Next.Slices[name]
	if s.PendingSince.IsZero() || !s.UpAt.IsZero() || s.Queued && !st.Waiting {
		s = d.EditSlice(name)
		s.PendingSince, s.UpAt, s.Queued = d.Now, time.Time{}, false
	}
	patience := plan.BootBudget(&st.Spec)
	if st.Waiting {
		if !s.Queued {
			s = d.EditSlice(name)
			s.Queued = true
		}
		patience = plan.QueueBudget(&st.Spec)
	}
	if patience == 0 {
		return false
	}
	deadline := s.PendingSince.Add(patience)
	d.WakeAt(deadline)
	return !d.Now.Before(deadline)
}

// emptied sees to it that nothing runs on a slice or is about to; its hosts have
// confirmed that when the reason is none.
func (d *Slices) emptied(st *schema.SliceStatus) plan.Reason {
	name := st.Spec.Name
	cur := d.Obs.Assignments[name]
	if _, damaged := d.Obs.Damaged[name]; damaged { // hosts may have read it before, and be about to begin what it says
		d.Halt(st.Spec.Owner, name, d.NextGeneration([]string{name}), "stopped: what its slice is to run cannot be read")
		return plan.Underway("what slice " + name + " is to run cannot be read, and is being written again")
	}
	behind, busy := false, false
	for n := range st.Spec.Hosts {
		h := d.Host(name, n)
		behind = behind || h == nil || h.Generation < cur.Generation
		// What is older than the generation that a host has carried out has ended.
		busy = busy || h != nil && h.Task != nil && !h.Task.State.Ended() && h.Task.Generation >= h.Generation
		// A host that has carried out an assignment begins its run once its siblings have, too.
		busy = busy || h != nil && cur.Run != nil && (h.Task == nil || h.Task.Generation < cur.Generation)
	}
	if !behind && !busy {
		return d.leftPacked(st)
	}
	if cur.Run != nil || cur.Generation == 0 {
		d.Halt(st.Spec.Owner, name, d.NextGeneration([]string{name}), "stopped: its slice is to run something else")
	}
	return plan.Underway("an older task on slice " + name + " is being stopped")
}

// Halt tells a slice's hosts to end whatever they run.
func (d *Slices) Halt(addr schema.Address, name string, generation int64, why string) {
	d.haltFor("", addr, name, generation, why)
}

// haltFor is Halt for a stop before which hooks run.
func (d *Slices) haltFor(stop schema.StopReason, addr schema.Address, name string, generation int64, why string) {
	d.Act(plan.Action{
		Verb: plan.Assign, Addr: addr, Slice: &schema.SliceSpec{Name: name}, AfterSave: true,
		Object:     d.Obs.Assignments[name].Object,
		Assignment: &state.Assignment{Slice: name, Stack: d.Stack, Generation: generation, Why: why, Stop: stop},
	})
}

// repair asks a provider to start the hosts of a slice that it knows to be down.
func (d *Slices) repair(st *schema.SliceStatus) {
	name := st.Spec.Name
	d.Drift(plan.Drift{Kind: plan.DriftHostsDown, Addr: st.Spec.Owner, Slice: name, Found: fmt.Sprintf("%s of slice %s %s down", hostList(st.Down), name, isAre(len(st.Down))), Then: "will be started again"})
	if s := d.Next.Slices[name]; s != nil && s.RetryAt.After(d.Now) {
		d.WakeAt(s.RetryAt)
		return
	}
	made := d.MadeAs(st.Spec)
	d.Act(plan.Action{Verb: plan.RepairSlice, Addr: st.Spec.Owner, Slice: &made})
}

// Remove asks for the deletion of a listed slice, unless a call about it is to
// be retried later. While its provider says that it is being deleted the call
// is repeated now and then, for a deletion may have been cut short.
func (d *Slices) Remove(st *schema.SliceStatus, why state.Termination) {
	name := st.Spec.Name
	s := d.RecordOf(st)
	if !why.IsZero() {
		d.terminate(name, why)
		s = d.Next.Slices[name]
	}
	if st.Spec.On != "" {
		return // see Monitor
	}
	if s.RetryAt.After(d.Now) {
		d.WakeAt(s.RetryAt)
		return
	}
	spec := st.Spec
	if st.Phase != schema.SliceDeleting {
		// What becomes of a job that is declared no more needs no evidence.
		d.Act(plan.Action{Verb: plan.DeleteSlice, Addr: st.Spec.Owner, Slice: &spec, AfterSave: !d.Leaving[st.Spec.Owner]})
		return
	}
	if !s.DeleteAt.IsZero() && !s.DeleteAt.After(d.Now) {
		d.Act(plan.Action{Verb: plan.DeleteSlice, Addr: st.Spec.Owner, Slice: &spec})
	}
	if !s.DeleteAt.After(d.Now) {
		s = d.EditSlice(name)
		s.Deletions++
		s.DeleteAt = d.Now.Add(plan.Backoff(s.Deletions))
	}
	d.WakeAt(s.DeleteAt)
}

// Deletion says how the deletion of a slice goes.
func (d *Slices) Deletion(name string) plan.Reason {
	s := d.Next.Slices[name]
	if s != nil && s.Failed != "" {
		return plan.Reason{Kind: plan.WaitRetry, Text: fmt.Sprintf("slice %s cannot be deleted: %s", name, s.Error), Until: s.RetryAt}
	}
	return plan.Underway("slice " + name + " is being deleted")
}

func hostList(hosts []int) string {
	if len(hosts) == 1 {
		return fmt.Sprintf("host %d", hosts[0])
	}
	numbers := make([]string, len(hosts))
	for i, host := range hosts {
		numbers[i] = strconv.Itoa(host)
	}
	last := len(numbers) - 1
	return "hosts " + strings.Join(numbers[:last], ", ") + " and " + numbers[last]
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
