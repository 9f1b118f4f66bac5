package apply_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Changes between two steps are recorded too: by the client that accepts a
// configuration or launches something, and by actions that fail.
func TestEventsOfWhatHappensBetweenSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		failures := 1
		w.fail = func(verb, _ string) error {
			if verb == "create" && failures > 0 {
				failures--
				return errors.New("no capacity today")
			}
			return nil
		}
		cfg := w.config()
		cfg.Events = true
		s := newStepper(t, cfg)
		accept(t, s, jobs(1))
		converge(t, s)
		child := jobs(1).Jobs[0]
		child.Addr = schema.LaunchedAddress(schema.KindJob, "default", "", "child")
		launched, err := launch.Launched(s.Document(), []launch.Launching{{Job: &child, Launch: state.Launch{Name: "child", By: "ada"}}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Accept(t.Context(), launched); err != nil {
			t.Fatal(err)
		}
		converge(t, s)
		if err := s.Save(t.Context()); err != nil {
			t.Fatal(err)
		}
		events, err := (&store.EventReader{Store: w}).Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []struct {
			kind state.EventKind
			addr schema.Address
			text string
		}{
			{state.EventConfig, schema.Address{}, "revision 1 was accepted"},
			{state.EventLaunched, child.Addr, "was launched: ada"},
			{state.EventSlice, jobs(1).Jobs[0].Addr, "no capacity today"},
		} {
			n := 0
			for _, e := range events {
				if e.Kind == want.kind && e.Addr == want.addr && e.Text == want.text {
					n++
				}
			}
			if n != 1 {
				t.Errorf("event %q of kind %s is told %d times, want once; there are:\n%v", want.text, want.kind, n, events)
			}
		}
	})
}

// An observer knows what it observed, also before any action.
func TestLookKnowsWhatIsWanted(t *testing.T) {
	w := newWorld()
	s := newStepper(t, w.config())
	accept(t, s, jobs(2))
	if _, err := s.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	desired := s.DesiredWithLaunched()
	if desired == nil || len(desired.Jobs) != 2 {
		t.Fatalf("after a look, %+v is wanted; want the two jobs that are declared", desired)
	}
	child := jobs(1).Jobs[0]
	child.Addr = schema.LaunchedAddress(schema.KindJob, "default", "", "child")
	launched, err := launch.Launched(s.Document(), []launch.Launching{{Job: &child}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Accept(t.Context(), launched); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(s.DesiredWithLaunched().Jobs, func(j schema.Job) bool { return j.Addr == child.Addr }) {
		t.Errorf("what was launched since is not wanted: %v", s.DesiredWithLaunched().Jobs)
	}
}
