package amend_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

const lineage = "abcdefghijklmnopqrstuvwxyz"

// tester is what a testing.T and a rapid.T have in common.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// world is a provider, its hosts and a mailbox, in which all that is asked for
// happens at once. It remembers what was started and what was destroyed.
type world struct {
	t           tester
	now         time.Time
	doc         *state.Document
	slices      map[string]*schema.SliceStatus
	assignments map[string]plan.Assigned
	hosts       map[string][]plan.Host
	object      state.Generation
	logs        map[string]bool // ids of jobs that have run
	ends        func(run *state.Run) schema.TaskState

	starts []string // "ID attempt N on SLICE"
	ended  []string // tasks that were told to stop, and slices that were deleted
}

func newWorld(t tester, desired schema.Desired) *world {
	return &world{
		t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		doc:         &state.Document{FormatVersion: state.FormatVersion, Lineage: lineage, Revision: 1, Desired: desired},
		slices:      map[string]*schema.SliceStatus{},
		assignments: map[string]plan.Assigned{},
		hosts:       map[string][]plan.Host{},
		logs:        map[string]bool{},
		ends:        func(*state.Run) schema.TaskState { return schema.TaskRunning },
	}
}

func (w *world) observe() *plan.Observed {
	obs := &plan.Observed{
		Inventories: map[schema.ProviderName]schema.Inventory{schema.ProviderLocal: {}},
		Unreachable: map[schema.ProviderName]plan.Unreachable{},
		Assignments: maps.Clone(w.assignments), Hosts: map[string][]plan.Host{},
	}
	var inv schema.Inventory
	for _, name := range slices.Sorted(maps.Keys(w.slices)) {
		inv.Slices = append(inv.Slices, *w.slices[name])
	}
	obs.Inventories[schema.ProviderLocal] = inv
	for name, hosts := range w.hosts {
		obs.Hosts[name] = slices.Clone(hosts)
	}
	w.confirm(obs)
	return obs
}

// confirm reads each slice directly, recorded or not, as a look does with those
// against which a list speaks.
func (w *world) confirm(obs *plan.Observed) {
	obs.Confirmations = map[string]plan.Confirmation{}
	for name := range w.doc.Slices {
		obs.Confirmations[name] = plan.Confirmation{Answer: snapshot.AnswerGone, ReadAt: w.now}
	}
	for name, st := range w.slices {
		obs.Confirmations[name] = plan.Confirmation{Answer: snapshot.AnswerFound, ReadAt: w.now, Status: *st}
	}
}

// diff is what follows now for a configuration.
func (w *world) diff(desired schema.Desired) *plan.Plan {
	return reconcile.Diff(&desired, w.doc, w.observe(), w.now)
}

func (w *world) step() *plan.Plan {
	w.t.Helper()
	p := w.diff(w.doc.Desired)
	w.doc = p.Next
	for _, a := range p.Actions {
		w.carryOut(a)
	}
	w.now = w.now.Add(time.Second)
	for _, name := range slices.Sorted(maps.Keys(w.slices)) {
		w.live(name)
	}
	return p
}

func (w *world) carryOut(a plan.Action) {
	w.t.Helper()
	name := a.Slice.Name
	switch a.Verb {
	case plan.CreateSlice, plan.RepairSlice:
		if st := w.slices[name]; st != nil && st.Spec != *a.Slice {
			w.t.Fatalf("slice %s was made as %+v and is asked for as %+v", name, st.Spec, *a.Slice)
		}
		w.slices[name] = &schema.SliceStatus{Spec: *a.Slice, Phase: schema.SliceReady, CreatedAt: w.now}
	case plan.UpdateSlice:
		w.slices[name].Spec = *a.Slice
	case plan.DeleteSlice:
		w.ended = append(w.ended, "slice "+name)
		delete(w.slices, name)
	case plan.Assign:
		w.object++
		written := *a.Assignment
		written.Epoch = 1
		w.assignments[name] = plan.Assigned{Assignment: written, Object: w.object}
	case plan.ForgetSlice:
		if w.slices[name] != nil {
			w.t.Fatalf("the mailbox of slice %s is forgotten though it lives", name)
		}
		delete(w.assignments, name)
		delete(w.hosts, name)
	}
}

// live lets the hosts of a slice obey their assignment.
func (w *world) live(name string) {
	w.t.Helper()
	a := w.assignments[name]
	hosts := make([]plan.Host, w.slices[name].Spec.Hosts)
	for n := range hosts {
		var task *state.TaskReport
		if old := w.hosts[name]; n < len(old) {
			task = old[n].Task
		}
		if task != nil && task.Generation < a.Generation && !task.State.Ended() {
			w.ended = append(w.ended, fmt.Sprintf("attempt %d of %s on %s", task.Attempt, task.Job, name))
			killed := *task
			killed.State = schema.TaskKilled
			task = &killed
		}
		if a.Run != nil && (task == nil || task.Generation < a.Generation) {
			w.logs[a.Run.JobID] = true
			w.starts = append(w.starts, fmt.Sprintf("%s attempt %d on %s", a.Run.JobID, a.Run.Attempt, name))
			task = &state.TaskReport{
				Job: a.Run.Job, Attempt: a.Run.Attempt, Generation: a.Generation, Task: n,
				State: schema.TaskRunning, Started: true, StartedAt: w.now,
			}
		}
		if task != nil && task.State == schema.TaskRunning && w.ends(a.Run) != schema.TaskRunning {
			over := *task
			over.State = w.ends(a.Run)
			task = &over
		}
		hosts[n] = plan.Host{HostReport: state.HostReport{
			Slice: name, Host: n, Address: "127.0.0.1", CoordinatorPort: 1, MegascalePort: 2,
			Epoch: a.Epoch, Generation: a.Generation, Task: task,
		}}
	}
	w.hosts[name] = hosts
}

// settle steps until nothing more happens.
func (w *world) settle() {
	w.t.Helper()
	for range 100 {
		before := w.doc
		if p := w.step(); p.Empty() && len(p.Pending) == 0 && w.doc == before {
			return
		}
	}
	w.t.Fatalf("the world does not settle: %+v", w.diff(w.doc.Desired).Pending)
}

func (w *world) accept(desired schema.Desired) {
	w.doc = change.Accepted(w.doc, desired)
	w.doc.Revision++
}

// apply accepts a configuration and settles.
func (w *world) apply(desired schema.Desired) {
	w.t.Helper()
	w.accept(desired)
	w.settle()
}

// mustStay fails unless nothing follows now for a configuration.
func (w *world) mustStay(what string, desired schema.Desired) {
	w.t.Helper()
	p := w.diff(desired)
	for _, c := range p.Changes {
		if c.Verb != plan.VerbNone {
			w.t.Errorf("%s: %s of %s (%+v), want no change", what, c.Verb, c.Addr, c.Attrs)
		}
	}
	for _, d := range p.Drift {
		w.t.Errorf("%s: drift %+v, want none", what, d)
	}
	for _, a := range p.Actions {
		w.t.Errorf("%s: %s of %s, want no action", what, a.Verb, a.Slice.Name)
	}
}

// preempt takes a slice away.
func (w *world) preempt(name string) {
	w.slices[name].Phase, w.slices[name].Reason = schema.SliceDead, "preempted"
}

func (w *world) job(addr schema.Address) *state.Job {
	w.t.Helper()
	j := w.doc.Jobs[addr]
	if j == nil {
		w.t.Fatalf("the state has no %s, but %v", addr, slices.Collect(maps.Keys(w.doc.Jobs)))
	}
	return j
}

// twoOnAHost finds a slice that two running jobs hold.
func (w *world) twoOnAHost() {
	w.t.Helper()
	holder := map[string]schema.Address{}
	for addr, j := range w.doc.Jobs {
		for _, name := range j.Slices {
			if other, held := holder[name]; held {
				w.t.Errorf("slice %s is held by %s and %s", name, other, addr)
			}
			if _, unmanaged := w.doc.Unmanaged[name]; unmanaged {
				w.t.Errorf("slice %s of %s is unmanaged", name, addr)
			}
			holder[name] = addr
		}
	}
}

func address(t tester, s string) schema.Address {
	t.Helper()
	a, err := schema.ParseAddress(s)
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return a
}

// at is a job of an address, on one CPU, unless changed.
func at(t tester, addr string, changes ...func(*schema.Job)) schema.Job {
	t.Helper()
	a := address(t, addr)
	j := schema.Job{
		Addr: a, Namespace: a.Name, Command: []schema.Text{schema.Plain("run")},
		Resources: schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1},
		Retries:   schema.Retries{Failure: 3, Preemption: 100},
		// With it, dependents of the job wait until it is ready only.
		HealthCheck: &schema.Health{TCP: true},
	}
	if a.Group != "" {
		j.Namespace = a.Group
	}
	for _, change := range changes {
		change(&j)
	}
	return j
}

func gang(n int) func(*schema.Job) {
	return func(j *schema.Job) {
		j.Resources.TPU, j.Resources.CPU, j.Resources.Slices, j.Resources.Preemptible = "v5litepod-16", 0, n, true
	}
}

func from(pool string, n int) func(*schema.Job) {
	return func(j *schema.Job) {
		gang(n)(j)
		j.Resources.Reservation = pool
	}
}

func in(namespace string) func(*schema.Job) { return func(j *schema.Job) { j.Namespace = namespace } }

func needs(on schema.Address) func(*schema.Job) {
	return func(j *schema.Job) { j.DependsOn = []schema.Address{on} }
}

func pool(name string, n int) schema.Reservation {
	c := schema.Capacity{TPU: "v5litepod-16", Slices: n}
	return schema.Reservation{
		Addr: schema.Address{Kind: schema.KindReservation, Name: name}, Provider: schema.ProviderLocal, Min: c, Max: c, Preemptible: true,
	}
}

// files are jobs, the groups they stand in, and reservations.
func files(jobs []schema.Job, pools ...schema.Reservation) schema.Desired {
	d := schema.Desired{Reservations: pools}
	for i := range jobs {
		group := schema.Address{Kind: schema.KindJobGroup, Name: jobs[i].Addr.Group}
		if group.Name != "" && !slices.ContainsFunc(d.Groups, func(g schema.JobGroup) bool { return g.Addr == group }) {
			d.Groups = append(d.Groups, schema.JobGroup{Addr: group, Namespace: group.Name})
		}
	}
	d.Jobs = slices.Clone(jobs)
	slices.SortFunc(d.Jobs, func(a, b schema.Job) int { return a.Addr.Compare(b.Addr) })
	slices.SortFunc(d.Groups, func(a, b schema.JobGroup) int { return a.Addr.Compare(b.Addr) })
	return d
}

func jobs(js ...schema.Job) schema.Desired { return files(js) }

var _ tester = (*testing.T)(nil)
