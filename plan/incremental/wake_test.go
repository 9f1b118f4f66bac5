package incremental

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// Wake must be enough: a controller that sleeps until then misses nothing that
// time alone brings.
func TestWakeIsWhenTimeChangesSomething(t *testing.T) {
	a := jobAddr("a")
	for name, c := range map[string]struct {
		setUp func() *world
		want  time.Duration
	}{
		"backoff": {func() *world {
			w := up(t, configuration(newJob("a", failures(9))))
			w.fail(w.sliceOf(a, 0), 0, 1) // the first one is retried at once
			w.until(time.Minute, "running again", func(*plan.Plan) bool { return w.job(a).Attempt == 2 && w.job(a).Ready })
			w.fail(w.sliceOf(a, 0), 0, 1)
			w.until(time.Minute, "waiting", func(*plan.Plan) bool { return w.job(a).RetryAt.After(w.now) })
			return w
		}, time.Second},
		"silent host": {func() *world { return up(t, configuration(newJob("a"))) }, snapshot.HostTimeout},
		"boot": {func() *world {
			w := newWorld(t)
			w.bootTakes = 24 * time.Hour
			w.accept(configuration(newJob("a")))
			w.step(time.Millisecond)
			return w
		}, plan.BootTimeout},
		"refused creation": {func() *world {
			w := newWorld(t)
			w.capacity = 1
			w.accept(configuration(newJob("a")))
			w.step(time.Millisecond)
			return w
		}, time.Second},
	} {
		w := c.setUp()
		p := reconcile.Diff(&w.doc.Desired, w.doc, w.observe(), w.now)
		if got := p.Wake.Sub(w.now); got <= 0 || got > c.want {
			t.Errorf("%s: got %s, want within %s", name, got, c.want)
		}
	}
	w := newWorld(t)
	w.accept(schema.Desired{})
	if p := w.step(time.Second); !p.Wake.IsZero() {
		t.Errorf("nothing declared: got %s, want never", p.Wake)
	}
}
