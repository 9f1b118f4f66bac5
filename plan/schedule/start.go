package schedule

import (
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Start assigns an attempt to every job whose hosts are up, whose dependencies
// are met, and whose group has come up whole.
func (d *Placer) Start(jobs []*schema.Job) {
	if len(d.prepared) == 0 {
		return
	}
	for _, want := range jobs {
		if !d.prepared[want.Addr] {
			continue
		}
		if why := d.Unmet(want, nil); !why.None() {
			d.Wait(want.Addr, why)
			continue
		}
		if want.HasUnknown() {
			d.Wait(want.Addr, plan.Depends("some of its values are not known yet"))
			continue
		}
		if peer, waits := d.missingPeer(want.Addr); waits {
			d.Wait(want.Addr, plan.Underway("its group starts together; waiting for "+peer.String()))
			continue
		}
		d.assign(want)
	}
}

// missingPeer finds a member of a job's group that has no capacity yet. Once a
// job has had an attempt, it restarts on its own.
func (d *Placer) missingPeer(addr schema.Address) (schema.Address, bool) {
	group := addr.GroupAddress()
	if group.IsZero() || d.Next.Jobs[addr].Attempt > 0 {
		return schema.Address{}, false
	}
	peer, seen := d.missing[group]
	if !seen {
		for _, member := range d.Family(group) {
			if d.prepared[member.Addr] {
				continue
			}
			if j := d.Next.Jobs[member.Addr]; j == nil || j.Attempt == 0 && !j.Status.Ended() {
				peer = member.Addr
				break
			}
		}
		d.missing[group] = peer
	}
	return peer, !peer.IsZero()
}

// assign starts the next attempt of a job on all its hosts.
func (d *Placer) assign(want *schema.Job) {
	j := d.Edit(want.Addr)
	a := state.Attempt{
		Number: j.Attempt + 1, Generation: d.NextGeneration(j.Slices), StartedAt: d.Now,
		Slices: slices.Clone(j.Slices), Why: "first start",
	}
	if last := j.Last(); last == nil {
		j.Streak = 0 // it counted how often it could not be placed
	} else {
		a.Why = nextWhy(last)
	}
	for _, name := range a.Slices {
		for n := range d.Listed[name].Spec.Hosts {
			a.Tasks = append(a.Tasks, state.Task{
				Slice: name, Host: n, Address: d.Host(name, n).Address, State: schema.TaskAssigned,
			})
		}
	}
	if runs := j.Scheduled; runs != nil {
		if last := j.Last(); last == nil || last.Run != runs.Run {
			a.Why = fmt.Sprintf("run %d of its schedule, due at %s", runs.Run, runs.DueAt.UTC().Format(time.RFC3339))
		}
		a.ScheduledRun = runs.ScheduledRun
	}
	lifecycle.AppendAttempt(j, a)
	d.Reassign(j)
	d.started = append(d.started, want.Addr)
	d.Wait(want.Addr, plan.Underway("its tasks are being started"))
}

// nextWhy is why an attempt begins after the last one.
func nextWhy(last *state.Attempt) string {
	if last.Changed != nil {
		return "restarted because " + last.Reason
	}
	return change.WithCause(fmt.Sprintf("attempt %d %s", last.Number, plan.OutcomeWords(last.Outcome)), last.Reason)
}
