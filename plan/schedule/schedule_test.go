package schedule_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(name string) schema.Address { return schema.Address{Kind: schema.KindJob, Name: name} }

type option func(*schema.Job)

func job(name string, options ...option) schema.Job {
	j := schema.Job{
		Addr: at(name), Namespace: "default", Command: []schema.Text{schema.Plain("run")},
		Resources: schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1},
	}
	for _, o := range options {
		o(&j)
	}
	return j
}

func inBand(b schema.Band) option { return func(j *schema.Job) { j.Band = b } }
func onSlices(n int) option       { return func(j *schema.Job) { j.Resources.Slices = n } }
func after(name string) option {
	return func(j *schema.Job) { j.DependsOn = []schema.Address{at(name)} }
}

// world is one in which some jobs of a configuration have slices.
type world struct {
	doc *state.Document
	obs *plan.Observed
}

// newWorld records jobs that hold slices; those that run have an attempt, the others
// only hosts that are up.
func newWorld(t *testing.T, holding []schema.Job, run bool) world {
	t.Helper()
	w := world{
		doc: &state.Document{Lineage: "0123456789abcdef", Jobs: map[schema.Address]*state.Job{}, Slices: map[string]*state.Slice{}},
		obs: &plan.Observed{Assignments: map[string]plan.Assigned{}, Hosts: map[string][]plan.Host{}},
	}
	var inventory schema.Inventory
	for i := range holding {
		want := &holding[i]
		digest, err := schema.DigestOf(want)
		if err != nil {
			t.Fatal(err)
		}
		j := &state.Job{ID: plan.JobID(w.doc.Lineage, want.Addr, 0), Spec: want, Digest: digest, Status: schema.JobPending, AdmittedAt: now.Add(-time.Hour)}
		for n := range want.Resources.Slices {
			spec := plan.OwnSlice(w.doc.Stack(), want, n)
			spec.Hosts = 1
			j.Slices = append(j.Slices, spec.Name)
			w.doc.Slices[spec.Name] = &state.Slice{Spec: spec, PendingSince: now.Add(-time.Hour), Listed: true, UpAt: now.Add(-time.Hour)}
			inventory.Slices = append(inventory.Slices, schema.SliceStatus{Spec: spec, Phase: schema.SliceReady, CreatedAt: now.Add(-time.Hour)})
			w.obs.Hosts[spec.Name] = []plan.Host{{HostReport: state.HostReport{Slice: spec.Name, Address: "127.0.0.1"}}}
		}
		if run {
			w.run(want, j)
		}
		w.doc.Jobs[want.Addr] = j
	}
	w.obs.Inventories = map[schema.ProviderName]schema.Inventory{schema.ProviderLocal: inventory}
	return w
}

// run has an attempt of a job run on its slices.
func (w *world) run(want *schema.Job, j *state.Job) {
	a := state.Attempt{Number: 1, Generation: 1, StartedAt: now.Add(-time.Hour), Slices: j.Slices}
	for i, name := range j.Slices {
		a.Tasks = append(a.Tasks, state.Task{Slice: name, State: schema.TaskRunning, Address: "127.0.0.1", Started: true})
		run := &state.Run{Job: want.Addr, JobID: j.ID, Attempt: 1, Spec: *want, Digest: j.Digest, SliceIndex: i, NumSlices: len(j.Slices)}
		w.obs.Assignments[name] = plan.Assigned{Assignment: state.Assignment{Slice: name, Stack: w.doc.Stack(), Generation: 1, Run: run}, Object: 1}
		h := &w.obs.Hosts[name][0]
		h.Generation = 1
		h.Task = &state.TaskReport{Job: want.Addr, Attempt: 1, Generation: 1, State: schema.TaskRunning, Started: true}
	}
	j.Status, j.Attempt, j.Attempts, j.Ready = schema.JobRunning, 1, []state.Attempt{a}, true
}

func TestSchedule(t *testing.T) {
	batch, production := inBand(schema.BandBatch), inBand(schema.BandProduction)
	for name, c := range map[string]struct {
		holding []schema.Job
		run     bool
		waiting []schema.Job
		limit   int // of slices
		placed  []string
		started []string
		evicted []string
		waits   map[string]string // what some reason of a job contains
	}{
		"all that fit are placed": {waiting: []schema.Job{job("a"), job("b")}, limit: 2, placed: []string{"a", "b"},
			waits: map[string]string{"a": "is being created"}},
		"the first in the queue gets the last slice": {waiting: []schema.Job{job("a"), job("b")}, limit: 1, placed: []string{"a"},
			waits: map[string]string{"b": "needs 1 more slice"}},
		"a higher band comes first": {waiting: []schema.Job{job("a", batch), job("b", production)}, limit: 1, placed: []string{"b"},
			waits: map[string]string{"a": "needs 1 more slice"}},
		"a gang is placed whole or not at all": {waiting: []schema.Job{job("a", onSlices(3)), job("b", onSlices(2))}, limit: 2, placed: []string{"b"},
			waits: map[string]string{"a": "needs 3 more slices"}},
		"a dependency is waited for": {waiting: []schema.Job{job("a"), job("b", after("a"))}, limit: 2, placed: []string{"a"},
			waits: map[string]string{"b": "waits for job.a"}},
		"an attempt starts once all hosts are up": {holding: []schema.Job{job("a", onSlices(2))}, waiting: []schema.Job{job("a", onSlices(2))}, limit: 2,
			started: []string{"a"}, waits: map[string]string{"a": "its tasks are being started"}},
		"a lower band is evicted": {holding: []schema.Job{job("a", batch)}, run: true, waiting: []schema.Job{job("b", production)}, limit: 1,
			evicted: []string{"a"}, waits: map[string]string{"b": "job.a makes room for it"}},
		"the same band is not": {holding: []schema.Job{job("a", batch)}, run: true, waiting: []schema.Job{job("b", batch)}, limit: 1,
			waits: map[string]string{"b": "needs 1 more slice"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.holding, c.run)
			desired := schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderLocal, Slices: c.limit}}, Jobs: slices.Clone(c.waiting)}
			if c.run {
				desired.Jobs = slices.Concat(c.holding, c.waiting)
			}
			concluded := lifecycle.Conclude(snapshot.Take(snapshot.Input{Desired: &desired, Doc: w.doc, Obs: w.obs, Now: now}))
			given := schedule.Input{Conclusion: concluded, Queue: concluded.Idle}
			before := text(t, concluded.Snapshot.Next())
			decided := schedule.Schedule(given)
			want(t, "placed", decided.Placed, c.placed)
			want(t, "started", decided.Started, c.started)
			want(t, "evicted", decided.Evicted, c.evicted)
			for name, part := range c.waits {
				if !slices.ContainsFunc(decided.Waits, func(w plan.Waiting) bool { return w.Addr == at(name) && strings.Contains(w.Why.Text, part) }) {
					t.Errorf("job.%s waits for %+v, want something with %q", name, decided.Waits, part)
				}
			}
			if is := text(t, concluded.Snapshot.Next()); is != before {
				t.Errorf("Schedule changed its snapshot:\ngot  %s\nwant %s", is, before)
			}
			again := schedule.Schedule(given)
			if a, b := text(t, decided.Conclusion.Snapshot.Next()), text(t, again.Conclusion.Snapshot.Next()); a != b {
				t.Errorf("a second call decides otherwise:\ngot  %s\nwant %s", b, a)
			}
		})
	}
}

func want(t *testing.T, what string, got []schema.Address, names []string) {
	t.Helper()
	var all []schema.Address
	for _, name := range names {
		all = append(all, at(name))
	}
	if slices.SortFunc(got, schema.Address.Compare); !slices.Equal(got, all) {
		t.Errorf("%s: got %v, want %v", what, got, all)
	}
}

func text(t *testing.T, doc *state.Document) string {
	t.Helper()
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
