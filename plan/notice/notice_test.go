package notice_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

var (
	began  = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	oncall = schema.Address{Kind: schema.KindNotification, Name: "oncall"}
	train  = schema.Address{Kind: schema.KindJob, Name: "train"}
)

// world is a stack whose notices are decided step by step.
type world struct {
	ledger *notice.Ledger
	in     notice.Input
}

func newWorld(on ...schema.NoticeKind) *world {
	n := &schema.Notification{
		Addr: oncall, On: on, PendingAfter: schema.Duration(30 * time.Minute), BudgetAt: 0.9,
		Slack: &schema.SlackReceiver{URL: schema.Secret("https://hooks.example.com/x")},
	}
	doc := &state.Document{
		Lineage: "stack", Resources: map[schema.Address]state.Resource{oncall: {Since: began, Notification: n}},
		Jobs: map[schema.Address]*state.Job{}, Slices: map[string]*state.Slice{},
	}
	return &world{ledger: &notice.Ledger{}, in: notice.Input{
		Now: began, Epoch: 1, Workspace: "default", Doc: doc, Leader: notice.Leader{Host: "a", PID: 1, Command: "fray watch"},
	}}
}

// notification is what is declared.
func (w *world) notification() *schema.Notification { return w.in.Doc.Resources[oncall].Notification }

func (w *world) job(status schema.JobStatus, attempt int) *state.Job {
	j := &state.Job{
		ID: "train-1", Spec: &schema.Job{Addr: train, Namespace: "rl"}, Status: status, Attempt: attempt, AdmittedAt: began,
	}
	if attempt > 0 {
		j.Attempts = []state.Attempt{{Number: attempt, StartedAt: began}}
	}
	w.in.Doc.Jobs[train] = j
	return j
}

// step decides, and returns what is new as "KIND STATUS: TEXT; ...".
func (w *world) step(t *testing.T) []string {
	t.Helper()
	before := w.ledger
	kept := fmt.Sprintf("%+v", *before)
	w.ledger = notice.Decide(before, &w.in)
	if got := fmt.Sprintf("%+v", *before); got != kept {
		t.Fatalf("the ledger was changed:\n%s\nwas\n%s", got, kept)
	}
	var texts []string
	for _, n := range w.ledger.Notices[len(before.Notices):] {
		var items []string
		for _, item := range n.Items {
			items = append(items, item.Text)
		}
		texts = append(texts, fmt.Sprintf("%s %s: %s", n.Kind, n.Status, strings.Join(items, "; ")))
	}
	w.in.Drift = nil
	again := notice.Decide(w.ledger, &w.in)
	if again != w.ledger {
		t.Fatalf("a second decision on the same changes the ledger: %+v", again)
	}
	return texts
}

func (w *world) wants(t *testing.T, want ...string) {
	t.Helper()
	if got := w.step(t); !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
}

func TestPendingIsToldOnceAndThenThatItRuns(t *testing.T) {
	w := newWorld(schema.NoticeJobPending)
	w.job(schema.JobPending, 0)
	w.in.Pending = []plan.Pending{{Addr: train, Kind: plan.WaitCapacity, Reasons: []string{"no v5p-8 in us-east5-a", "nor in us-central1-a"}}}
	w.in.Now = began.Add(29 * time.Minute)
	w.wants(t)
	w.in.Now = began.Add(30 * time.Minute)
	w.wants(t, "job_pending firing: no v5p-8 in us-east5-a (and 1 more)")
	if got := w.ledger.Notices[0].Items[0]; got.Cause != "capacity" || got.Namespace != "rl" || !got.Since.Equal(began) {
		t.Errorf("got item %+v, want its cause, namespace and since when", got)
	}
	w.in.Now = began.Add(40 * time.Minute)
	w.wants(t)
	w.job(schema.JobRunning, 1)
	w.wants(t, "job_pending resolved: runs, after it was pending for 40m0s")
	w.wants(t)
}

func TestWaitingForAnotherJobIsNotPendingForLong(t *testing.T) {
	w := newWorld(schema.NoticeJobPending)
	w.job(schema.JobPending, 0)
	w.in.Pending = []plan.Pending{{Addr: train, Kind: plan.WaitDependency, Reasons: []string{"job.prepare has not ended"}}}
	w.in.Now = began.Add(5 * time.Hour)
	w.wants(t)
	w.in.Pending[0] = plan.Pending{Addr: train, Kind: plan.WaitBlocked, Reasons: []string{"job.prepare failed"}, Blocked: true}
	w.wants(t, "job_pending firing: job.prepare failed")
}

// A preemption is no failure: the job is pending again. Only its end is one.
func TestFailureIsTheEndOfAJobAndNoPreemption(t *testing.T) {
	w := newWorld(schema.NoticeJobFailed, schema.NoticeDrift)
	w.job(schema.JobRunning, 1)
	w.wants(t)
	j := w.job(schema.JobPending, 1)
	j.Attempts[0].Outcome, j.Preemptions = schema.TaskPreempted, 1
	w.in.Drift = []plan.Drift{
		{Kind: plan.DriftPreempted, Addr: train, Found: "slice x is dead: preempted", Then: "its tasks will be started again"},
		{Kind: plan.DriftAttemptEnded, Addr: train, Found: "attempt 1 ended"},
		{Kind: plan.DriftYields, Addr: train, Found: "it yields"},
	}
	w.wants(t)
	j = w.job(schema.JobFailed, 2)
	j.Attempts[0].Outcome, j.EndedAt, j.Reason = schema.TaskFailed, began.Add(time.Hour), "exit status 3"
	w.wants(t, "job_failed firing: attempt 2 was the last one: exit status 3")
	w.wants(t)
	w.job(schema.JobRunning, 3) // applied anew
	w.wants(t)
	j = w.job(schema.JobFailed, 3)
	j.EndedAt = began.Add(2 * time.Hour)
	w.wants(t, "job_failed firing: attempt 3 was the last one")
}

func TestWhatFailedBeforeTheNotificationIsNotTold(t *testing.T) {
	w := newWorld(schema.NoticeJobFailed, schema.NoticeReservationEnded)
	w.job(schema.JobFailed, 1).EndedAt = began.Add(-time.Second)
	pool := schema.Address{Kind: schema.KindReservation, Name: "pool"}
	w.in.Expiries = []plan.Expiry{{Addr: pool, At: began.Add(-time.Minute), Over: true}}
	w.wants(t)
	w.in.Expiries = []plan.Expiry{{Addr: pool, At: began.Add(time.Minute), Over: true}}
	w.wants(t, "reservation_ended firing: the time of the reservation is over; its slices are released as jobs end")
}

func TestDriftIsToldAndThenThatItIsRepaired(t *testing.T) {
	w := newWorld(schema.NoticeDrift)
	w.job(schema.JobRunning, 1)
	w.in.Drift = []plan.Drift{{Kind: plan.DriftSliceGone, Addr: train, Slice: "train-0", Found: "slice train-0 is gone", Then: "will be created again"}}
	w.in.Doc.Slices["train-0"] = &state.Slice{}
	w.wants(t, "drift firing: slice train-0 is gone; will be created again")
	if got := w.ledger.Notices[0].Items[0]; got.Cause != string(plan.DriftSliceGone) || got.Slice != "train-0" {
		t.Errorf("got %+v, want the kind of drift and the slice", got)
	}
	w.job(schema.JobPending, 1)
	w.wants(t)
	w.in.Doc.Slices["train-0"] = &state.Slice{UpAt: began}
	w.wants(t)
	w.job(schema.JobRunning, 2)
	w.wants(t, "drift resolved: is as the state has it again: slice train-0 is gone; will be created again")
}

// Labels that were edited by hand and items that cannot be read are drift as long as they last.
func TestLastingDrift(t *testing.T) {
	w := newWorld(schema.NoticeDrift)
	item := schema.SkippedItem{Name: "x", Zone: "z", Reason: schema.SkipCopy, Text: "it is a copy"}
	w.in.Doc.Conditions = map[schema.ProviderName]state.ProviderCondition{schema.ProviderGCP: {Skipped: []schema.SkippedItem{item}}}
	w.in.Drift = []plan.Drift{{Kind: plan.DriftSliceEdited, Slice: "s", Found: "label team is missing"}}
	w.in.Doc.Slices["s"] = &state.Slice{UpAt: began, Edited: []string{"label team is missing"}}
	if got := w.step(t); len(got) != 1 || !strings.Contains(got[0], "it is a copy") || !strings.Contains(got[0], "label team") {
		t.Fatalf("got %q, want one notice of both", got)
	}
	w.in.Doc.Conditions = nil
	w.in.Doc.Slices["s"] = &state.Slice{UpAt: began}
	if got := w.step(t); len(got) != 1 || !strings.HasPrefix(got[0], "drift resolved") {
		t.Fatalf("got %q, want that both are repaired", got)
	}
}

func TestBudgets(t *testing.T) {
	w := newWorld(schema.NoticeBudget)
	rl := schema.Address{Kind: schema.KindNamespace, Name: "rl"}
	w.in.Doc.Resources[rl] = state.Resource{Namespace: &schema.Namespace{Addr: rl, MaxChips: 16, Budget: 8}}
	j := w.job(schema.JobRunning, 1)
	w.wants(t)
	j.Slices = []string{"s"}
	w.in.Doc.Slices["s"] = &state.Slice{Spec: schema.SliceSpec{TPU: "v5litepod-8", Hosts: 1}, UpAt: began}
	w.wants(t, "budget firing: uses 8 chips of 8 chips (100%)")
	j.Slices = nil
	w.wants(t, "budget resolved: uses 0 chips of 8 chips (0%)")

	money := func(used float64) {
		w.in.Budgets = []notice.BudgetUse{{Namespace: "rl", Unit: notice.UnitDollars, Period: "2026-11", Used: used, Limit: 1000}}
	}
	money(899)
	w.wants(t)
	money(905.5)
	w.wants(t, "budget firing: uses $905.50 of $1000.00 (91%) in 2026-11")
	money(880) // a little below is not told, or a use around the mark would be told again and again
	w.wants(t)
	money(10)
	w.wants(t, "budget resolved: uses $10.00 of $1000.00 (1%) in 2026-11")
}

func TestLeaderChanged(t *testing.T) {
	w := newWorld(schema.NoticeLeaderChanged)
	w.wants(t)
	w.in.Epoch++ // the same process leads again, after an apply
	w.wants(t)
	w.in.Leader.Host, w.in.Leader.PID = "b", 7
	w.wants(t, "leader_changed firing: fray watch on b (pid 7) leads the stack; before, pid 1 on a did")
}

func TestNamespacesFilter(t *testing.T) {
	w := newWorld(schema.NoticeJobFailed)
	w.notification().Namespaces = []string{"other"}
	w.job(schema.JobFailed, 1).EndedAt = began
	w.wants(t)
	w.notification().Namespaces = []string{"other", "rl"}
	w.wants(t, "job_failed firing: attempt 1 was the last one")
}

// Many conditions of one step are one notice, which names some of them.
func TestManyConditionsAreOneNotice(t *testing.T) {
	w := newWorld(schema.NoticeDrift)
	for i := range 1000 {
		w.in.Doc.Slices[fmt.Sprint("s", i)] = &state.Slice{}
		w.in.Drift = append(w.in.Drift, plan.Drift{Kind: plan.DriftSliceGone, Slice: fmt.Sprint("s", i), Found: strings.Repeat("long ", 1000)})
	}
	w.step(t)
	if n := w.ledger.Notices; len(n) != 1 || len(n[0].Items) != 20 || n[0].More != 980 || len(n[0].Items[0].Text) > 500 {
		t.Errorf("got %d notices, %d items and %d more, want 1 of 20 and 980 more, with short texts", len(n), len(n[0].Items), n[0].More)
	}
}

// A receiver that is dead does not fill the ledger.
func TestLedgerIsBounded(t *testing.T) {
	w := newWorld(schema.NoticeLeaderChanged)
	w.step(t)
	for i := range 500 {
		w.in.Leader.PID = 100 + i
		w.ledger = notice.Decide(w.ledger, &w.in)
	}
	if got := len(w.ledger.Notices); got != 100 || w.ledger.Dropped[oncall] != 400 {
		t.Errorf("%d notices wait and %d were dropped, want 100 and 400", got, w.ledger.Dropped[oncall])
	}
	if last := w.ledger.Notices[99]; !strings.Contains(last.Items[0].Text, "pid 599") {
		t.Errorf("the last notice is %+v, want the newest", last)
	}
	w.in.Now = began.Add(4 * 24 * time.Hour)
	w.ledger = notice.Decide(w.ledger, &w.in)
	if got := len(w.ledger.Notices); got != 0 {
		t.Errorf("%d notices of four days ago wait, want none", got)
	}
	delete(w.in.Doc.Resources, oncall)
	if w.ledger = notice.Decide(w.ledger, &w.in); len(w.ledger.Told)+len(w.ledger.Dropped) > 0 || w.ledger.Leader != nil {
		t.Errorf("the ledger remembers a notification that is declared no more: %+v", w.ledger)
	}
}
