package reconcile_test

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A refresh records that a slice is gone, and neither acts nor decides: what the
// configuration asks for besides waits for the next plan, and what was recorded is found
// once.
func TestRefreshRecordsAndDecidesNothing(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	addr := schema.Address{Kind: schema.KindJob, Name: "a"}
	other := schema.Address{Kind: schema.KindJob, Name: "b"}
	slice := schema.SliceSpec{Name: "a-0-x", Stack: "abcdefghijkl", Owner: addr, Provider: schema.ProviderLocal, Hosts: 1, CPU: 1}
	job := schema.Job{Addr: addr, Namespace: "a", Command: []schema.Text{schema.Plain("true")}}
	doc := &state.Document{
		Lineage: "abcdefghijklmnop",
		Desired: schema.Desired{Jobs: []schema.Job{job, {Addr: other, Namespace: "b"}}},
		Slices:  map[string]*state.Slice{slice.Name: {Spec: slice, Listed: true, UpAt: now.Add(-time.Hour), PendingSince: now.Add(-time.Hour)}},
		Jobs: map[schema.Address]*state.Job{addr: {
			ID: "a", Spec: &job, Status: schema.JobRunning, Ready: true, Slices: []string{slice.Name}, Attempt: 1,
			Attempts: []state.Attempt{{
				Number: 1, Slices: []string{slice.Name}, StartedAt: now.Add(-time.Hour), ReadyAt: now.Add(-time.Hour),
				Tasks: []state.Task{{Slice: slice.Name, State: schema.TaskRunning}},
			}},
		}},
	}
	gone := &plan.Observed{
		Inventories:   map[schema.ProviderName]schema.Inventory{schema.ProviderLocal: {}},
		Confirmations: map[string]plan.Confirmation{slice.Name: {Since: now.Add(-time.Minute), Lists: 3, Answer: snapshot.AnswerGone, ReadAt: now}},
	}
	p := reconcile.Refresh(doc, gone, now, nil)
	if len(p.Drift) != 1 || p.Mode != plan.ModeRefreshOnly || p.Empty() {
		t.Fatalf("got drift %v, mode %q; want that the slice is gone", p.Drift, p.Mode)
	}
	if len(p.Actions) > 0 || p.Counts()[plan.VerbNone] != len(p.Changes) {
		t.Errorf("it does %v and changes %v, want nothing", p.Actions, p.Changes)
	}
	left := p.Next.Slices[slice.Name]
	if p.Next.Jobs[other] != nil || left != nil && left.Listed || p.Next.Jobs[addr].Last().Number != 1 {
		t.Errorf("it records jobs %v and slices %v; want job.a, in its first attempt, and no slice that is listed", p.Next.Jobs, p.Next.Slices)
	}
	if !doc.Slices[slice.Name].Listed {
		t.Error("the given document was changed")
	}
	if again := reconcile.Refresh(p.Next, gone, now, nil); !again.Empty() || again.Next != p.Next {
		t.Errorf("the second time it finds %v, want nothing", again.Drift)
	}
	outside := reconcile.Refresh(doc, gone, now, func(a schema.Address) bool { return a == other })
	if !outside.Empty() || outside.Next != doc {
		t.Errorf("of what is not targeted it finds %v, want nothing", outside.Drift)
	}
}
