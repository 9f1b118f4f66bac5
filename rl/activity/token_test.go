package activity_test

import (
	"testing"

	"github.com/fray-ml/fray/rl/activity"
)

// A process that chooses its tokens, and does not get an answer, leaves no activity behind: a start that it repeats is one,
// and one that it gave up, or whose end was lost, ends with its next heartbeat.
func TestTokensOfAProcessThatLosesAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		do    func(tr *activity.Tracker)
		quiet bool
	}{
		"a repeated start ends once": {func(tr *activity.Tracker) {
			tr.StartAs(at(0), "p-1", "m", "work", "1")
			tr.StartAs(at(0), "p-1", "m", "work", "1")
			tr.End("p-1")
		}, true},
		"a start that is given up": {func(tr *activity.Tracker) {
			tr.StartAs(at(0), "p-1", "m", "work", "1")
			tr.Beat(at(1), "m", "1", nil, "p-2")
		}, true},
		"a start that comes after it was given up": {func(tr *activity.Tracker) {
			tr.Beat(at(1), "m", "1", nil, "p-2")
			tr.StartAs(at(1), "p-1", "m", "work", "1")
		}, true},
		"one that begins as the heartbeat is sent": {func(tr *activity.Tracker) {
			tr.StartAs(at(0), "p-1", "m", "work", "1")
			tr.Beat(at(1), "m", "1", nil, "p-1")
		}, false},
		"one that the heartbeat lists before it is started": {func(tr *activity.Tracker) {
			tr.Beat(at(1), "m", "1", map[string]string{"p-1": "work"}, "p-2")
			tr.StartAs(at(1), "p-1", "m", "work", "1")
			tr.Beat(at(2), "m", "1", map[string]string{"p-1": "work"}, "p-2")
		}, false},
		"its end": {func(tr *activity.Tracker) {
			tr.Beat(at(1), "m", "1", map[string]string{"p-1": "work"}, "p-2")
			tr.StartAs(at(1), "p-1", "m", "work", "1")
			tr.End("p-1")
		}, true},
		"a heartbeat that its end has overtaken": {func(tr *activity.Tracker) {
			tr.Beat(at(0), "m", "1", nil, "p-1")
			tr.StartAs(at(0), "p-1", "m", "work", "1")
			tr.End("p-1")
			tr.Beat(at(1), "m", "1", map[string]string{"p-1": "work"}, "p-2")
		}, true},
		"a heartbeat that a later one has overtaken": {func(tr *activity.Tracker) {
			tr.Beat(at(2), "m", "1", nil, "p-3")
			tr.Beat(at(2), "m", "1", map[string]string{"p-1": "work"}, "p-2")
		}, true},
		"a heartbeat of another module of the process": {func(tr *activity.Tracker) {
			tr.StartAs(at(0), "p-1", "m", "work", "1")
			tr.Beat(at(1), "other", "1", nil, "p-2")
		}, false},
		"a heartbeat after a restart of the tracker": {func(tr *activity.Tracker) {
			tr.Beat(at(1), "m", "1", map[string]string{"p-7": "work"}, "p-9")
			tr.StartAs(at(1), "p-8", "m", "work", "1") // it had ended before the restart
			tr.Beat(at(2), "m", "1", map[string]string{"p-7": "work"}, "p-9")
		}, false},
		"a module that does not choose": {func(tr *activity.Tracker) {
			tr.Start(at(0), "m", "work", "1")
			tr.Beat(at(1), "m", "1", nil, "p-2")
		}, false},
	} {
		tracker := activity.New(activity.Config{Instance: "a"})
		test.do(tracker)
		if got := tracker.Quiescent(); got != test.quiet {
			t.Errorf("%s: quiescent %t, want %t", name, got, test.quiet)
		}
		if n := len(tracker.Running()); n > 1 {
			t.Errorf("%s: %d activities", name, n)
		}
	}
}
