package incremental

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// oracle knows nothing of how plan decides. It only checks that certain events
// never happen, whatever the faults.
type oracle struct {
	w       *world
	parts   int                          // plans that a Planner could make from the last one
	passed  int                          // of these: plans that left out jobs that wait for their turn
	starts  map[string]int               // by job id, attempt and host of one incarnation of a slice
	runs    map[string]map[int]time.Time // when the started runs of a job were due, by its id and their numbers
	foreign schema.SliceSpec
	givenUp map[string]bool // slices that were terminating while their job was not protected
	listed  map[string]bool // slices, as of the last plan
}

func (o *oracle) start(w *world) {
	o.w, o.starts, o.givenUp, o.runs = w, map[string]int{}, map[string]bool{}, map[string]map[int]time.Time{}
	// A slice of another stack, listed by a provider that forgot to filter.
	o.foreign = schema.SliceSpec{Name: "a-foreign-slice", Stack: "somebodyelse", Provider: schema.ProviderLocal, Hosts: 1}
	w.slices[o.foreign.Name] = &simSlice{spec: o.foreign, phase: schema.SliceReady, hosts: []*simHost{{}}}
}

// diffed looks at one Diff.
func (o *oracle) diffed(before *state.Document, obs *plan.Observed, p *plan.Plan) {
	w := o.w
	w.t.Helper()
	o.dooming(before, p.Next)
	for name, s := range p.Next.Slices {
		j := p.Next.Jobs[s.Spec.Owner]
		o.givenUp[name] = !s.Terminating.IsZero() && (o.givenUp[name] || j == nil || !o.isProtected(j))
	}
	o.dependencies(before, p.Next)
	o.evidence(obs, p)
	o.remembered(p.Next)
	o.heeded(p)
	o.replaced(before, p.Next)
	o.reserved(before, p.Next)
	o.yielded(before, p.Next)
	// Looking again changes nothing: what was decided is recorded, and an
	// unchanged state is the very same document.
	again, doc := p, p.Next
	for range 8 { // a pool whose provider cannot be asked is given away bit by bit
		doc = again.Next
		again = reconcile.Diff(&doc.Desired, doc, obs, w.now)
		if again.Next == doc {
			o.budgets(before, p.Next)
			return
		}
	}
	w.t.Fatalf("Next changes again and again in an unchanged world (-was +is)\n%s\n%s", differences(doc, again.Next), w.describe())
}

func marshal(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// budgets looks at what a step spent: each never beyond its limit by more than
// one, and a preemption never as a failure.
func (o *oracle) budgets(before, after *state.Document) {
	w := o.w
	w.t.Helper()
	for addr, j := range after.Jobs {
		last := j.Last()
		r := j.Spec.Retries
		if r.Failure != schema.Unlimited && j.Failures > r.Failure+1 {
			w.t.Fatalf("%s failed %d times with a budget of %d\n%s", addr, j.Failures, r.Failure, w.describe())
		}
		if r.Preemption != schema.Unlimited && j.Preemptions > r.Preemption+1 {
			w.t.Fatalf("%s was preempted %d times with a budget of %d\n%s", addr, j.Preemptions, r.Preemption, w.describe())
		}
		was := before.Jobs[addr]
		if was == nil || last == nil || was.Attempt != j.Attempt || j.Failures <= was.Failures {
			continue
		}
		for i := range last.Tasks {
			if s := last.Tasks[i].State; s == schema.TaskPreempted || s == schema.TaskWorkerFailed {
				w.t.Fatalf("%s: a failure was counted although a task is %s\n%s", addr, s, w.describe())
			}
		}
		if last.Outcome != schema.TaskFailed && last.Outcome != schema.TaskSucceeded {
			w.t.Fatalf("%s: a failure was counted for an attempt that %s\n%s", addr, last.Outcome, w.describe())
		}
	}
}

// acting looks at an action that is about to be carried out.
func (o *oracle) acting(a plan.Action) {
	w := o.w
	w.t.Helper()
	name := a.Slice.Name
	if name == o.foreign.Name {
		w.t.Fatalf("%s of a slice that is not this stack's", a.Verb)
	}
	s := w.slices[name]
	switch a.Verb {
	case plan.DeleteSlice:
		if w.unreachable {
			w.t.Fatalf("slice %s is deleted while its provider is unreachable\n%s", name, w.describe())
		}
		o.deleting(a, s)
	case plan.Assign:
		o.assigning(a, s)
	case plan.ForgetSlice:
		if s != nil {
			w.t.Fatalf("the mailbox of slice %s is forgotten though it lives\n%s", name, w.describe())
		}
	case plan.UpdateSlice:
		if s == nil || s.spec.Fixed() != a.Slice.Fixed() {
			w.t.Fatalf("slice %s is to be changed in place into what it is not: %+v\n%s", name, *a.Slice, w.describe())
		}
	case plan.CreateSlice, plan.RepairSlice:
		if a.Slice.Stack == "" || a.Slice.Hosts == 0 || a.Slice.Owner.IsZero() {
			w.t.Fatalf("%s of a slice without mark: %+v", a.Verb, *a.Slice)
		}
	}
}

// evidence finds actions that would destroy what the state does not hold yet.
func (o *oracle) evidence(obs *plan.Observed, p *plan.Plan) {
	deleting := map[string]bool{}
	for _, inv := range obs.Inventories {
		for i := range inv.Slices {
			deleting[inv.Slices[i].Spec.Name] = inv.Slices[i].Phase == schema.SliceDeleting
		}
	}
	acting := map[string]bool{}
	for _, a := range p.Actions {
		name := a.Slice.Name
		if acting[name] {
			o.w.t.Fatalf("two actions on slice %s at the same time", name)
		}
		acting[name] = true
		leaving := o.w.doc.Jobs[a.Slice.Owner] != nil && !slices.ContainsFunc(o.w.doc.Desired.Jobs, func(j schema.Job) bool { return j.Addr == a.Slice.Owner })
		destroys := a.Verb == plan.ForgetSlice || a.Verb == plan.DeleteSlice && !deleting[name] && !leaving || a.Verb == plan.Assign && (a.Assignment.Run == nil && a.Assignment.Generation != o.w.assignments[name].Generation || o.w.takesPacked(a.Assignment))
		if destroys && !a.AfterSave {
			o.w.t.Fatalf("%s of %s does not wait until the state is saved", a.Verb, name)
		}
	}
}

// dependencies finds jobs whose first attempt began before others were ready
// or had succeeded.
func (o *oracle) dependencies(before, after *state.Document) {
	w := o.w
	w.t.Helper()
	for addr, j := range after.Jobs {
		last, was := j.Last(), before.Jobs[addr]
		if last == nil || was != nil && (was.Attempt == j.Attempt || was.Status == schema.JobRunning) || last.Resumed {
			continue
		}
		met := func(on schema.Address, ready bool) bool {
			other := after.Jobs[on]
			if other == nil {
				return true // no job
			}
			ready = ready || other.Spec.IsService() || other.Spec.HealthCheck != nil
			return other.Status == schema.JobSucceeded || ready && other.Ready
		}
		for _, on := range j.Spec.DependsOn {
			if !met(on, false) {
				w.t.Fatalf("%s starts before %s, on which it depends\n%s", addr, on, w.describe())
			}
		}
		for _, on := range j.Spec.Uses {
			if !met(on, true) {
				w.t.Fatalf("%s starts before %s, which it uses\n%s", addr, on, w.describe())
			}
		}
	}
}

// dooming finds hosts that are given up although they reported a moment ago.
func (o *oracle) dooming(before, after *state.Document) {
	w := o.w
	w.t.Helper()
	for name, s := range after.Slices {
		if was := before.Slices[name]; s.Terminating.Cause != state.CauseHostLost || was != nil && !was.Terminating.IsZero() {
			continue
		}
		silent := false
		for key, r := range w.reports {
			silent = silent || key.slice == name && w.now.Sub(r.At) >= snapshot.HostTimeout
		}
		if !silent {
			w.t.Fatalf("slice %s is given up as silent though all its hosts report\n%s", name, w.describe())
		}
	}
}

// assigning finds attempts that start before older ones are confirmed dead.
func (o *oracle) assigning(a plan.Action, s *simSlice) {
	w := o.w
	w.t.Helper()
	run := a.Assignment.Run
	if run == nil {
		return
	}
	if s == nil && !w.unreachable {
		w.t.Fatalf("%s is assigned to slice %s, which is not there\n%s", run.Job, a.Slice.Name, w.describe())
	}
	for name, other := range w.slices {
		for n, h := range other.hosts {
			if !h.live || h.task.Job == run.Job && h.task.Attempt == run.Attempt && h.task.Generation == a.Assignment.Generation {
				continue
			}
			if name == a.Slice.Name {
				w.t.Fatalf("attempt %d of %s is assigned to host %d of %s, where %s attempt %d still runs\n%s",
					run.Attempt, run.Job, n, name, h.task.Job, h.task.Attempt, w.describe())
			}
			if h.task.Job == run.Job && h.task.Attempt != run.Attempt {
				w.t.Fatalf("attempt %d of %s is assigned while attempt %d still runs on host %d of %s\n%s",
					run.Attempt, run.Job, h.task.Attempt, n, name, w.describe())
			}
		}
	}
	for _, p := range run.Peers {
		if w.slices[p.Slice] == nil && !w.wayward {
			w.t.Fatalf("attempt %d of %s counts on slice %s, which is not there\n%s", run.Attempt, run.Job, p.Slice, w.describe())
		}
	}
}

// started counts starts: an attempt starts at most once on one host.
func (o *oracle) started(slice string, n int, run *state.Run) {
	key := fmt.Sprintf("%s attempt %d on host %d of %s made %s", run.JobID, run.Attempt, n, slice, o.w.slices[slice].createdAt.Format(time.StampMilli))
	o.ranOnce(run)
	o.starts[key]++
	if o.starts[key] > 1 {
		o.w.t.Fatalf("started twice: %s\n%s", key, o.w.describe())
	}
}

// lived looks at the world between steps.
func (o *oracle) lived() {
	w := o.w
	w.t.Helper()
	if s := w.slices[o.foreign.Name]; s == nil || s.phase != schema.SliceReady {
		w.t.Fatal("the slice of another stack was touched")
	}
	o.shared()
	for name := range w.slices {
		if len(name) > plan.MaxNameLength || strings.ToLower(name) != name {
			w.t.Fatalf("%q is no name for a slice", name)
		}
	}
}

// ranOnce holds that each time of a schedule has one run, and each run one time.
func (o *oracle) ranOnce(run *state.Run) {
	o.w.t.Helper()
	if run.Run == 0 {
		return
	}
	if o.runs[run.JobID] == nil {
		o.runs[run.JobID] = map[int]time.Time{}
	}
	for number, due := range o.runs[run.JobID] {
		if (number == run.Run) != due.Equal(run.DueAt) {
			o.w.t.Fatalf("run %d of %s, due at %v, began after run %d, due at %v\n%s", run.Run, run.Job, run.DueAt, number, due, o.w.describe())
		}
	}
	o.runs[run.JobID][run.Run] = run.DueAt
	if run.DueAt.After(o.w.now) {
		o.w.t.Fatalf("run %d of %s began at %v, before it was due at %v", run.Run, run.Job, o.w.now, run.DueAt)
	}
}
