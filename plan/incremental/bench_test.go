package incremental

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func manyJobs(n int, options ...jobOption) schema.Desired {
	jobs := make([]schema.Job, 0, n)
	for i := range n {
		jobs = append(jobs, newJob("rollout", append([]jobOption{instance(i), withEnv("WORKER", fmt.Sprint(i))}, options...)...))
	}
	return configuration(jobs...)
}

// runningWorld is a document and a world in which every job of a configuration
// runs and is ready.
func runningWorld(tb testing.TB, desired schema.Desired) (*state.Document, *plan.Observed, time.Time) {
	tb.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	doc := &state.Document{Lineage: testLineage, Desired: desired}
	obs := &plan.Observed{
		Inventories: map[schema.ProviderName]schema.Inventory{schema.ProviderLocal: {}},
		Assignments: map[string]plan.Assigned{}, Hosts: map[string][]plan.Host{},
	}
	for range 8 {
		p := reconcile.Diff(&doc.Desired, doc, obs, now)
		if p.Next == doc && len(p.Actions) == 0 {
			return doc, obs, now
		}
		doc = p.Next
		inv := obs.Inventories[schema.ProviderLocal]
		for _, a := range p.Actions {
			name := a.Slice.Name
			switch a.Verb {
			case plan.CreateSlice:
				inv.Slices = append(inv.Slices, schema.SliceStatus{Spec: *a.Slice, Phase: schema.SliceReady})
				for n := range a.Slice.Hosts {
					obs.Hosts[name] = append(obs.Hosts[name], plan.Host{HostReport: state.HostReport{Slice: name, Host: n, Address: "127.0.0.1"}})
				}
			case plan.Assign:
				obs.Assignments[name] = plan.Assigned{Assignment: *a.Assignment, Object: 1}
				hosts := obs.Hosts[name]
				for n := range hosts {
					hosts[n].Generation = a.Assignment.Generation
					hosts[n].Task = &state.TaskReport{
						Job: a.Assignment.Run.Job, Attempt: a.Assignment.Run.Attempt, Generation: a.Assignment.Generation,
						State: schema.TaskRunning, Started: true,
					}
				}
			case plan.RepairSlice, plan.UpdateSlice, plan.DeleteSlice, plan.ForgetSlice:
				tb.Fatalf("%s without a fault", a.Verb)
			}
		}
		obs.Inventories[schema.ProviderLocal] = inv
	}
	tb.Fatal("the world does not come to rest")
	return nil, nil, now
}

// BenchmarkDiff looks at 10,000 running tasks with nothing to do, when desired
// and recorded specs are the same values, and when they were read from disk.
func BenchmarkDiff(b *testing.B) {
	doc, obs, now := runningWorld(b, manyJobs(10_000))
	b.Run("running", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if p := reconcile.Diff(&doc.Desired, doc, obs, now); p.Next != doc {
				b.Fatal("something changed")
			}
		}
	})
	read := reread(b, doc)
	b.Run("running, reread", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if p := reconcile.Diff(&read.Desired, read, obs, now); p.Next != read {
				b.Fatal("something changed")
			}
		}
	})
}

// reread is what a document is after it was written and read.
func reread(tb testing.TB, doc *state.Document) *state.Document {
	tb.Helper()
	data, err := json.Marshal(doc)
	if err != nil {
		tb.Fatal(err)
	}
	var read state.Document
	if err := json.Unmarshal(data, &read); err != nil {
		tb.Fatal(err)
	}
	return &read
}

// BenchmarkDiffCreate plans everything from nothing.
func BenchmarkDiffCreate(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		desired := manyJobs(n)
		doc := &state.Document{Lineage: testLineage, Desired: desired}
		obs := &plan.Observed{Inventories: map[schema.ProviderName]schema.Inventory{schema.ProviderLocal: {}}}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p := reconcile.Diff(&doc.Desired, doc, obs, time.Time{}); len(p.Actions) != n {
					b.Fatalf("got %d actions, want %d", len(p.Actions), n)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/job")
		})
	}
}

// The stages of a plan from nothing take over what the one before made: with copies it took
// 10,500 bytes for each job.
func TestDiffAllocatesLittle(t *testing.T) {
	const jobs, most = 5_000, 9_900 // most bytes for each job
	desired := manyJobs(jobs)
	doc := &state.Document{Lineage: testLineage, Desired: desired}
	obs := &plan.Observed{Inventories: map[schema.ProviderName]schema.Inventory{schema.ProviderLocal: {}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := reconcile.Diff(&doc.Desired, doc, obs, time.Time{})
	runtime.ReadMemStats(&after)
	if len(p.Actions) != jobs || len(doc.Jobs) > 0 {
		t.Fatalf("got %d actions, want %d, and %d jobs in the former state, want none", len(p.Actions), jobs, len(doc.Jobs))
	}
	if each := (after.TotalAlloc - before.TotalAlloc) / jobs; each > most {
		t.Errorf("a plan took %d bytes for each job, want at most %d", each, most)
	}
}

// BenchmarkDiffChain looks at a chain of 5,000 jobs half of which are done: one
// runs and the rest wait.
func BenchmarkDiffChain(b *testing.B) {
	const n = 5_000
	desired := chainOf(n)
	doc := &state.Document{Lineage: testLineage, Desired: desired}
	obs := &plan.Observed{Inventories: map[schema.ProviderName]schema.Inventory{schema.ProviderLocal: {}}}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	doc = reconcile.Diff(&doc.Desired, doc, obs, now).Next
	for i := range n / 2 {
		addr := desired.Jobs[i].Addr
		j := *doc.Jobs[addr]
		j.Status, j.Attempt, j.Slices, j.Reason = schema.JobSucceeded, 1, nil, ""
		j.Attempts = []state.Attempt{{Number: 1, Outcome: schema.TaskSucceeded}}
		doc.Jobs[addr] = &j
		delete(doc.Slices, plan.SliceName(doc.Stack(), addr, 0))
	}
	doc = reconcile.Diff(&doc.Desired, doc, obs, now).Next
	b.Run("waiting", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if p := reconcile.Diff(&doc.Desired, doc, obs, now); p.Next != doc {
				b.Fatal("something changed")
			}
		}
	})
	b.Run("waiting, by a Planner", func(b *testing.B) {
		b.ReportAllocs()
		var planner Planner
		for b.Loop() {
			if p := planner.Diff(&doc.Desired, doc, obs, now); p.Next != doc {
				b.Fatal("something changed")
			}
		}
	})
}
