package rehearse

import (
	"fmt"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// What an agent does with the tasks that its host is assigned.

// reconcile does the next step that the wanted assignment needs, as an agent does.
func (f *fleet) reconcile(h *host) {
	f.servePacked(h)
	same := h.want.Run != nil && h.report.Task != nil && h.report.Task.Generation == h.want.Generation &&
		h.report.Task.Attempt == h.want.Run.Attempt && h.report.Task.Job == h.want.Run.Job
	if h.gang != nil && !same {
		f.stop(h, schema.TaskKilled, fmt.Sprintf("generation %d of the assignment ended it", h.want.Generation))
		return
	}
	h.report.Epoch, h.report.Generation = h.want.Epoch, h.want.Generation
	if h.gang == nil && h.want.Run != nil && !same {
		f.start(h)
	}
	f.store.report(h.report)
}

// start begins the task of the wanted assignment.
func (f *fleet) start(h *host) {
	run := h.want.Run
	f.watch.starting(h, run)
	task := slices.IndexFunc(run.Peers, func(p state.Peer) bool { return p.Slice == h.spec.Name && p.Host == h.machine.Worker })
	h.report.Task = &state.TaskReport{
		Job: run.Job, Attempt: run.Attempt, Generation: h.want.Generation, Task: task, State: schema.TaskBuilding,
	}
	if h.report.Notice != "" {
		h.report.Task.State, h.report.Task.Reason = schema.TaskPreempted, h.report.Notice
		return
	}
	key := gangKey{run.JobID, run.Attempt, h.want.Generation}
	g := f.gangs[key]
	if g == nil {
		g = &gang{gangKey: key, addr: run.Job, tasks: len(run.Peers), live: map[*host]bool{}}
		f.gangs[key] = g
	}
	h.gang = g
	h.started++
	nth := h.started
	f.later(h, startTakes, func(h *host) {
		if h.started == nth && h.gang == g && h.report.Task.State == schema.TaskBuilding {
			f.running(h)
		}
	})
}

// brokenText is what programs write of accelerators that do not work.
func brokenText(h *host) string {
	if h.spec.GPU.Count > 0 {
		return "CUDA error: no CUDA-capable device is detected"
	}
	return "Failed to initialize TPU system"
}

// running is the task's command being started; a bad machine ends it at once.
func (f *fleet) running(h *host) {
	task := *h.report.Task
	task.State, task.Started, task.StartedAt = schema.TaskRunning, true, f.clock.Now()
	task.Ports = ports(h.want.Run)
	if h.want.Run.Spec.HealthCheck != nil {
		task.Health = state.HealthHealthy
	}
	h.report.Task = &task
	if h.machine.Bad { // the program itself ends, with words that tell an agent why
		code := 1
		f.end(h, schema.TaskWorkerFailed, "the host's accelerator is not usable: "+brokenText(h))
		h.report.Task.BadHost, h.report.Task.ExitCode = true, &code
		f.store.report(h.report)
		return
	}
	g := h.gang
	g.live[h] = true
	if len(g.live) == g.tasks && !g.whole {
		g.whole, g.since = true, f.clock.Now()
		f.watch.runs(g, g.since)
	}
	f.store.report(h.report)
}

// ports gives every port of a job a number.
func ports(run *state.Run) map[string]int {
	var numbers map[string]int
	for i, p := range run.Spec.Resources.Ports {
		if numbers == nil {
			numbers = map[string]int{}
		}
		numbers[p.Name] = max(p.Number, 30000+i)
	}
	return numbers
}

// stop tells the host's task to end; it does soon.
func (f *fleet) stop(h *host, as schema.TaskState, reason string) {
	g := h.gang
	f.later(h, stopTakes, func(h *host) {
		if h.gang != g || g == nil {
			return
		}
		f.end(h, as, reason)
		f.store.report(h.report)
		if h.want != nil {
			f.reconcile(h)
		}
	})
}

// end records how the host's task ended; the caller reports it.
func (f *fleet) end(h *host, as schema.TaskState, reason string) {
	task := *h.report.Task
	task.State, task.Reason, task.EndedAt = as, reason, f.clock.Now()
	h.report.Task = &task
	f.leave(h)
}

// leave takes a host's process out of its gang.
func (f *fleet) leave(h *host) {
	g := h.gang
	if g == nil {
		return
	}
	h.gang = nil
	delete(g.live, h)
	if g.whole {
		g.whole = false
		f.watch.breaks(g, f.clock.Now())
	}
	if len(g.live) == 0 {
		delete(f.gangs, g.gangKey)
	}
}

// succeed ends all tasks of a gang well.
func (f *fleet) succeed(key gangKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.gangs[key]
	if g == nil || !g.whole {
		return
	}
	members := make([]*host, 0, len(g.live))
	for h := range g.live {
		members = append(members, h)
	}
	slices.SortFunc(members, func(a, b *host) int { return a.report.Task.Task - b.report.Task.Task })
	code := 0
	for _, h := range members {
		f.end(h, schema.TaskSucceeded, "")
		h.report.Task.ExitCode = &code
		f.store.report(h.report)
	}
}
