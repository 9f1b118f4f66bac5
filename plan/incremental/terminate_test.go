package incremental

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestTerminated(t *testing.T) {
	of := func(c state.Cause) state.Termination { return state.Termination{Cause: c, Text: "first: " + string(c)} }
	for name, c := range map[string]struct {
		was, later state.Cause
		want       state.Cause // the one that is shown
		decision   state.Cause // the one that decisions read
	}{
		"a first cause":                      {state.CauseNone, state.CauseIdle, state.CauseIdle, state.CauseIdle},
		"a preemption after a decision":      {state.CauseUnused, state.CausePreempted, state.CausePreempted, state.CauseUnused},
		"a decision after a preemption":      {state.CausePreempted, state.CauseMoved, state.CausePreempted, state.CauseMoved},
		"a bad host after a decision":        {state.CauseEnded, state.CauseHostBad, state.CauseHostBad, state.CauseEnded},
		"notice after a decision":            {state.CauseIdle, state.CauseNotice, state.CauseNotice, state.CauseIdle},
		"silence that a deletion leads to":   {state.CauseStopped, state.CauseHostLost, state.CauseStopped, state.CauseStopped},
		"death that a deletion leads to":     {state.CauseStopped, state.CauseDead, state.CauseStopped, state.CauseStopped},
		"silence before a decision":          {state.CauseHostLost, state.CauseStopped, state.CauseHostLost, state.CauseStopped},
		"death explains silence":             {state.CauseHostLost, state.CauseDead, state.CauseDead, state.CauseNone},
		"a preemption explains death":        {state.CauseDead, state.CausePreempted, state.CausePreempted, state.CauseNone},
		"silence after death":                {state.CauseDead, state.CauseHostLost, state.CauseDead, state.CauseNone},
		"a removed job over one that idles":  {state.CauseIdle, state.CauseJobRemoved, state.CauseJobRemoved, state.CauseJobRemoved},
		"nothing uses what was let go":       {state.CauseIdle, state.CauseUnused, state.CauseIdle, state.CauseIdle},
		"nothing uses what made room":        {state.CauseMakesRoom, state.CauseUnneeded, state.CauseMakesRoom, state.CauseMakesRoom},
		"moved while it was replaced":        {state.CauseReplaced, state.CauseMoved, state.CauseMoved, state.CauseMoved},
		"not needed in its new shape either": {state.CauseReshaped, state.CauseUnneeded, state.CauseUnneeded, state.CauseUnneeded},
		"what an older fray recorded":        {state.CauseUnknown, state.CauseUnused, state.CauseUnused, state.CauseUnused},
		"an older record teaches nothing":    {state.CauseUnused, state.CauseUnknown, state.CauseUnused, state.CauseUnused},
	} {
		t.Run(name, func(t *testing.T) {
			got := lifecycle.Terminated(of(c.was), of(c.later))
			if got.Cause != c.want || got.Decided() != c.decision || got.Text != "first: "+string(c.want) {
				t.Errorf("got %+v, want %q with its text, decided %q", got, c.want, c.decision)
			}
		})
	}
}

// Whatever comes when: a cause that counts less never changes what is recorded, the
// same again changes nothing, and no decision is lost but to a weightier one.
func TestTerminatedSettles(t *testing.T) {
	all := append(state.Causes(), state.CauseNone)
	of := func(c state.Cause) state.Termination { return state.Termination{Cause: c, Text: string(c)} }
	if got := lifecycle.Terminated(state.Termination{}, state.Termination{}); got != (state.Termination{}) {
		t.Errorf("of nothing comes %+v", got)
	}
	for _, a := range all {
		for _, b := range all {
			both := lifecycle.Terminated(of(a), of(b))
			if again := lifecycle.Terminated(both, of(b)); again != both {
				t.Errorf("%q, then %q twice: got %+v, then %+v", a, b, both, again)
			}
			if back := lifecycle.Terminated(both, of(a)); back != both && !lifecycle.FollowsDeletion(a) {
				t.Errorf("%q, %q, and %q again: got %+v, then %+v", a, b, a, both, back)
			}
			if text := string(both.Cause); both.Text != text {
				t.Errorf("%q, then %q: the text is %q, want that of the cause %q", a, b, both.Text, text)
			}
			for _, c := range []state.Cause{a, b} {
				if c.IsDecision() && lifecycle.Rank(both.Decided()) > lifecycle.Rank(c) {
					t.Errorf("%q, then %q: decided is %q", a, b, both.Decided())
				}
			}
			if both.Cause.IsDecision() && both.Decision != state.CauseNone {
				t.Errorf("%q, then %q: %+v has its decision twice", a, b, both)
			}
		}
	}
}

// Every decision has its text, and facts have none of their own.
func TestDecisionText(t *testing.T) {
	for _, c := range state.Causes() {
		if has := change.DecisionText(c) != ""; has != c.IsDecision() {
			t.Errorf("%s: has a text: %t, want %t", c, has, c.IsDecision())
		}
	}
}

// A slice that died before its job was replaced no more ties the group to its zone
// than one that lived: a first text hid the decision.
func TestZoneIsLeftByAReplacedJobWhoseSliceDied(t *testing.T) {
	for name, dies := range map[string]bool{"alive": false, "dead": true} {
		t.Run(name, func(t *testing.T) {
			w := newCloud(t, nil)
			a := jobAddr("a")
			w.accept(zoned(configuration(newJob("a", inCloud)), west, central))
			w.settle(time.Minute)
			w.deleteTakes = time.Hour
			slice := w.sliceOf(a, 0)
			if dies {
				w.preempt(slice)
				w.until(time.Minute, "being deleted", func(*plan.Plan) bool { return !w.doc.Slices[slice].Terminating.IsZero() })
			}
			w.accept(zoned(configuration(newJob("a", inCloud, onTPU("v5litepod-4"))), west, central))
			w.until(time.Minute, "replaced", func(*plan.Plan) bool { return w.doc.Slices[slice].Terminating.Decided() == state.CauseReplaced })
			d := lifecycle.Begin(snapshot.Take(snapshot.Input{Desired: &schema.Desired{}, Doc: w.doc, Obs: &plan.Observed{}, Now: w.now}))
			if zone := d.ZoneHeld(a); zone != "" {
				t.Errorf("its group is tied to %s, where it is not to stay", zone)
			}
			if dies && w.doc.Slices[slice].Terminating.Cause != state.CausePreempted {
				t.Errorf("people read %q, want that it was preempted", w.doc.Slices[slice].Terminating.Text)
			}
		})
	}
}
