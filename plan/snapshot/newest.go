package snapshot

import (
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Newest finds, among all assignments, the newest attempt of each job.
type Newest struct {
	obs  *plan.Observed
	byID map[string]newestRun
	// byAddr, by newestAt, are those of jobs that the state does not know. The
	// address is the one they were started under, which may be another job's by now.
	byAddr map[schema.Address]*plan.Assigned
}

// newestRun is where the newest attempt of a job is assigned.
type newestRun struct {
	slice             string
	attempt, assigned int // its number, and the slice's index among its own
}

// Of is the newest assignment of a job, nil if there is none.
func (n *Newest) Of(id string) *plan.Assigned {
	run, assigned := n.byID[id]
	if !assigned {
		return nil
	}
	a := n.obs.Assignments[run.slice]
	return &a
}

// NewestRuns returns the newest attempts, found once.
func (d *Draft) NewestRuns() *Newest {
	if d.newest != nil {
		return d.newest
	}
	n := &Newest{obs: d.Obs, byID: make(map[string]newestRun, len(d.Obs.Assignments))}
	d.newest = n
	for name, a := range d.Obs.Assignments {
		if a.Run == nil || d.IsUnmanaged(name) || a.Stack != "" && a.Stack != d.Stack {
			continue
		}
		is := newestRun{slice: name, attempt: a.Run.Attempt, assigned: a.Run.SliceIndex}
		if was, known := n.byID[a.Run.JobID]; !known || is.attempt > was.attempt || is.attempt == was.attempt && is.assigned < was.assigned {
			n.byID[a.Run.JobID] = is
		}
	}
	return n
}

// NoneNewer notes that no assignment is of a newer attempt than a recorded one, and each
// job that is asked about is recorded: then the newest need not be found.
func (d *Draft) NoneNewer() { d.newest = &Newest{obs: d.Obs} }

// NewestAt is the newest assignment under an address of a job that the state
// does not know. Such are rare: they are looked for when first asked for.
func (d *Draft) NewestAt(addr schema.Address) *plan.Assigned {
	n := d.NewestRuns()
	if n.byAddr != nil {
		return n.byAddr[addr]
	}
	n.byAddr = map[schema.Address]*plan.Assigned{}
	known := make(map[string]bool, len(d.Doc.Jobs))
	for _, j := range d.Doc.Jobs {
		known[j.ID] = true
	}
	for id := range n.byID {
		if known[id] {
			continue
		}
		a := n.Of(id)
		if was := n.byAddr[a.Run.Job]; was == nil || newer(a.Run, was.Run) {
			n.byAddr[a.Run.Job] = a
		}
	}
	return n.byAddr[addr]
}

// newer orders attempts; slices of one attempt are told the same but for their
// index, and of two jobs at one address the id decides.
func newer(a, b *state.Run) bool {
	switch {
	case a.Attempt != b.Attempt:
		return a.Attempt > b.Attempt
	case a.JobID != b.JobID:
		return a.JobID < b.JobID
	}
	return a.SliceIndex < b.SliceIndex
}

// AssignedAttempt is the attempt that an assignment is part of, as far as the
// assignment tells: its tasks are assigned, whatever came of them since.
func AssignedAttempt(a *state.Assignment) state.Attempt {
	attempt := state.Attempt{Number: a.Run.Attempt, Generation: a.Generation, Why: a.Run.Why, StartedAt: a.Run.StartedAt, ScheduledRun: a.Run.ScheduledRun}
	seen := map[string]bool{}
	for _, p := range a.Run.Peers {
		if !seen[p.Slice] {
			seen[p.Slice] = true
			attempt.Slices = append(attempt.Slices, p.Slice)
		}
		attempt.Tasks = append(attempt.Tasks, state.Task{Slice: p.Slice, Host: p.Host, Address: p.Address, State: schema.TaskAssigned})
	}
	return attempt
}

// AssignedSpec is the spec that an assignment names, for the job at addr: it may
// have been moved since it was assigned.
func AssignedSpec(run *state.Run, addr schema.Address) (*schema.Job, schema.Digest) {
	spec, digest := run.Spec, run.Digest
	if spec.Addr != addr {
		spec.Addr = addr
		if moved, err := schema.DigestOf(&spec); err == nil {
			digest = moved
		}
	}
	return &spec, digest
}

// Claim records a listed slice as the job's, whose attempt was found on it.
func (d *Draft) Claim(st *schema.SliceStatus, addr schema.Address) {
	name := st.Spec.Name
	if st.Spec.Owner != addr && st.Spec.Owner.Kind != schema.KindReservation {
		d.assumeOwner(st, addr, st.Spec.Index)
		st = d.Listed[name]
		if s := d.Next.Slices[name]; s != nil {
			passOn(d, name, addr, s.Spec.Index)
		}
	}
	d.RecordOf(st)
}
