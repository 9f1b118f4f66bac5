package activity_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/activity"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func TestN73_TokensAreUniqueAndEndOnce(t *testing.T) {
	tracker := activity.New(activity.Config{Instance: "a"})
	one, two := tracker.Start(at(0), "m", "work", ""), tracker.Start(at(0), "m", "work", "")
	if one == two {
		t.Fatalf("both have the token %s", one)
	}
	if !tracker.End(one) || tracker.End(one) || tracker.End("unknown") {
		t.Error("want the first end to count, and neither the second nor that of an unknown token")
	}
	if tracker.Quiescent() {
		t.Error("quiescent with one activity under way")
	}
	tracker.End(two)
	if !tracker.Quiescent() {
		t.Error("not quiescent without activities")
	}
	if next := activity.New(activity.Config{Instance: "b"}).Start(at(0), "m", "work", ""); next == one {
		t.Errorf("a restarted tracker gives the token %s again", next)
	}
}

func TestN75_TokensOfDeadProcessesExpire(t *testing.T) {
	for name, dies := range map[string]func(*activity.Tracker){
		"reported dead":      func(tr *activity.Tracker) { tr.Dead("train_worker_0", "p1") },
		"its next process":   func(tr *activity.Tracker) { tr.End(tr.Start(at(1), "train_worker_0", "next", "p2")) },
		"no heartbeats":      func(tr *activity.Tracker) { tr.Expire(at(40)) },
		"its next one beats": func(tr *activity.Tracker) { tr.Beat(at(1), "train_worker_0", "p2", nil, "") },
	} {
		tracker := activity.New(activity.Config{Instance: "a"})
		tracker.Beat(at(0), "train_worker_0", "p1", nil, "")
		token := tracker.Start(at(0), "train_worker_0", "step", "p1")
		other := tracker.Start(at(0), "controller", "work", "")
		dies(tracker)
		if tracker.End(token) {
			t.Errorf("%s: the token of the dead process stands", name)
		}
		if !tracker.End(other) {
			t.Errorf("%s: the token of another process has expired", name)
		}
		late := tracker.Start(at(50), "train_worker_0", "step", "p1")
		if tracker.End(late) {
			t.Errorf("%s: the dead process begins an activity", name)
		}
	}
}

func TestAProcessThatBeatsDoesNotExpire(t *testing.T) {
	tracker := activity.New(activity.Config{Instance: "a"})
	token := tracker.Start(at(0), "m", "a long step", "p1")
	tracker.Expire(at(1000)) // it has never sent a heartbeat
	for i := range 10 {
		tracker.Beat(at(1000+29*i), "m", "p1", nil, "")
		tracker.Expire(at(1000 + 29*i + 28))
	}
	if !tracker.End(token) {
		t.Error("the activity of a live process has expired")
	}
}

func TestN76_RolloutQuiescenceIsOfRegisteredRollouts(t *testing.T) {
	tracker := activity.New(activity.Config{Instance: "a"})
	tracker.Register("rollout_worker_0", "", true)
	tracker.Register("train_worker_0", "", false)
	tracker.Start(at(0), "train_worker_0", "step", "")
	tracker.Start(at(0), "stranger", "rollout", "")
	if !tracker.RolloutQuiescent() || tracker.Quiescent() {
		t.Error("others' activities count for rollouts, or not for the run")
	}
	token := tracker.Start(at(0), "rollout_worker_0", "rollout", "")
	if tracker.RolloutQuiescent() {
		t.Error("quiescent during a rollout")
	}
	tracker.End(token)
	if !tracker.RolloutQuiescent() {
		t.Error("not quiescent after the rollout")
	}
}

// A restarted tracker does not know what goes on: it is not quiescent before it has heard of all modules.
func TestARestartedTrackerIsNotQuiescentAtOnce(t *testing.T) {
	before := activity.New(activity.Config{Instance: "a"})
	before.Register("one", "", false)
	before.Register("two", "", true)
	before.Register("idle", "", false)
	token := before.Start(at(0), "one", "step", "p1")
	before.Beat(at(0), "two", "p1", nil, "")
	before.SetStep(7)
	text, err := json.Marshal(before.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	var state activity.State
	if err := json.Unmarshal(text, &state); err != nil {
		t.Fatal(err)
	}
	tracker := activity.New(activity.Config{Instance: "b"})
	tracker.Restore(at(10), state)
	if tracker.Quiescent() || tracker.RolloutQuiescent() || tracker.Step() != 7 {
		t.Fatalf("quiescent %v, rollouts %v, step %d: want neither, and step 7", tracker.Quiescent(), tracker.RolloutQuiescent(), tracker.Step())
	}
	tracker.Beat(at(11), "one", "p1", map[string]string{token: "step"}, "")
	tracker.Expire(at(10 + 30)) // the other has been silent for so long that it does nothing
	if tracker.Quiescent() || !tracker.RolloutQuiescent() {
		t.Error("want the activity that the heartbeat has named to count, and only that")
	}
	tracker.End(token)
	if !tracker.Quiescent() {
		t.Error("not quiescent at the end")
	}
}

func TestN89_SummaryNamesModuleWorkAndAge(t *testing.T) {
	tracker := activity.New(activity.Config{Instance: "a"})
	if got := tracker.Summary(at(0)); got != "no activity is under way" {
		t.Errorf("got %q", got)
	}
	tracker.Start(at(0), "train_worker_0", "step 7", "")
	tracker.Start(at(60), "algorithm_processor_0", "batch b3", "")
	want := "2 under way:\n  train_worker_0: step 7, for 1m30s\n  algorithm_processor_0: batch b3, for 30s"
	if got := tracker.Summary(at(90)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestN78_HealthIsOfTheLastFiveMinutes(t *testing.T) {
	for _, test := range []struct {
		severities []rl.Severity
		age        int
		want       rl.Health
	}{
		{nil, 0, rl.Healthy},
		{[]rl.Severity{rl.SeverityInfo}, 0, rl.Healthy},
		{[]rl.Severity{rl.SeverityWarning, rl.SeverityInfo}, 0, rl.HealthWarning},
		{[]rl.Severity{rl.SeverityError, rl.SeverityWarning}, 299, rl.HealthError},
		{[]rl.Severity{""}, 0, rl.HealthError}, // the default
		{[]rl.Severity{rl.SeverityError}, 301, rl.Healthy},
	} {
		errors := activity.NewErrors("a", 0)
		for _, severity := range test.severities {
			errors.Report(at(0), activity.Error{Module: "m", Work: "w", Message: "boom", Severity: severity})
		}
		if got := errors.Health(at(test.age)); got.Status != test.want {
			t.Errorf("%v after %d s: %s, want %s", test.severities, test.age, got.Status, test.want)
		}
	}
}

func TestN79_TheOldestErrorGoes(t *testing.T) {
	errors := activity.NewErrors("a", 10)
	for i := range 11 {
		errors.Report(at(i), activity.Error{Message: fmt.Sprint(i)})
	}
	kept := errors.All()
	if len(kept) != 10 || kept[0].Message != "1" || kept[9].Message != "10" {
		t.Errorf("kept %d, from %q to %q; want the last 10 of 11", len(kept), kept[0].Message, kept[len(kept)-1].Message)
	}
}

func TestN92_FieldsOfHealthAndErrors(t *testing.T) {
	errors := activity.NewErrors("a", 0)
	id := errors.Report(at(0), activity.Error{
		Module: "m", Work: "w", Message: "boom", Type: "ValueError", Traceback: "Traceback …", Details: map[string]any{"k": 1}, Critical: true,
	})
	errors.Report(at(0), activity.Error{Message: "hm", Severity: rl.SeverityWarning})
	health, err := json.Marshal(errors.Health(at(0)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"status":"error"`, `"message":`, `"recent_error_count":2`, `"error_level_count":1`, `"warning_level_count":1`, `"critical_count":1`} {
		if !strings.Contains(string(health), want) {
			t.Errorf("health %s lacks %s", health, want)
		}
	}
	record, err := json.Marshal(errors.All()[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"error_id":"` + id, `"timestamp"`, `"module_name":"m"`, `"work_context":"w"`, `"severity":"error"`, `"message":"boom"`, `"details"`,
		`"exception_type":"ValueError"`, `"exception_traceback":"Traceback …"`,
	} {
		if !strings.Contains(string(record), want) {
			t.Errorf("record %s lacks %s", record, want)
		}
	}
}

// A process that dies before its first heartbeat expires, where its module sends heartbeats.
func TestN75_AProcessThatDiesBeforeItsFirstHeartbeat(t *testing.T) {
	tracker := activity.New(activity.Config{Instance: "a"})
	tracker.Beat(at(0), "train_worker_0", "p1", nil, "")
	tracker.Start(at(10), "train_worker_0", "step", "p2")
	if tracker.Expire(at(39)); tracker.Quiescent() {
		t.Error("it expires before its time")
	}
	if tracker.Expire(at(40)); !tracker.Quiescent() {
		t.Error("the activity of a dead process stands")
	}
}

// A tracker that was away does not take processes for dead that could not send it heartbeats.
func TestN75_ARestartedTrackerWaitsForHeartbeats(t *testing.T) {
	before := activity.New(activity.Config{Instance: "a"})
	before.Beat(at(0), "train_worker_0", "p1", nil, "")
	tracker := activity.New(activity.Config{Instance: "b"})
	tracker.Restore(at(100), before.Snapshot())
	if silent := tracker.Expire(at(129)); len(silent) > 0 || tracker.Quiescent() {
		t.Fatalf("%v count as dead", silent)
	}
	tracker.Beat(at(129), "train_worker_0", "p1", map[string]string{"a-1": "step"}, "")
	if tracker.Quiescent() {
		t.Error("the activity of a live process has ended")
	}
}
