package incremental

import (
	"testing"
	"time"
)

// TestAScheduleThatIsNotReadWakesNothing: while a run's slices are deleted for a job that is replaced, the times of its
// schedule are not read, so that nothing is to be decided when the next one comes. A Planner asks to
// be called no sooner than Diff, which each step compares.
func TestAScheduleThatIsNotReadWakesNothing(t *testing.T) {
	a := jobAddr("a")
	w := scheduledWorld(t, 100*time.Second, every5())
	w.untilClock("03:06:00")
	w.deleteTakes = 20 * time.Second
	w.accept(configuration(newJob("a", every5(), onTPU("v5litepod-8"))))
	ending := 0
	for range 30 {
		w.step(time.Second)
		if len(w.job(a).Slices) == 0 {
			break
		}
		ending++
	}
	if ending < 10 {
		t.Errorf("the job has given up its slices after %d steps, want some while they are deleted", ending)
	}
}
