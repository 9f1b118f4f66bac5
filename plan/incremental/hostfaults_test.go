package incremental

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/schema"
)

// What can happen to a world.

func (w *world) host(slice string, n int) *simHost {
	w.t.Helper()
	s := w.slices[slice]
	if s == nil {
		w.t.Fatalf("there is no slice %s\n%s", slice, w.describe())
	}
	return s.hosts[n]
}

// fail ends a live task with an exit status.
func (w *world) fail(slice string, n, code int) {
	h := w.host(slice, n)
	if h.live {
		h.live = false
		h.task.State, h.task.ExitCode, h.task.Reason = schema.TaskFailed, &code, fmt.Sprintf("exit status %d", code)
	}
}

// killAgent leaves the task running and the host to be repaired.
func (w *world) killAgent(slice string, n int) { w.host(slice, n).agent = false }

// killHost takes agent and task; the disk stays and the host can be repaired.
func (w *world) killHost(slice string, n int) {
	h := w.host(slice, n)
	h.agent = false
	if h.live {
		h.live = false
		h.task.State, h.task.Reason = schema.TaskWorkerFailed, "it was gone when the agent came back"
	}
	for _, g := range w.packedOf(slice, n) {
		w.killHost(g.spec.Name, 0)
	}
}

// preempt takes a slice away; its provider lists it as dead.
func (w *world) preempt(slice string) {
	if s := w.slices[slice]; s != nil && s.phase != schema.SliceDeleting {
		s.phase, s.reason, s.cause = schema.SliceDead, "preempted", schema.ErrorPreempted
		for _, h := range w.packedHosts(s) {
			h.agent, h.live = false, false
		}
	}
}

// vanish takes a slice away without a trace.
func (w *world) vanish(slice string) {
	delete(w.slices, slice)
	maps.DeleteFunc(w.slices, func(_ string, s *simSlice) bool { return s.spec.On == slice })
}

// notice is the word, half a minute before, that a host will be taken.
func (w *world) notice(slice string, n int) {
	h := w.host(slice, n)
	if h.live {
		h.notified, h.stopsAt = true, w.now.Add(w.stopTakes)
	}
	for _, g := range w.packedOf(slice, n) {
		w.notice(g.spec.Name, 0)
	}
}

// mute makes a host's reports get lost, though all of it lives.
func (w *world) mute(slice string, n int, muted bool) { w.host(slice, n).muted = muted }

// liveTasks lists the hosts that have a live task of a job, as SLICE/HOST.
func (w *world) liveTasks(addr schema.Address) []string {
	var live []string
	for _, name := range slices.Sorted(maps.Keys(w.slices)) {
		for n, h := range w.slices[name].hosts {
			if h.live && h.task.Job == addr {
				live = append(live, fmt.Sprintf("%s/%d", name, n))
			}
		}
	}
	return live
}

// sliceOf is the name of a job's i-th slice.
func (w *world) sliceOf(addr schema.Address, i int) string {
	w.t.Helper()
	j := w.doc.Jobs[addr]
	if j == nil || i >= len(j.Slices) {
		w.t.Fatalf("%s has no slice %d\n%s", addr, i, w.describe())
	}
	return j.Slices[i]
}

// describe is the world for a failure message.
func (w *world) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "at %s, epoch %d\n", w.now.Format(time.TimeOnly), w.epoch)
	for _, addr := range slices.SortedFunc(maps.Keys(w.doc.Jobs), schema.Address.Compare) {
		j := w.doc.Jobs[addr]
		fmt.Fprintf(&b, "  %s: %s ready=%t attempt=%d failures=%d preemptions=%d slices=%v reason=%q", addr, j.Status, j.Ready, j.Attempt, j.Failures, j.Preemptions, j.Slices, j.Reason)
		if last := j.Last(); last != nil {
			fmt.Fprintf(&b, " last={gen=%d stop=%d outcome=%s reason=%q", last.Generation, last.StopGeneration, last.Outcome, last.Reason)
			for _, t := range last.Tasks {
				fmt.Fprintf(&b, " %s", t.State)
			}
			b.WriteString("}")
		}
		b.WriteString("\n")
	}
	for _, name := range slices.Sorted(maps.Keys(w.slices)) {
		s := w.slices[name]
		fmt.Fprintf(&b, "  slice %s: %s", name, s.phase)
		for _, h := range s.hosts {
			fmt.Fprintf(&b, " {agent=%t live=%t done=%d}", h.agent, h.live, h.done)
		}
		a := w.assignments[name]
		fmt.Fprintf(&b, " assigned gen=%d run=%t\n", a.Generation, a.Run != nil)
	}
	for _, name := range slices.Sorted(maps.Keys(w.doc.Slices)) {
		fmt.Fprintf(&b, "  recorded %s: %+v\n", name, *w.doc.Slices[name])
	}
	if w.last != nil {
		for _, a := range w.last.Actions {
			fmt.Fprintf(&b, "  action %s %s\n", a.Verb, a.Slice.Name)
		}
		for _, d := range w.last.Drift {
			fmt.Fprintf(&b, "  drift %s: %s\n", d.Addr, d.Found)
		}
		for _, p := range w.last.Pending {
			fmt.Fprintf(&b, "  pending %s: %s\n", p.Addr, strings.Join(p.Reasons, " | "))
		}
	}
	return b.String()
}
