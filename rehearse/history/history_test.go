package history

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// tape makes events, minutes after it began.
type tape []state.Event

func (t *tape) at(minute int, job, slice string, of state.SliceEvent) {
	addr, err := schema.ParseAddress(job)
	if err != nil {
		panic(err)
	}
	at := time.Date(2026, time.May, 4, 9, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute)
	*t = append(*t, state.Event{At: at, Kind: state.EventSlice, Addr: addr, Slice: slice, Of: &of})
}

// west is a change of a slice in one zone.
func west(change state.SliceChange) state.SliceEvent {
	return state.SliceEvent{Change: change, Zone: "us-west4-a", Type: "v5litepod-16", Preemptible: true}
}

func recorded() []state.Event {
	var t tape
	going := func(cause state.Cause) state.SliceEvent { e := west(state.ChangeGoing); e.Cause = cause; return e }
	short := west(state.ChangeFailed)
	short.Failed = schema.ErrorCapacity
	t.at(0, `job.train["a"]`, "s1", west(state.ChangeAsked))
	t.at(5, `job.train["a"]`, "s1", west(state.ChangeUp))
	t.at(60, `job.train["a"]`, "s1", going(state.CauseNotice))
	t.at(62, `job.train["a"]`, "s1", west(state.ChangeGone))
	t.at(62, `job.train["a"]`, "s2", west(state.ChangeAsked))
	t.at(63, `job.train["a"]`, "s2", short)
	t.at(90, `job.train["a"]`, "s2", short)
	t.at(120, `job.train["a"]`, "s2", west(state.ChangeAsked))
	t.at(127, `job.train["a"]`, "s2", west(state.ChangeUp))
	t.at(180, `job.train["a"]`, "s2", going(state.CauseHostLost))
	t.at(200, "job.other", "s3", going(state.CauseJobRemoved)) // its owner's doing
	t.at(240, "job.other", "s4", going(state.CausePreempted))
	return append([]state.Event{{Kind: state.EventLease, Text: "a controller leads"}}, t...)
}

func TestHistory(t *testing.T) {
	h, err := Of(recorded())
	if err != nil {
		t.Fatal(err)
	}
	train := schema.Address{Kind: schema.KindJob, Name: "train", Key: schema.StringKey("a")}
	want := &History{
		From: h.From, To: h.From.Add(4 * time.Hour),
		Losses: []Loss{
			{At: time.Hour, Job: train, Zone: "us-west4-a", Type: "v5litepod"},
			{At: 3 * time.Hour, Job: train, Zone: "us-west4-a", Type: "v5litepod", Host: true},
			{At: 4 * time.Hour, Job: schema.Address{Kind: schema.KindJob, Name: "other"}, Zone: "us-west4-a", Type: "v5litepod", Silent: true},
		},
		Stockouts: []Stockout{{Zone: "us-west4-a", Type: "v5litepod", From: time.Hour, To: 2 * time.Hour}},
		Zones: []Zone{{
			Name: "us-west4-a", Creation: Span{Low: 5 * time.Minute, High: 5 * time.Minute}, Deletion: Span{Low: 2 * time.Minute, High: 2 * time.Minute},
		}},
	}
	compare := []cmp.Option{cmp.Comparer(func(a, b schema.Address) bool { return a == b }), cmpopts.IgnoreUnexported(Zone{})}
	if diff := cmp.Diff(want, h, compare...); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What is written is a scenario that says the same.
func TestScenarioOfAHistory(t *testing.T) {
	h, err := Of(recorded())
	if err != nil {
		t.Fatal(err)
	}
	s, diags := cloud.ParseScenario(h.Scenario(), "history.hcl")
	if diags.HasErrors() {
		t.Fatalf("%v\n%s", diags, h.Scenario())
	}
	var targets []string
	for _, e := range s.Events {
		targets = append(targets, e.Target)
	}
	if diff := cmp.Diff([]string{`job.train["a"]/0`, `job.train["a"]/0`, "job.other/0"}, targets); diff != "" {
		t.Errorf("targets (-want +got)\n%s", diff)
	}
	if w := (cloud.Window{Zone: "us-west4-a", Type: "v5litepod", From: time.Hour, To: 2 * time.Hour}); len(s.Stockouts) != 1 || s.Stockouts[0] != w {
		t.Errorf("stockouts %v, want %v", s.Stockouts, w)
	}
	if z := s.Zones; len(z) != 1 || z[0].Conditions.Provisioning != (cloud.Range{Min: 5 * time.Minute, Max: 5 * time.Minute}) {
		t.Errorf("zones %+v", z)
	}
	if !s.Events[2].Silent || s.Events[1].Action != cloud.ActionKillHost {
		t.Errorf("events %+v", s.Events)
	}
}

// Events of an older fray tell nothing.
func TestNoHistory(t *testing.T) {
	if _, err := Of([]state.Event{{Kind: state.EventSlice, Slice: "s", Text: "is up"}}); !errors.Is(err, ErrNothing) {
		t.Errorf("got %v, want %v", err, ErrNothing)
	}
}

// TestFamily: what a scenario calls the types that events record.
func TestFamily(t *testing.T) {
	for kind, want := range map[string]string{"v5litepod-16": "v5litepod", "n2-standard-8": "n2", "h100:8": "h100", "a100-80gb:1": "a100-80gb"} {
		if got := family(kind); got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
}
