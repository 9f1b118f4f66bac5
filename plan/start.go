package plan

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// start assigns an attempt to every job whose hosts are up, whose dependencies
// are met, and whose group has come up whole.
func (d *differ) start(jobs []*schema.Job) {
	if len(d.prepared) == 0 {
		return
	}
	for _, want := range jobs {
		if !d.prepared[want.Addr] {
			continue
		}
		if why := d.unmet(want, nil); !why.none() {
			d.wait(want.Addr, why)
			continue
		}
		if want.HasUnknown() {
			d.wait(want.Addr, depends("some of its values are not known yet"))
			continue
		}
		if peer, waits := d.missingPeer(want.Addr); waits {
			d.wait(want.Addr, underway("its group starts together; waiting for "+peer.String()))
			continue
		}
		d.assign(want)
	}
}

// missingPeer finds a member of a job's group that has no capacity yet. Once a
// job has had an attempt, it restarts on its own.
func (d *differ) missingPeer(addr schema.Address) (schema.Address, bool) {
	group := addr.GroupAddress()
	if group.IsZero() || d.next.Jobs[addr].Attempt > 0 {
		return schema.Address{}, false
	}
	peer, seen := d.missing[group]
	if !seen {
		for _, member := range d.family(group) {
			if d.prepared[member.Addr] {
				continue
			}
			if j := d.next.Jobs[member.Addr]; j == nil || j.Attempt == 0 && !j.Status.Ended() {
				peer = member.Addr
				break
			}
		}
		d.missing[group] = peer
	}
	return peer, !peer.IsZero()
}

// assign starts the next attempt of a job on all its hosts.
func (d *differ) assign(want *schema.Job) {
	j := d.edit(want.Addr)
	a := state.Attempt{
		Number: j.Attempt + 1, Generation: d.nextGeneration(j.Slices), StartedAt: d.now,
		Slices: slices.Clone(j.Slices), Why: "first start",
	}
	if last := j.Last(); last == nil {
		j.Streak = 0 // it counted how often it could not be placed
	} else {
		a.Why = nextWhy(last)
	}
	for _, name := range a.Slices {
		for n := range d.slices[name].Spec.Hosts {
			a.Tasks = append(a.Tasks, state.Task{
				Slice: name, Host: n, Address: d.host(name, n).Address, State: schema.TaskAssigned,
			})
		}
	}
	appendAttempt(j, a)
	d.reassign(j)
	d.wait(want.Addr, underway("its tasks are being started"))
}

// reassign writes the running attempt to those of its slices whose assignment
// is older.
func (d *differ) reassign(j *state.Job) {
	last := j.Last()
	for i, name := range last.Slices {
		cur := d.obs.Assignments[name]
		if cur.Generation >= last.Generation {
			continue
		}
		run := d.run(j, i)
		if run == nil {
			continue // the coordinator's report is not there yet
		}
		d.act(Action{
			Verb: Assign, Addr: j.Spec.Addr, Slice: schema.SliceSpec{Name: name}, Object: cur.Object,
			Assignment: &store.Assignment{Slice: name, Stack: d.stack, Generation: last.Generation, Run: run},
		})
	}
}

// run is what the slice-th slice of a job is told; nil while the first host,
// which coordinates, has not reported.
func (d *differ) run(j *state.Job, slice int) *store.Run {
	last := j.Last()
	first := &last.Tasks[0]
	host := d.host(first.Slice, first.Host)
	if host == nil {
		return nil
	}
	run := &store.Run{
		Job: j.Spec.Addr, JobID: j.ID, Attempt: last.Number,
		Why: last.Why, StartedAt: last.StartedAt, Before: endedBefore(j),
		Failures: j.Failures, Preemptions: j.Preemptions, UnknownEnds: j.UnknownEnds,
		Spec: *j.Spec, Digest: j.Digest,
		SliceIndex: slice, NumSlices: len(last.Slices),
		Accelerator: j.Spec.Resources.TPU,
		Coordinator: fmt.Sprintf("%s:%d", host.Address, host.CoordinatorPort),
		Peers:       make([]store.Peer, 0, len(last.Tasks)),
	}
	if len(last.Slices) > 1 {
		run.Megascale = fmt.Sprintf("%s:%d", host.Address, host.MegascalePort)
	}
	for i := range last.Tasks {
		t := &last.Tasks[i]
		run.Peers = append(run.Peers, store.Peer{Slice: t.Slice, Host: t.Host, Address: t.Address})
	}
	return run
}

// endedBefore is how the attempt before a job's last one ended, nil if there was none.
func endedBefore(j *state.Job) *store.Ended {
	if len(j.Attempts) < 2 {
		return nil
	}
	a := &j.Attempts[len(j.Attempts)-2]
	return &store.Ended{Attempt: a.Number, Outcome: a.Outcome, Reason: a.Reason, EndedAt: a.EndedAt}
}

// nextWhy is why an attempt begins after the last one.
func nextWhy(last *state.Attempt) string {
	if last.Changed != nil {
		return "restarted because " + last.Reason
	}
	return described(fmt.Sprintf("attempt %d %s", last.Number, outcomeWords(last.Outcome)), last.Reason)
}
