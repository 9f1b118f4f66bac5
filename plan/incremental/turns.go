package incremental

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Where thousands of slices are lost at once, thousands of jobs wait for calls that take minutes
// together. Of jobs that wait for nothing but what is under way a plan decides about a few, in
// turn: for the others stands what was decided last, with the actions that followed, as long as
// nothing that is observed of their slices differs and none of these is overdue. All other jobs are
// decided about in each plan.

// turnsAtOnce is about how many jobs that wait for what is under way a plan decides.
const turnsAtOnce = 256

// untilTurn is after what time the next plan is made at the latest while jobs wait for their turn.
const untilTurn = 250 * time.Millisecond

// turns are the jobs that wait for what is under way.
type turns struct {
	most   int                // that a plan decides about; 0: turnsAtOnce
	jobs   map[int]waitingJob // by their indices
	next   int                // whose turn it is: the first of them from this index on
	passed []int              // those that the last plan left out, in order
}

// waitingJob is what was decided about a job that waits for what is under way, and on what.
type waitingJob struct {
	record  *state.Job
	slices  []waitedSlice
	pending plan.Pending
	actions []plan.Action
}

// waitedSlice is what is known of a slice of such a job.
type waitedSlice struct {
	name     string
	record   *state.Slice
	status   *schema.SliceStatus // as it is listed; nil: it is not
	assigned state.Generation
	hosts    []plan.Host
	booting  bool
	unread   bool
	read     bool      // directly
	places   [2]string // where it is about to be asked for; "": nowhere, it was or is there
	due      time.Time // when it is to be there at the latest; zero: it was not asked for, or may take for ever
}

func (t *turns) limit() int {
	if t.most > 0 {
		return t.most
	}
	return turnsAtOnce
}

// due are those of the jobs about which a plan is to decide, of those that are dirty.
func (t *turns) due(d *snapshot.Evidence, desired *schema.Desired, dirty []int) []int {
	t.passed = nil
	if len(t.jobs) <= t.limit() {
		return dirty
	}
	waiting := make([]int, 0, len(t.jobs))
	for _, i := range dirty {
		if w, waits := t.jobs[i]; waits && w.stands(d, desired.Jobs[i].Addr) {
			waiting = append(waiting, i)
		}
	}
	if len(waiting) <= t.limit() {
		return dirty
	}
	at, _ := slices.BinarySearch(waiting, t.next)
	end := at + t.limit()
	if end > len(waiting) {
		t.passed = waiting[end-len(waiting) : at]
		t.next = waiting[end-len(waiting)]
	} else {
		t.passed = slices.Concat(waiting[:at], waiting[end:])
		t.next = waiting[end-1] + 1
	}
	due := make([]int, 0, len(dirty)-len(t.passed))
	for left := t.passed; len(dirty) > 0; dirty = dirty[1:] {
		if len(left) > 0 && left[0] == dirty[0] {
			left = left[1:]
		} else {
			due = append(due, dirty[0])
		}
	}
	return due
}

// stands reports whether nothing differs of what was decided on.
func (w *waitingJob) stands(d *snapshot.Evidence, addr schema.Address) bool {
	if d.Doc.Jobs[addr] != w.record {
		return false
	}
	for k := range w.slices {
		if !w.slices[k].isSame(d) {
			return false
		}
	}
	return true
}

// isSame reports whether a slice is as it was.
func (s *waitedSlice) isSame(d *snapshot.Evidence) bool {
	if d.Doc.Slices[s.name] != s.record || d.Doubted[s.name] != "" || d.Obs.Assignments[s.name].Object != s.assigned ||
		d.Obs.Booting[s.name] != s.booting || d.Obs.Unread[s.name] != s.unread || d.ReadDirectly[s.name] != s.read || !s.isOpen(d.Doc.ZoneHealth, d.Now) {
		return false
	}
	if !s.due.IsZero() && !d.Now.Before(s.due) {
		return false
	}
	st, listed := d.Listed[s.name]
	if listed != (s.status != nil) || listed && !sameStatus(st, s.status) {
		return false
	}
	hosts := d.Obs.Hosts[s.name]
	if len(hosts) != len(s.hosts) {
		return false
	}
	same := state.SameSlice(hosts, s.hosts)
	for n := range hosts {
		if !same && !hosts[n].SameReport(&s.hosts[n]) || hosts[n].Lives() != s.hosts[n].Lives() ||
			!hosts[n].Lives() && hosts[n].SilentFor(d.Obs.Monitored) >= snapshot.HostTimeout {
			return false
		}
	}
	return true
}

// note takes in what a plan has decided about jobs: waits are those that wait after it.
func (t *turns) note(d *reconcile.Reconciler, decided, dirty []int, waits []plan.Pending) {
	for _, i := range decided {
		delete(t.jobs, i)
	}
	if len(dirty) <= t.limit() {
		t.jobs = nil
		return
	}
	if t.jobs == nil {
		t.jobs = make(map[int]waitingJob, len(dirty))
	}
	var actions map[schema.Address][]plan.Action
	for _, i := range decided {
		want := &d.Desired.Jobs[i]
		w, still := waitOf(d, want, waits)
		if !still {
			continue
		}
		if actions == nil {
			actions = make(map[schema.Address][]plan.Action, len(d.Plan.Actions))
			for k := range d.Plan.Actions {
				a := &d.Plan.Actions[k]
				actions[a.Addr] = append(actions[a.Addr], *a)
			}
		}
		w.actions = actions[want.Addr]
		t.jobs[i] = w
	}
}

// waitOf is what is known of a job that waits for what is under way, after a plan that
// decided about it; false for any other.
func waitOf(d *reconcile.Reconciler, want *schema.Job, waits []plan.Pending) (waitingJob, bool) {
	j, r := d.Next.Jobs[want.Addr], &want.Resources
	switch {
	case j == nil || j != d.Doc.Jobs[want.Addr] || len(j.Slices) == 0 || j.Status.Ended(), j.Replace || j.Stop || len(j.Staged) > 0 || !j.YieldsTo.IsZero(),
		want.Addr.Group != "" || want.Schedule != nil || len(want.DependsOn)+len(want.Uses) > 0, r.Reservation != "" || r.Packed, d.Clearing[want.Addr]:
		return waitingJob{}, false
	case want.SchedulingTimeout != 0: // time alone may fail it
		return waitingJob{}, false
	case j.Running() && (j.Last().StopGeneration != 0 || !slices.Equal(j.Last().Slices, j.Slices)):
		return waitingJob{}, false
	}
	n, waiting := place(waits, want.Addr)
	if !waiting || !waits[n].Underway || waits[n].Blocked {
		return waitingJob{}, false
	}
	w := waitingJob{record: j, pending: waits[n], slices: make([]waitedSlice, 0, len(j.Slices))}
	for _, name := range j.Slices {
		s := d.Next.Slices[name]
		if s == nil || s != d.Doc.Slices[name] || s.Spec.Owner != want.Addr || !isComing(d, s) {
			return waitingJob{}, false
		}
		of := waitedSlice{
			places: placesOf(d, s), name: name, record: s, status: d.Listed[name], assigned: d.Obs.Assignments[name].Object, hosts: d.Obs.Hosts[name],
			booting: d.Obs.Booting[name], unread: d.Obs.Unread[name], read: d.ReadDirectly[name], due: dueAt(s, d.Listed[name]),
		}
		if !of.isOpen(d.Next.ZoneHealth, d.Now) {
			return waitingJob{}, false
		}
		w.slices = append(w.slices, of)
	}
	return w, true
}

// dueAt is when a slice and its hosts are to be there at the latest; zero: it was not asked for, or
// may take for ever.
func dueAt(s *state.Slice, st *schema.SliceStatus) time.Time {
	budget := plan.BootBudget(&s.Spec)
	if st != nil && st.Waiting {
		budget = plan.QueueBudget(&s.Spec)
	}
	if s.PendingSince.IsZero() || budget == 0 {
		return time.Time{}
	}
	return s.PendingSince.Add(budget)
}

// isComing reports whether a slice is there, was asked for, or is about to be, and nothing speaks
// against that.
func isComing(d *reconcile.Reconciler, s *state.Slice) bool {
	if !s.Terminating.IsZero() || s.Failed != "" || !s.RetryAt.IsZero() || d.Doubted[s.Spec.Name] != "" {
		return false
	}
	if st := d.Listed[s.Spec.Name]; st != nil {
		return st.Phase != schema.SliceDead && st.Phase != schema.SliceDeleting && len(st.Down) == 0 && st.Spec.Fixed() == s.Spec.Fixed()
	}
	_, acting := d.Acting[s.Spec.Name]
	return acting || !s.PendingSince.IsZero()
}

// placesOf are where a slice is about to be asked for.
func placesOf(d *reconcile.Reconciler, s *state.Slice) [2]string {
	if d.Listed[s.Spec.Name] != nil || !s.PendingSince.IsZero() {
		return [2]string{}
	}
	return [2]string{plan.StockPlace(&s.Spec), capacity.QuotaPlace(&s.Spec)}
}

// isOpen reports whether none of the places where a slice is about to be asked for has failed:
// those that try such a place are counted in each plan.
func (s *waitedSlice) isOpen(health map[string]state.ZoneHealth, now time.Time) bool {
	for _, at := range s.places {
		if w, failed := health[at]; failed && (!w.Succeeded || now.Before(w.Until)) {
			return false
		}
	}
	return true
}

// carryOver has a plan ask for what was asked for the jobs that it left out, and returns for what
// these wait. It reports false where the plan has decided something about one of them, or has found
// that a place has failed where one is about to be asked for.
func (t *turns) carryOver(d *reconcile.Reconciler, index map[schema.Address]int) (waits []plan.Pending, ok bool) {
	if len(t.passed) == 0 {
		return nil, true
	}
	isPassed := func(addr schema.Address) bool {
		i, job := index[addr]
		_, passed := slices.BinarySearch(t.passed, i)
		return job && passed
	}
	for i := range d.Plan.Pending {
		if isPassed(d.Plan.Pending[i].Addr) {
			return nil, false
		}
	}
	actions := d.MutableActions()
	for i := range actions {
		a := &actions[i]
		if s := d.Next.Slices[a.Slice.Name]; isPassed(a.Addr) || s != nil && isPassed(s.Spec.Owner) {
			return nil, false
		}
	}
	waits = make([]plan.Pending, 0, len(t.passed))
	for _, i := range t.passed {
		w := t.jobs[i]
		for k := range w.slices {
			if !w.slices[k].isOpen(d.Next.ZoneHealth, d.Now) {
				return nil, false
			}
		}
		waits, actions = append(waits, w.pending), append(actions, w.actions...)
	}
	slices.SortFunc(waits, func(a, b plan.Pending) int { return a.Addr.Compare(b.Addr) })
	d.Plan.Actions = actions
	d.WakeAt(d.Now.Add(untilTurn))
	return waits, true
}
