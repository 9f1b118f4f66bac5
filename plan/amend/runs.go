package amend

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// findRuns finds the newest attempt of each job of which it is known how it
// stands.
func (r *rebuilder) findRuns() error {
	newest := map[string]*plan.Assigned{}
	for _, name := range slices.Sorted(maps.Keys(r.Observed.Assignments)) {
		a := r.Observed.Assignments[name]
		if a.Run == nil || a.Stack != r.Stack && (a.Stack != "" || r.listed[name] == nil) {
			continue
		}
		if b := newest[a.Run.JobID]; b == nil || a.Run.Attempt > b.Run.Attempt {
			newest[a.Run.JobID] = &a
		}
	}
	r.live = map[schema.Address]*plan.Assigned{}
	for _, id := range slices.Sorted(maps.Keys(newest)) {
		a := newest[id]
		if why := r.over(a); why != "" {
			r.report.LeftOver = append(r.report.LeftOver, Finding{Addr: a.Run.Job, Job: id,
				Text: fmt.Sprintf("attempt %d is over: %s", a.Run.Attempt, why)})
			continue
		}
		addr := a.Run.Job
		if given, ok := r.Addrs[id]; ok {
			addr = given
		}
		if other := r.live[addr]; other != nil {
			return fmt.Errorf("two jobs run as %s, with ids %s and %s: one of them was moved; say which address either has now", addr, other.Run.JobID, id)
		}
		r.live[addr] = a
	}
	return nil
}

// over says why an attempt is known to run no more without it being known what
// was to follow, "" if it is not.
func (r *rebuilder) over(a *plan.Assigned) string {
	if r.succeeded(a) {
		return ""
	}
	there := 0
	for _, name := range snapshot.AssignedAttempt(&a.Assignment).Slices {
		st := r.listed[name]
		other := r.Observed.Assignments[name]
		switch {
		case other.Run != nil && other.Run.JobID != a.Run.JobID && other.Generation > a.Generation:
			return fmt.Sprintf("slice %s was given to %s", name, other.Run.JobID)
		case st != nil && st.Phase == schema.SliceDeleting:
			return fmt.Sprintf("slice %s is being deleted", name)
		case st != nil:
			there++
		}
	}
	if there == 0 {
		return "its slices are gone"
	}
	return ""
}

// succeeded reports whether all hosts of an attempt say so.
func (r *rebuilder) succeeded(a *plan.Assigned) bool {
	attempt := snapshot.AssignedAttempt(&a.Assignment)
	for i := range attempt.Tasks {
		t := &attempt.Tasks[i]
		if r.fillIn(&attempt, t); t.State != schema.TaskSucceeded {
			return false
		}
	}
	return !a.Run.Spec.Retries.OnSuccess
}

// bindRuns records the jobs that run, and their own slices.
func (r *rebuilder) bindRuns() error {
	for _, addr := range sortedAddrs(r.live) {
		a := r.live[addr]
		if err := r.bindAttempt(addr, a, r.Desired, "rebuilt: it ran when the state was lost"); err != nil {
			return err
		}
		j := r.next.Jobs[addr]
		missing := 0
		for _, name := range j.Slices {
			st := r.listed[name]
			switch {
			case st == nil:
				missing++
			case st.Spec.Owner.Kind != schema.KindReservation:
				r.bindSlice(st, addr, st.Spec.Index)
				if host := r.listed[st.Spec.On]; host != nil {
					r.pools[host.Spec.Owner] = schema.ScopedAddress(schema.KindReservation, j.Spec.Resources.Reservation)
				}
			case j.Spec.Resources.Reservation != "":
				r.pools[st.Spec.Owner] = schema.ScopedAddress(schema.KindReservation, j.Spec.Resources.Reservation)
			}
		}
		text := fmt.Sprintf("attempt %d on %s", a.Run.Attempt, strings.Join(j.Slices, ", "))
		if r.succeeded(a) {
			j.Status, j.Ready = schema.JobSucceeded, false
			last := j.Last()
			last.Outcome, last.EndedAt = schema.TaskSucceeded, r.at
			text = fmt.Sprintf("attempt %d has succeeded", a.Run.Attempt)
		} else if missing > 0 {
			text += fmt.Sprintf("; %d of these slices are gone", missing)
		}
		if r.Desired != nil && find(r.Desired.Jobs, addr, jobAddr) == nil {
			text += "; the files do not declare it, so the next apply proposes to delete it (fray state mv, if it has another address now)"
		}
		r.report.Recovered = append(r.report.Recovered, Finding{Addr: addr, Job: j.ID, Text: text})
		if err := r.standIn(j.Spec); err != nil {
			return err
		}
	}
	return nil
}

// standIn declares what a job stands in: as the files do, else as the job tells.
func (r *rebuilder) standIn(spec *schema.Job) error {
	if r.Desired != nil {
		if err := r.declare(r.Desired, spec); err != nil {
			return err
		}
	}
	if spec.Addr.Group == "" {
		return nil
	}
	return r.declareGroup(schema.JobGroup{
		Addr: spec.Addr.GroupAddress(), Namespace: spec.Namespace, SameRegion: true, // the default
	})
}
