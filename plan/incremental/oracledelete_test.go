package incremental

import (
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// deleting finds deletions of what is alive, well and wanted.
func (o *oracle) deleting(a plan.Action, s *simSlice) {
	w := o.w
	w.t.Helper()
	if s == nil || s.phase == schema.SliceDead || s.phase == schema.SliceDeleting {
		return
	}
	recorded := w.doc.Slices[a.Slice.Name]
	if recorded == nil || recorded.Terminating.IsZero() {
		w.t.Fatalf("slice %s is deleted and nothing says why\n%s", a.Slice.Name, w.describe())
	}
	if recorded.Terminating.Cause == state.CauseHostLost {
		return // looked at when it was decided
	}
	for n, h := range s.hosts {
		r, reported := w.reports[hostKey{s.spec.Name, n}]
		if !reported || w.now.Sub(r.At) >= snapshot.HostTimeout {
			return // a host was lost: so is its slice
		}
		if !h.agent {
			return
		}
	}
	for _, h := range w.packedHosts(s) {
		if !h.live || !h.stopsAt.IsZero() {
			continue
		}
		addr := h.task.Job
		j := w.doc.Jobs[addr]
		if j != nil && !j.Stop && !j.Status.Ended() && o.isProtected(j) && !o.givenUp[a.Slice.Name] {
			w.t.Fatalf("slice %s is deleted under a task of %s that is alive and protected: %+v\n%s", a.Slice.Name, addr, w.doc.Slices[a.Slice.Name], w.describe())
		}
		if j == nil || j.Stop || j.Replace || j.Status.Ended() {
			continue
		}
		for i := range w.doc.Desired.Jobs {
			want := &w.doc.Desired.Jobs[i]
			if want.Addr == addr && marshal(want) == marshal(h.taskRun.Spec) {
				w.t.Fatalf("slice %s is deleted under a task of %s that is alive and wanted: %+v\n%s", a.Slice.Name, addr, w.doc.Slices[a.Slice.Name], w.describe())
			}
		}
	}
}

// remembered finds lifecycles that a step did not take in.
func (o *oracle) remembered(after *state.Document) {
	o.w.t.Helper()
	if !change.Remembers(after) {
		o.w.t.Fatalf("the state does not remember all lifecycles\n%s", o.w.describe())
	}
}

// heeded finds changes of what is ignored, destruction that is shown and neither
// allowed nor blocked, and blocked changes of nothing.
func (o *oracle) heeded(p *plan.Plan) {
	w := o.w
	w.t.Helper()
	refused := map[schema.Address]plan.Verb{}
	for _, r := range p.Blocked {
		refused[r.Addr] = r.Verb
	}
	for _, c := range p.Changes {
		verb, no := refused[c.Addr]
		if no && verb != c.Verb {
			w.t.Fatalf("%s is refused to be %sd, and the plan shows %s", c.Addr, verb, c.Verb)
		}
		delete(refused, c.Addr)
		j := w.doc.Jobs[c.Addr]
		if j == nil || no {
			continue
		}
		destroyed := c.Verb == plan.VerbReplace || c.Verb == plan.VerbDelete
		if destroyed && j.Attempt > 0 && p.Next.Jobs[c.Addr] != nil && o.isProtected(j) && !w.foundNow(j, p.Next) {
			w.t.Fatalf("%s is protected and to be %sd\n%s", c.Addr, c.Verb, w.describe())
		}
		for _, a := range c.Attrs {
			if a.Verb != plan.VerbNone && a.Verb != plan.VerbDelete && slices.Contains(p.Next.Jobs[c.Addr].Spec.Lifecycle.Ignore, a.Path) && !w.foundNow(j, p.Next) {
				w.t.Fatalf("%s: %s is ignored and to be changed\n%s", c.Addr, a.Path, w.describe())
			}
		}
	}
	if len(refused) > 0 {
		w.t.Fatalf("refused and not shown: %v", refused)
	}
}

// foundNow reports whether a step took an attempt over that it did not know of.
func (w *world) foundNow(before *state.Job, after *state.Document) bool {
	j := after.Jobs[before.Spec.Addr]
	return j != nil && j.Last() != nil && j.Attempt != before.Attempt && j.Last().Resumed
}

// replaced finds jobs that were stopped to make way for slices which are not up.
func (o *oracle) replaced(before, after *state.Document) {
	w := o.w
	w.t.Helper()
	for addr, j := range after.Jobs {
		was := before.Jobs[addr]
		if was == nil || !was.Running() || was.Last().StopGeneration != 0 || len(was.Staged) == 0 || !j.Running() {
			continue
		}
		if last := j.Last(); last.StopGeneration == 0 || last.Reason != change.DecisionText(state.CauseReplaced) || len(j.Staged) == 0 {
			continue
		}
		if slices.ContainsFunc(was.Slices, func(name string) bool { // it lost one of its own, and ends anyway
			s := after.Slices[name]
			return s == nil || !s.Terminating.IsZero() && s.Terminating.Decided() != state.CauseReplaced
		}) {
			continue
		}
		for _, name := range j.Staged {
			s := w.slices[name]
			if s == nil || s.phase == schema.SliceDeleting {
				w.t.Fatalf("%s is stopped although slice %s, which is to take over, is not up\n%s", addr, name, w.describe())
			}
			for n := range s.hosts {
				if _, reported := w.reports[hostKey{name, n}]; !reported {
					w.t.Fatalf("%s is stopped although host %d of slice %s, which is to take over, never reported\n%s", addr, n, name, w.describe())
				}
			}
		}
	}
}

// isProtected reports whether a job must not be destroyed: the files say so, or
// say nothing of it and the state does.
func (o *oracle) isProtected(j *state.Job) bool {
	for i := range o.w.doc.Desired.Jobs {
		if want := &o.w.doc.Desired.Jobs[i]; want.Addr == j.Spec.Addr {
			return want.Lifecycle.PreventDestroy
		}
	}
	return j.Spec.Lifecycle.PreventDestroy
}
