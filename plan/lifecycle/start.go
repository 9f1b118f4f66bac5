package lifecycle

import (
	"fmt"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Reassign writes the running attempt to those of its slices whose assignment
// is older.
func (d *Attempts) Reassign(j *state.Job) {
	last := j.Last()
	for i, name := range last.Slices {
		cur := d.Obs.Assignments[name]
		if cur.Generation >= last.Generation {
			continue
		}
		run := d.run(j, i)
		if run == nil {
			continue // the coordinator's report is not there yet
		}
		d.Act(plan.Action{
			Verb: plan.Assign, Addr: j.Spec.Addr, Slice: &schema.SliceSpec{Name: name}, Object: cur.Object,
			Assignment: &state.Assignment{Slice: name, Stack: d.Stack, Generation: last.Generation, Run: run},
			AfterSave:  last.Run > 0, // a run that is on record begins once, whatever becomes of the controller
		})
	}
}

// run is what the slice-th slice of a job is told; nil while the first host,
// which coordinates, has not reported.
func (d *Attempts) run(j *state.Job, slice int) *state.Run {
	last := j.Last()
	first := &last.Tasks[0]
	host := d.Host(first.Slice, first.Host)
	if host == nil {
		return nil
	}
	on := d.acceleratorOn(j, last.Slices[slice])
	run := &state.Run{
		Job: j.Spec.Addr, JobID: j.ID, Attempt: last.Number,
		Why: last.Why, StartedAt: last.StartedAt, Before: endedBefore(j),
		Failures: j.Failures, Preemptions: j.Preemptions, UnknownEnds: j.UnknownEnds,
		Spec: *j.Spec, Digest: j.Digest,
		ScheduledRun: last.ScheduledRun,
		SliceIndex:   slice, NumSlices: len(last.Slices),
		Accelerator: on.TPU(), GPU: on.GPU(),
		Coordinator: fmt.Sprintf("%s:%d", host.Address, host.CoordinatorPort),
		Peers:       make([]state.Peer, 0, len(last.Tasks)),
	}
	if len(last.Slices) > 1 {
		run.Megascale = fmt.Sprintf("%s:%d", host.Address, host.MegascalePort)
	}
	for i := range last.Tasks {
		t := &last.Tasks[i]
		run.Peers = append(run.Peers, state.Peer{Slice: t.Slice, Host: t.Host, Address: t.Address})
	}
	return run
}

// acceleratorOn is what a slice that a job has brings: a TPU, GPUs or neither.
func (d *Attempts) acceleratorOn(j *state.Job, name string) schema.Accelerator {
	if s := d.Next.Slices[name]; s != nil {
		return s.Spec.Accelerator()
	}
	return snapshot.AcceleratorOf(d.Next, j.Spec)
}

// endedBefore is how the attempt before a job's last one ended, nil if there was none.
func endedBefore(j *state.Job) *state.Ended {
	if len(j.Attempts) < 2 {
		return nil
	}
	a := &j.Attempts[len(j.Attempts)-2]
	return &state.Ended{Attempt: a.Number, Outcome: a.Outcome, Reason: a.Reason, EndedAt: a.EndedAt}
}
