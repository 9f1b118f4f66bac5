package incremental

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func withHook(timeout time.Duration) jobOption {
	return func(j *schema.Job) {
		j.BeforeStop = &schema.BeforeStop{Command: []string{"save"}, Timeout: schema.Duration(timeout), Tasks: schema.HookOnAll}
	}
}

// halted is the first assignment that stops what a slice runs, and whether the slice was
// deleted before it was carried out.
type halted struct {
	stop    schema.StopReason
	deleted bool
}

// watchStop steps until the attempt of a job has ended and its slice has gone, or the time is over.
func (w *world) watchStop(addr schema.Address, within time.Duration) (h halted, took time.Duration) {
	w.t.Helper()
	name, began := w.sliceOf(addr, 0), w.now
	for w.now.Sub(began) < within {
		p := w.step(time.Second)
		for _, a := range p.Actions {
			switch {
			case a.Slice.Name != name:
			case a.Verb == plan.DeleteSlice:
				h.deleted = true
				return h, w.now.Sub(began)
			case a.Verb == plan.Assign && a.Assignment.Run == nil && h.stop == "":
				h.stop = a.Assignment.Stop
			}
		}
	}
	return h, within
}

// A slice goes after its hosts had the time for the hook: when they have confirmed the end, when
// they are dead, and after the bound in any case.
func TestSliceWaitsForTheHook(t *testing.T) {
	a := jobAddr("a")
	for name, c := range map[string]struct {
		change   func(w *world)
		want     schema.StopReason
		low, top time.Duration
	}{
		"removed":        {func(w *world) { w.stopTakes = 20 * time.Second; w.accept(configuration()) }, schema.StopDestroy, 18 * time.Second, 40 * time.Second},
		"stopped":        {func(w *world) { w.stopTakes = 20 * time.Second; w.mark(a, func(j *state.Job) { j.Stop = true }) }, schema.StopRequest, 18 * time.Second, 40 * time.Second},
		"replaced":       {func(w *world) { w.stopTakes = 20 * time.Second; w.mark(a, func(j *state.Job) { j.Replace = true }) }, schema.StopDestroy, 18 * time.Second, 40 * time.Second},
		"never confirms": {func(w *world) { w.stopTakes = time.Hour; w.accept(configuration()) }, schema.StopDestroy, 60 * time.Second, 3 * time.Minute},
		"the host dies": {func(w *world) {
			w.stopTakes = time.Hour
			w.accept(configuration())
			w.step(time.Second)
			w.killHost(w.sliceOf(a, 0), 0)
		}, "", 0, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, configuration(newJob("a", withHook(30*time.Second))))
			c.change(w)
			h, took := w.watchStop(a, 10*time.Minute)
			if !h.deleted || took < c.low || took > c.top {
				t.Errorf("deleted %v after %s, want between %s and %s\n%s", h.deleted, took, c.low, c.top, w.describe())
			}
			if c.want != "" && h.stop != c.want {
				t.Errorf("its hosts were told %q, want %q", h.stop, c.want)
			}
		})
	}
}

// Without a hook, or with one for other stops, the slice of a removed job goes at once, as before.
func TestSliceWithoutAHookGoesAtOnce(t *testing.T) {
	a := jobAddr("a")
	for name, options := range map[string][]jobOption{
		"none": nil,
		"another": {withHook(time.Minute), func(j *schema.Job) {
			j.BeforeStop.On = []schema.StopReason{schema.StopPreemption}
		}},
	} {
		w := up(t, configuration(newJob("a", options...)))
		w.stopTakes = time.Hour
		w.accept(configuration())
		if h, took := w.watchStop(a, time.Minute); !h.deleted || took > 2*time.Second {
			t.Errorf("%s: deleted %v after %s", name, h.deleted, took)
		}
	}
}

// A preemption is one whatever the hook does: no failure is counted.
func TestHookDoesNotChangeAnOutcome(t *testing.T) {
	a := jobAddr("a")
	w := up(t, configuration(newJob("a", withHook(30*time.Second), onTPU("v5litepod-8"))))
	w.preempt(w.sliceOf(a, 0))
	w.until(5*time.Minute, "running again", func(*plan.Plan) bool { return w.job(a).Attempt == 2 && w.job(a).Ready })
	w.wantJob(a, schema.JobRunning, 2, 0, 1)
	if first := w.job(a).Attempts[0]; first.Stop != schema.StopPreemption {
		t.Errorf("the first attempt was stopped for %q", first.Stop)
	}
}

// A changed spec tells the hosts that the task begins again.
func TestChangedSpecIsARestartToHooks(t *testing.T) {
	a := jobAddr("a")
	w := up(t, configuration(newJob("a", withHook(30*time.Second))))
	w.accept(configuration(newJob("a", withHook(30*time.Second), withEnv("V", "2"))))
	w.until(time.Minute, "restarted", func(*plan.Plan) bool { return w.job(a).Attempt == 2 })
	if first := w.job(a).Attempts[0]; first.Stop != schema.StopRestart || first.StoppingSince.IsZero() {
		t.Errorf("the first attempt: %+v", first)
	}
}
