package incremental

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// live lets provider and agents react.
func (w *world) live() {
	for _, name := range slices.Sorted(maps.Keys(w.slices)) {
		s := w.slices[name]
		if s == nil || s.spec.Stack != w.doc.Stack() {
			continue // gone with its machine, or another stack's
		}
		if isPacked(s) {
			w.livePacked(s)
			continue
		}
		if !s.changesAt.After(w.now) {
			switch s.phase {
			case schema.SliceCreating:
				s.phase = schema.SliceReady
			case schema.SliceDeleting:
				w.vanish(name)
				continue
			case schema.SliceReady, schema.SliceDead:
			}
		}
		for n, h := range s.hosts {
			w.takePacked(s, n, h)
			w.liveHost(s, n, h)
		}
	}
}

func (w *world) liveHost(s *simSlice, n int, h *simHost) {
	if s.phase == schema.SliceDead {
		h.agent, h.live = false, false
		return
	}
	if !h.agent && h.boot <= 0 && !h.bootsAt.After(w.now) {
		h.agent, h.boot = true, 1-h.boot
	}
	if h.live && !h.stopsAt.IsZero() && !h.stopsAt.After(w.now) {
		h.live = false
		h.task.State, h.task.Reason = schema.TaskKilled, "told to stop"
		if h.notified {
			h.task.State, h.task.Reason = schema.TaskPreempted, "preemption notice"
		}
	}
	if h.live && !h.endsAt.IsZero() && !h.endsAt.After(w.now) {
		w.exit(h)
	}
	if !h.agent {
		return
	}
	w.obey(s, n, h)
	if h.muted {
		return
	}
	w.reported++
	report := state.HostReport{
		Slice: s.spec.Name, Host: n, Boot: fmt.Sprint(h.boot), Seq: w.reported, At: w.now,
		Address: "127.0.0.1", CoordinatorPort: 8000 + n, MegascalePort: 9000 + n, Generation: h.done, Epoch: h.seen.epoch,
		PackedTasks: w.packedNames(s.spec.Name, n),
	}
	if h.task != nil {
		task := *h.task
		report.Task = &task
	}
	w.heard(s, report)
}

// obey is the agent: whatever is newer ends what an older assignment started,
// and starts once every host of the slice has got that far.
func (w *world) obey(s *simSlice, n int, h *simHost) {
	if a, ok := w.assignments[s.spec.Name]; ok {
		m := mark{a.Epoch, a.Generation}
		newer := h.seen.epoch < m.epoch && h.seen.generation != m.generation || h.seen.epoch == m.epoch && h.seen.generation < m.generation
		h.seen.epoch = max(h.seen.epoch, m.epoch)
		if newer {
			h.seen, h.run = m, a.Run
			if h.live && h.stopsAt.IsZero() {
				h.stopsAt = w.now.Add(w.stopTakes)
			}
		}
	}
	if h.live && h.task.Generation != h.seen.generation {
		return // its old task is not dead yet
	}
	if h.done != h.seen.generation {
		h.done = h.seen.generation
		return
	}
	if h.run == nil || h.task != nil && h.task.Generation == h.done {
		if h.live && h.task.State == schema.TaskBuilding {
			h.task.State = schema.TaskRunning
		}
		return
	}
	for _, other := range s.hosts {
		if other.done != h.done {
			return
		}
	}
	w.startTask(s, n, h)
}

func (w *world) startTask(s *simSlice, n int, h *simHost) {
	index := slices.IndexFunc(h.run.Peers, func(p state.Peer) bool { return p.Slice == s.spec.Name && p.Host == n })
	does := w.program(h.run, index)
	h.task = &state.TaskReport{
		Job: h.run.Job, Attempt: h.run.Attempt, Generation: h.done, Task: index,
		State: schema.TaskBuilding, Started: true, StartedAt: w.now, Health: does.health,
	}
	h.live, h.stopsAt, h.endsAt, h.taskRun, h.does = true, time.Time{}, time.Time{}, h.run, does
	if does.runs > 0 {
		h.endsAt = w.now.Add(does.runs)
	}
	w.oracle.started(s.spec.Name, n, h.run)
}

// exit ends a task as its program does.
func (w *world) exit(h *simHost) {
	does := h.does
	h.live = false
	h.task.ExitCode, h.task.EndedAt = &does.code, w.now
	h.task.State = cmp.Or(does.state, schema.TaskSucceeded)
	h.task.BadHost = does.state == schema.TaskWorkerFailed // as the agent reads what it wrote
	if does.code != 0 {
		h.task.State, h.task.Reason = cmp.Or(does.state, schema.TaskFailed), fmt.Sprintf("exit status %d", does.code)
	}
}
