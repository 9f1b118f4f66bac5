package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// The life of a slice: an entry in the state when somebody is given it, asked
// for (AskedAt) once its mailbox holds nothing of a former slice of that name,
// listed by its provider (Seen), born when all hosts have reported, terminating when
// it is to go whichever job wants it, and out of the state when it is gone unwanted.

// OwnSlice is the spec of the index-th slice made for a job alone, wherever it
// will be, see [Located].
func OwnSlice(stack string, job *schema.Job, index int) schema.SliceSpec {
	r := &job.Resources
	spec := schema.SliceSpec{
		Name: SliceName(stack, job.Addr, index), Stack: stack, Owner: job.Addr, Index: index,
		Provider: r.Provider, TPU: r.TPU, CPU: r.CPU, Memory: r.Memory, Disk: r.Disk,
		MachineType: r.MachineType, Preemptible: r.Preemptible, Hosts: hostsOf(r.TPU), Cloud: r.Cloud,
	}
	if r.Provider == schema.ProviderGCP {
		spec.Cloud.Live = withLabels(spec.Cloud.Live, job.Labels)
	}
	return spec
}

// PoolSlice is the spec of the index-th slice of a reservation, wherever it will be.
func PoolSlice(stack string, r *schema.Reservation, index int) schema.SliceSpec {
	return schema.SliceSpec{
		Name: SliceName(stack, r.Addr, index), Stack: stack, Owner: r.Addr, Index: index,
		Provider: r.Provider, TPU: r.Min.TPU, CPU: r.Min.CPU, Memory: r.Min.Memory, Disk: r.Min.Disk,
		Preemptible: r.Preemptible, Hosts: hostsOf(r.Min.TPU), Cloud: r.Cloud,
	}
}

// hostsOf is the number of hosts of a slice of a TPU type; one without a TPU.
func hostsOf(tpu string) int {
	if tpu == "" {
		return 1
	}
	acc, err := schema.ParseAccelerator(tpu)
	if err != nil {
		return 1
	}
	return acc.Hosts
}

// editSlice returns a copy of a slice's entry that may be changed.
func (d *differ) editSlice(name string) *state.Slice {
	next := d.mutable()
	cur := next.Slices[name]
	if cur != d.doc.Slices[name] {
		return cur // copied before
	}
	s := *cur
	next.Slices[name] = &s
	d.editedSlices = append(d.editedSlices, name)
	return &s
}

// putSlice records a slice, in place of an entry of the same name.
func (d *differ) putSlice(s state.Slice) *state.Slice {
	d.dropSlice(s.Spec.Name)
	d.mutable().Slices[s.Spec.Name] = &s
	d.editedSlices = append(d.editedSlices, s.Spec.Name)
	if s.Spec.On != "" {
		d.noteGuest(&s.Spec)
	}
	if _, listed := d.slices[s.Spec.Name]; !listed {
		d.spend(s.Spec, 1)
	}
	return &s
}

// dropSlice forgets a slice.
func (d *differ) dropSlice(name string) {
	s := d.next.Slices[name]
	if s == nil {
		return
	}
	if _, listed := d.slices[name]; !listed {
		d.spend(s.Spec, -1)
	}
	if s.Spec.On != "" {
		d.leftGuest(&s.Spec)
	}
	d.withdraw(name)
	delete(d.mutable().Slices, name)
	d.editedSlices = append(d.editedSlices, name)
}

// withdraw takes the creation of a slice back that this plan was to begin: who
// had asked for it has been given up meanwhile, and its room may be another's.
func (d *differ) withdraw(name string) {
	i, acting := d.acting[name]
	if !acting || d.plan.Actions[i].Verb != CreateSlice {
		return
	}
	d.plan.Actions = slices.Delete(d.plan.Actions, i, i+1)
	delete(d.acting, name)
	for other, n := range d.acting {
		if n > i {
			d.acting[other] = n - 1
		}
	}
}

// recordOf is the entry of a listed slice, made where there is none: the slice
// was created by a step that did not live to record it.
func (d *differ) recordOf(st *schema.SliceStatus) *state.Slice {
	if s := d.next.Slices[st.Spec.Name]; s != nil {
		return s
	}
	return d.putSlice(state.Slice{Spec: st.Spec, AskedAt: d.now, Seen: true})
}

// findDrift takes in what the inventories say of recorded slices and names what
// the world did to them by itself.
func (d *differ) findDrift() {
	var died, gone []string
	d.forgetWeather()
	d.noteConditions()
	d.recordGuests()
	for name, s := range d.doc.Slices {
		st, listed := d.slices[name]
		if listed && st.Phase == schema.SliceDead && s.Terminating.IsZero() && s.Spec.On == "" {
			died = append(died, name)
		}
		if listed && st.Cause == schema.ErrorPreempted && !s.Taken {
			d.editSlice(name).Taken = true
		}
		switch {
		case listed && !s.Seen:
			e := d.editSlice(name)
			e.Seen, e.Failed, e.Error, e.Tries, e.RetryAt, e.OverQuota = true, "", "", 0, time.Time{}, false
			e.AskedAt = d.now // it may have waited long for its turn, or for capacity
		case d.guestDrift(s, listed):
		case !listed && s.Seen && s.Terminating.IsZero() && d.known(&s.Spec):
			gone = append(gone, name)
		}
	}
	slices.Sort(died)
	for _, name := range died {
		st := d.slices[name]
		d.blame(d.doc.Slices[name], st.Cause, "slice "+name+" died: "+st.Reason)
	}
	slices.Sort(gone)
	for _, name := range gone {
		spec := d.doc.Slices[name].Spec
		if s := d.doc.Slices[name]; !s.BornAt.IsZero() {
			d.blame(s, "", "slice "+name+" has gone")
		} // else its creation has failed, and says why when it is asked for again
		d.drift(spec.Owner, name, fmt.Sprintf("slice %s is gone", name), "will be created again if it is still needed")
		d.putSlice(state.Slice{Spec: spec})
	}
}

// bringUp moves one slice towards having all its hosts up and idle, and says
// what is waited for, nothing when it is there.
func (d *differ) bringUp(spec schema.SliceSpec) reason {
	if spec.On != "" {
		return d.bringUpGuest(spec)
	}
	name := spec.Name
	st, listed := d.slices[name]
	if !listed {
		return d.ask(spec)
	}
	s := d.recordOf(st)
	switch {
	case st.Phase == schema.SliceDeleting:
		d.remove(st, state.Termination{})
		return underway("the old slice " + name + " is being deleted")
	case st.Phase == schema.SliceDead:
		d.remove(st, d.died(st))
		return underway(fmt.Sprintf("slice %s is dead (%s) and is being deleted", name, st.Reason))
	case !s.Terminating.IsZero():
		d.remove(st, s.Terminating)
		return because(WaitRetry, fmt.Sprintf("slice %s is being deleted: %s", name, s.Terminating.Text))
	case st.Spec.Fixed() != spec.Fixed():
		d.remove(st, decided(state.CauseReshaped))
		return underway(fmt.Sprintf("slice %s has another shape and is being deleted", name))
	}
	d.freshen(st, &spec)
	return d.hostsUp(st)
}

// freshen changes in place what of a slice can be.
func (d *differ) freshen(st *schema.SliceStatus, spec *schema.SliceSpec) {
	if st.Spec.Cloud.Live == spec.Cloud.Live || st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting {
		return
	}
	if s := d.next.Slices[spec.Name]; s != nil && s.RetryAt.After(d.now) {
		d.wakeAt(s.RetryAt)
		return
	}
	made := d.madeAs(st.Spec)
	made.Cloud.Live = spec.Cloud.Live
	d.act(Action{Verb: UpdateSlice, Addr: st.Spec.Owner, Slice: made})
}

// hostsUp says what is missing until every host of a listed slice has reported
// in and runs nothing. What the provider says of a slice's progress does not
// matter: hosts that report are up, and hosts that do not are not.
func (d *differ) hostsUp(st *schema.SliceStatus) reason {
	name := st.Spec.Name
	if lost := d.lostHost(st); !lost.IsZero() {
		d.remove(st, lost)
		return because(WaitRetry, fmt.Sprintf("slice %s is being deleted: %s", name, lost.Text))
	}
	missing := 0
	for n := range st.Spec.Hosts {
		h := d.host(name, n)
		if h == nil || h.Address == "" {
			missing++
			continue
		}
		if h.Notice != "" { // it takes no more tasks, and a slice dies as a whole
			why := state.Termination{Cause: state.CauseNotice, Text: fmt.Sprintf("host %d has notice: %s", n, h.Notice)}
			d.remove(st, why)
			return underway(fmt.Sprintf("slice %s is being deleted: %s", name, why.Text))
		}
	}
	if missing > 0 && d.bootOverdue(st) {
		kind, why := overdueBoot(st, missing)
		d.worsen(&st.Spec, kind, why.Text)
		d.remove(st, why)
		return because(WaitRetry, fmt.Sprintf("slice %s is being deleted: %s", name, why.Text))
	}
	if len(st.Down) > 0 {
		d.mend(st)
		return underway(fmt.Sprintf("%s of slice %s %s being started again", hostList(st.Down), name, isAre(len(st.Down))))
	}
	if missing > 0 {
		return notUpYet(st, missing)
	}
	if d.next.Slices[name].BornAt.IsZero() {
		d.cleared(&st.Spec)
		e := d.editSlice(name)
		e.BornAt, e.Failed, e.Error, e.Tries = d.now, "", "", 0
	}
	return d.emptied(st)
}

// overdueBoot is what it means that hosts of a slice have had their time to report.
func overdueBoot(st *schema.SliceStatus, missing int) (schema.ErrorKind, state.Termination) {
	if st.Waiting {
		return schema.ErrorCapacity, state.Termination{Cause: state.CauseQueue, Text: "it waited in the cloud's queue for too long: " + st.Reason}
	}
	text := fmt.Sprintf("%d of %d hosts did not report in time", missing, st.Spec.Hosts)
	return schema.ErrorPreempted, state.Termination{Cause: state.CauseBoot, Text: text}
}

// notUpYet says how far a slice has come.
func notUpYet(st *schema.SliceStatus, missing int) reason {
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
	return underway(text)
}

// bootOverdue reports whether a slice has had its time for the first reports of
// its hosts. Where reports of a slice that was up are missing, its mailbox was
// lost, and the time starts again.
func (d *differ) bootOverdue(st *schema.SliceStatus) bool {
	name := st.Spec.Name
	s := d.next.Slices[name]
	if s.AskedAt.IsZero() || !s.BornAt.IsZero() || s.Queued && !st.Waiting {
		s = d.editSlice(name)
		s.AskedAt, s.BornAt, s.Queued = d.now, time.Time{}, false
	}
	patience := bootBudget(&st.Spec)
	if st.Waiting {
		if !s.Queued {
			s = d.editSlice(name)
			s.Queued = true
		}
		patience = queueBudget(&st.Spec)
	}
	if patience == 0 {
		return false
	}
	deadline := s.AskedAt.Add(patience)
	d.wakeAt(deadline)
	return !d.now.Before(deadline)
}

// emptied sees to it that nothing runs on a slice or is about to; its hosts have
// confirmed that when the reason is none.
func (d *differ) emptied(st *schema.SliceStatus) reason {
	name := st.Spec.Name
	cur := d.obs.Assignments[name]
	behind, busy := false, false
	for n := range st.Spec.Hosts {
		h := d.host(name, n)
		behind = behind || h == nil || h.Generation < cur.Generation
		// What is older than the generation that a host has carried out has ended.
		busy = busy || h != nil && h.Task != nil && !h.Task.State.Ended() && h.Task.Generation >= h.Generation
	}
	if !behind && !busy {
		return reason{}
	}
	if cur.Run != nil || cur.Generation == 0 {
		d.halt(st.Spec.Owner, name, d.nextGeneration([]string{name}), "stopped: its slice is to run something else")
	}
	return underway("an older task on slice " + name + " is being stopped")
}

// halt tells a slice's hosts to end whatever they run.
func (d *differ) halt(addr schema.Address, name string, generation int64, why string) {
	d.act(Action{
		Verb: Assign, Addr: addr, Slice: schema.SliceSpec{Name: name}, AfterSave: true,
		Object:     d.obs.Assignments[name].Object,
		Assignment: &store.Assignment{Slice: name, Stack: d.stack, Generation: generation, Why: why},
	})
}

// mend asks a provider to start the hosts of a slice that it knows to be down.
func (d *differ) mend(st *schema.SliceStatus) {
	name := st.Spec.Name
	d.drift(st.Spec.Owner, name, fmt.Sprintf("%s of slice %s %s down", hostList(st.Down), name, isAre(len(st.Down))), "will be started again")
	if s := d.next.Slices[name]; s != nil && s.RetryAt.After(d.now) {
		d.wakeAt(s.RetryAt)
		return
	}
	d.act(Action{Verb: MendSlice, Addr: st.Spec.Owner, Slice: d.madeAs(st.Spec)})
}

// remove asks for the deletion of a listed slice, unless a call about it is to
// be retried later. While its provider says that it is being deleted the call
// is repeated now and then, for a deletion may have been cut short.
func (d *differ) remove(st *schema.SliceStatus, why state.Termination) {
	name := st.Spec.Name
	s := d.recordOf(st)
	if !why.IsZero() {
		d.terminate(name, why)
		s = d.next.Slices[name]
	}
	if st.Spec.On != "" {
		return // see attend
	}
	if s.RetryAt.After(d.now) {
		d.wakeAt(s.RetryAt)
		return
	}
	if st.Phase != schema.SliceDeleting {
		// What becomes of a job that is declared no more needs no evidence.
		d.act(Action{Verb: DeleteSlice, Addr: st.Spec.Owner, Slice: st.Spec, AfterSave: !d.leaving[st.Spec.Owner]})
		return
	}
	if !s.DeleteAt.IsZero() && !s.DeleteAt.After(d.now) {
		d.act(Action{Verb: DeleteSlice, Addr: st.Spec.Owner, Slice: st.Spec})
	}
	if !s.DeleteAt.After(d.now) {
		s = d.editSlice(name)
		s.Deletions++
		s.DeleteAt = d.now.Add(Backoff(s.Deletions))
	}
	d.wakeAt(s.DeleteAt)
}

// deletion says how the deletion of a slice goes.
func (d *differ) deletion(name string) reason {
	s := d.next.Slices[name]
	if s != nil && s.Failed != "" {
		return reason{kind: WaitRetry, text: fmt.Sprintf("slice %s cannot be deleted: %s", name, s.Error), until: s.RetryAt}
	}
	return underway("slice " + name + " is being deleted")
}

func hostList(hosts []int) string {
	if len(hosts) == 1 {
		return fmt.Sprintf("host %d", hosts[0])
	}
	return fmt.Sprintf("hosts %v", hosts)
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
