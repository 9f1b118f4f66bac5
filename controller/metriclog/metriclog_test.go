package metriclog

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fray-ml/fray/curves"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// written is a log, which is read by few bytes at a time.
type written struct {
	text  string
	reads int
}

func (w *written) read(_ context.Context, _ string, _ int, from int64) (store.LogPart, error) {
	w.reads++
	if from < 0 {
		from = max(0, int64(len(w.text))+from)
	}
	return store.LogPart{Data: []byte(w.text[from:min(len(w.text), int(from)+1<<16)]), Offset: from}, nil
}

func pointsOf(t *testing.T, r *Reader, job *state.Job) []curves.Point {
	t.Helper()
	var points []curves.Point
	if err := r.Of(t.Context(), job, func(set *curves.Set) { points = set.Points("loss") }); err != nil {
		t.Fatal(err)
	}
	return points
}

// Of a long log the last part is read, without the line that is cut.
func TestLongLogs(t *testing.T) {
	log := &written{text: "step 0  loss 7\n" + strings.Repeat("x", most-20) + "step 1  loss 8\nstep 2  loss 9\n"}
	r := &Reader{Read: log.read}
	job := &state.Job{ID: "a", Attempts: []state.Attempt{{Number: 1}}}
	if got, want := fmt.Sprint(pointsOf(t, r, job)), "[{2 9}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	log.text += "step 3  loss"
	pointsOf(t, r, job)
	log.text += " 10\n"
	if got, want := fmt.Sprint(pointsOf(t, r, job)), "[{2 9} {3 10}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A log is not read for ever once its attempt has ended, and few jobs are kept.
func TestWhatIsKeptIsBounded(t *testing.T) {
	log := &written{text: "step 1  loss 8\n"}
	r := &Reader{Read: log.read}
	job := &state.Job{ID: "a", Attempts: []state.Attempt{{Number: 1, Outcome: schema.TaskSucceeded}}}
	for range 10 * settled {
		pointsOf(t, r, job)
	}
	if log.reads != settled+1 {
		t.Errorf("got %d reads, want %d", log.reads, settled+1)
	}
	for i := range 3 * keptJobs {
		r.of(fmt.Sprint(i))
		r.of("always")
	}
	if len(r.jobs) != keptJobs || r.jobs[keptJobs-1].id != "always" {
		t.Errorf("got %d jobs, the last one %q", len(r.jobs), r.jobs[len(r.jobs)-1].id)
	}
}
