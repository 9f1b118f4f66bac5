package progress

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/events"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// told is what a watch's progress says of states that follow each other, a second
// apart, line by line.
func told(t *testing.T, live bool, docs ...*state.Document) []string {
	t.Helper()
	var out bytes.Buffer
	p := New(&terminal.Terminal{Stderr: &out})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	p.live, p.Drifts, p.now = live, map[plan.Drift]bool{}, func() time.Time { return now }
	before := &state.Document{}
	for _, doc := range docs {
		p.Step(&plan.Plan{Next: doc}, before)
		before, now = doc, now.Add(time.Second)
	}
	p.Close()
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// jobOf is a state with one job.
func jobOf(status schema.JobStatus, ready bool, outcomes ...schema.TaskState) *state.Document {
	j := &state.Job{Status: status, Ready: ready, Attempt: len(outcomes), Spec: &schema.Job{}}
	for i, outcome := range outcomes {
		j.Attempts = append(j.Attempts, state.Attempt{Number: i + 1, Outcome: outcome})
	}
	return &state.Document{Jobs: map[schema.Address]*state.Job{{Kind: schema.KindJob, Name: "a"}: j}}
}

// A time is counted from the beginning of what ends then, not of what came before.
func TestProgressCountsFromTheLastBeginning(t *testing.T) {
	const running, pending = schema.JobRunning, schema.JobPending
	up := jobOf(running, true, "")
	for _, test := range []struct {
		name string
		docs []*state.Document
		want []string
	}{
		{"first", []*state.Document{jobOf(pending, false, ""), up}, []string{"job.a: running after 1s"}},
		{"healed", []*state.Document{
			jobOf(pending, false, ""), up, up, up,
			jobOf(pending, false, schema.TaskPreempted), jobOf(pending, false, schema.TaskPreempted, ""), jobOf(running, true, schema.TaskPreempted, ""),
		}, []string{"job.a: running after 1s", "job.a: attempt 1 preempted", "job.a: attempt 2 starts", "job.a: running after 2s"}},
		{"replaced after its end", []*state.Document{
			jobOf(schema.JobSucceeded, false, schema.TaskSucceeded), {}, {}, jobOf(pending, false, ""), up,
		}, []string{"job.a: succeeded after 0s", "job.a: destroyed after 1s", "job.a: running after 1s"}},
		{"another attempt after its end", []*state.Document{
			jobOf(schema.JobSucceeded, false, schema.TaskSucceeded), jobOf(pending, false, schema.TaskSucceeded, ""), jobOf(running, true, schema.TaskSucceeded, ""),
		}, []string{"job.a: succeeded after 0s", "job.a: attempt 2 starts", "job.a: running after 1s"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := told(t, false, test.docs...); !slices.Equal(got, test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// A watch tells of a pause and of its end, once each.
// How long an attempt ran counts from its start, also where only its end was seen, and a
// job that is started again begins anew.
func TestProgressCountsFromTheStartOfAnAttempt(t *testing.T) {
	addr := schema.Address{Kind: schema.KindJob, Name: "one"}
	began := time.Date(2026, 1, 2, 3, 3, 20, 0, time.UTC)
	doc := func(status schema.JobStatus, ready bool, a state.Attempt) *state.Document {
		return &state.Document{Jobs: map[schema.Address]*state.Job{addr: {
			Status: status, Ready: ready, Attempt: a.Number, Attempts: []state.Attempt{a}, Spec: &schema.Job{Addr: addr},
		}}}
	}
	got := told(t, false,
		doc(schema.JobFailed, false, state.Attempt{Number: 1, StartedAt: began, EndedAt: began.Add(47 * time.Second), Outcome: schema.TaskFailed}),
		doc(schema.JobPending, false, state.Attempt{Number: 1, StartedAt: began, EndedAt: began.Add(47 * time.Second), Outcome: schema.TaskFailed}),
		doc(schema.JobRunning, true, state.Attempt{Number: 2, StartedAt: began.Add(48 * time.Second)}),
	)
	want := []string{"job.one: failed after 47s", "job.one: attempt 2 starts", "job.one: running after 1s"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProgressTellsOfPauses(t *testing.T) {
	paused := &state.Document{Paused: &state.Pause{By: "ann@a", Reason: "no network"}}
	got := told(t, false, &state.Document{}, paused, paused.Clone(), &state.Document{}, &state.Document{})
	if len(got) != 2 || !strings.HasPrefix(got[0], "Paused: ann@a paused the stack at ") || got[1] != "Resumed." {
		t.Errorf("it tells %q", got)
	}
}

// Each line of a terminal begins where another command's last line may stand.
func TestProgressClearsATerminalsLine(t *testing.T) {
	for live, want := range map[bool]string{true: "\r\x1b[Kjob.a: running after 0s", false: "job.a: running after 0s"} {
		if got := told(t, live, jobOf(schema.JobRunning, true, "")); !slices.Equal(got, []string{want}) {
			t.Errorf("on a terminal %v: got %q, want %q", live, got, want)
		}
	}
}

// What an event is about is named once.
func TestEventsNameEachChangeOnce(t *testing.T) {
	job := schema.Address{Kind: schema.KindJob, Name: "x"}
	for _, test := range []struct {
		kind        state.EventKind
		slice       string
		text, whole string
	}{
		{state.EventDrift, "", "attempt 1 of job.x ended: gone", "job.x attempt 1 ended: gone"},
		{state.EventDrift, "s-0", "host 2 of slice s-0 is down; will be started again", "job.x slice s-0 host 2 is down; will be started again"},
		{state.EventDrift, "s-0", "slice s-0 is gone", "job.x slice s-0 is gone"},
		{state.EventDrift, "s-0", "host 2 of slice s-01 is down", "job.x slice s-0 host 2 of slice s-01 is down"},
		{state.EventEnded, "", "attempt 1 of job.x ended", "job.x attempt 1 of job.x ended"},
	} {
		e := &state.Event{Kind: test.kind, Addr: job, Slice: test.slice, Text: test.text}
		if got := events.About(e) + events.Text(e); got != test.whole {
			t.Errorf("%s: got %q, want %q", test.text, got, test.whole)
		}
	}
}

// Without a terminal it is said every 30 seconds what is waited for, and for what
// each waits; on a terminal, where a line says so all the time, it is not.
func TestProgressReminds(t *testing.T) {
	waits := []plan.Pending{
		{Addr: schema.Address{Kind: schema.KindJob, Name: "a"}, Reasons: []string{"no room", "no quota"}},
		{Addr: schema.Address{Kind: schema.KindJob, Name: "b"}, Reasons: []string{"it is running"}},
	}
	for _, live := range []bool{false, true} {
		var out bytes.Buffer
		p := New(&terminal.Terminal{Stderr: &out})
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		p.live, p.now = live, func() time.Time { return now }
		for range 62 { // a second apart
			p.Remind(waits)
			now = now.Add(time.Second)
		}
		p.Remind(nil)
		one := "still waiting for 2:\n  job.a\n      no room\n      no quota\n  job.b\n      it is running\n"
		want := "After 30s, " + one + "After 1m0s, " + one
		if live {
			want = ""
		}
		if out.String() != want {
			t.Errorf("live %v: got\n%s\nwant\n%s", live, out.String(), want)
		}
	}
}
