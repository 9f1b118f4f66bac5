package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Agents, as package agent has them: they obey the highest epoch, then the
// highest generation; whatever is newer first ends what an older assignment
// started; all hosts of a slice must have got that far before one starts.

const reportEvery = 2 * time.Second

func (c *cloud) liveHost(s *slice, n int, h *host) {
	now := time.Now()
	if s.phase == schema.SliceDead {
		return
	}
	if h.booting && !h.bootsAt.After(now) {
		h.booting, h.agent = false, true
		h.boots++
	}
	if h.live && !h.stopsAt.IsZero() && !h.stopsAt.After(now) {
		state := schema.TaskKilled
		if h.notice {
			state = schema.TaskPreempted
		}
		h.live = false
		h.task.State, h.task.Reason, h.task.EndedAt = state, "told to stop", now
	}
	if h.live && !h.endsAt.IsZero() && !h.endsAt.After(now) {
		if h.fails {
			h.exit(1, schema.TaskFailed)
		} else {
			h.exit(0, schema.TaskSucceeded)
		}
	}
	if !h.agent && h.boots > 0 || h.notice || h.muted.After(now) {
		h.badAt = now
	}
	if h.agent {
		c.obey(s, n, h)
		c.report(s, n, h)
	}
}

func (c *cloud) obey(s *slice, n int, h *host) {
	a, found := c.assignment(s.spec.Name)
	if found && (a.Epoch > h.epoch && a.Generation != h.generation || a.Epoch == h.epoch && a.Generation > h.generation) {
		h.epoch, h.generation, h.run = a.Epoch, a.Generation, a.Run
		if h.live && h.stopsAt.IsZero() {
			h.stopsAt = time.Now().Add(c.run.conditions.stopTakes)
		}
	}
	if found {
		h.epoch = max(h.epoch, a.Epoch)
	}
	switch {
	case h.live && h.task.Generation != h.generation: // its old task is not dead yet
	case h.done != h.generation:
		h.done = h.generation
	case h.task != nil && h.task.Generation == h.done:
		if h.live && h.task.State == schema.TaskBuilding {
			h.task.State = schema.TaskRunning
		}
	case h.run == nil:
	case h.notice:
		h.task = &state.TaskReport{
			Job: h.run.Job, Attempt: h.run.Attempt, Generation: h.done, State: schema.TaskPreempted, Reason: "this host takes no more tasks",
			Task: peerIndex(h.run, s, n),
		}
	case !slices.ContainsFunc(s.hosts, func(other *host) bool { return other.done != h.done }):
		c.startTask(s, n, h)
	}
}

func (c *cloud) assignment(name string) (state.Assignment, bool) {
	object, err := c.run.objects.Get(context.Background(), store.AssignKey(name))
	if err != nil {
		return state.Assignment{}, false
	}
	var a state.Assignment
	if err := json.Unmarshal(object.Data, &a); err != nil {
		c.run.fail("format", "assignment of %s: %v", name, err)
		return state.Assignment{}, false
	}
	return a, true
}

func (c *cloud) startTask(s *slice, n int, h *host) {
	c.run.oracle.starting(s, n, h.run)
	now := time.Now()
	lasts, fails := c.program(h.run)
	h.task = &state.TaskReport{
		Job: h.run.Job, Attempt: h.run.Attempt, Generation: h.done, Task: peerIndex(h.run, s, n),
		State: schema.TaskBuilding, Started: true, StartedAt: now,
	}
	h.live, h.spec, h.stopsAt, h.endsAt, h.fails = true, h.run, time.Time{}, time.Time{}, fails
	if lasts > 0 {
		h.endsAt = now.Add(lasts)
	}
	c.run.tally.add("task started")
}

func peerIndex(run *state.Run, s *slice, n int) int {
	return slices.IndexFunc(run.Peers, func(p state.Peer) bool { return p.Slice == s.spec.Name && p.Host == n })
}

func (h *host) exit(code int, state schema.TaskState) {
	h.live = false
	h.task.State, h.task.ExitCode, h.task.EndedAt = state, &code, time.Now()
	h.task.Reason = fmt.Sprintf("exit status %d", code)
}

// lose ends the task with its host.
func (h *host) lose() {
	if h.live {
		h.live = false
		h.task.State, h.task.Reason, h.task.EndedAt = schema.TaskWorkerFailed, "it was gone when the agent came back", time.Now()
	}
}

// report writes when something has changed, and now and then.
func (c *cloud) report(s *slice, n int, h *host) {
	now := time.Now()
	if h.muted.After(now) || now.Sub(h.reportedAt) < reportEvery {
		return
	}
	h.reportedAt = now
	c.reports++
	r := state.HostReport{
		Slice: s.spec.Name, Host: n, Boot: fmt.Sprint(s.number, h.boots), Seq: c.reports, At: now,
		Address: fmt.Sprintf("10.0.%d.%d", s.number%250, n), CoordinatorPort: 8000 + n, MegascalePort: 9000 + n,
		Epoch: h.epoch, Generation: h.done,
	}
	if h.notice {
		r.Notice = "preemption"
	}
	if h.task != nil {
		task := *h.task
		r.Task = &task
	}
	data, err := json.Marshal(r)
	if err == nil {
		_, err = c.run.objects.Put(context.Background(), store.HostKey(s.spec.Name, n), data, store.Any)
	}
	if err != nil {
		c.run.fail("format", "report of %s: %v", s.where(n), err)
	}
}
