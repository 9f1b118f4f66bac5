package roles_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/loader"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/rl/source"
	"github.com/fray-ml/fray/rl/validation"
)

// logged are the metrics that were logged.
type logged struct {
	metrics []map[string]float64
	err     error
}

func (l *logged) LogMetrics(_ context.Context, measured validation.Measured) error {
	if l.err == nil {
		l.metrics = append(l.metrics, measured.Metrics)
	}
	return l.err
}

func TestN68_N69_N70_Validation(t *testing.T) {
	dir := t.TempDir()
	from := newLoader(t, loader.Config{Route: rl.RouteValidate}, source.Mock(2))
	metrics := &logged{}
	open := func() (*roles.Validator, *journal.Journal) {
		j, records, err := journal.OpenDir(t.Context(), journal.DirConfig{Path: dir, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		v, err := roles.NewValidator(roles.ValidatorConfig{Loader: direct{from}, Metrics: metrics, Journal: j, Records: records})
		if err != nil {
			t.Fatal(err)
		}
		return v, j
	}
	v, j := open()
	h := serve(t, map[string]any{"validator": v}).actor(t, "validator")
	if _, err := actorrpc.Call[any](t.Context(), h, "compute_and_log_metrics"); err == nil {
		t.Error("metrics of no trajectories, want an error")
	}
	for _, reward := range []float64{1, 0} {
		if call[bool](t, h, "is_complete") {
			t.Error("complete before all tasks are")
		}
		task, err := from.GetNextItem("w", "1")
		if err != nil {
			t.Fatal(err)
		}
		header := map[string]any{"task_id": task.Lease.TaskID, "lease": task.Lease.ID, "fields": []string{"score"}, "scores": map[string]any{"reward": reward, "note": "no number"}}
		if got := call[string](t, h, "put_trajectory", header, []byte("payload")); got != "success" {
			t.Errorf("put: %s, want success", got)
		}
		if call[bool](t, h, "is_complete") {
			t.Error("complete while a task is leased")
		}
		if _, err := from.Complete(task.Lease.ID, "success"); err != nil {
			t.Fatal(err)
		}
	}
	if !call[bool](t, h, "is_complete") {
		t.Error("not complete after all tasks are")
	}
	if err := j.Close(); err != nil { // the validator dies, and continues its journal
		t.Fatal(err)
	}
	v, j = open()
	defer func() { _ = j.Close() }()
	metrics.err = errors.New("no logger")
	if _, err := v.ComputeAndLogMetrics(t.Context()); err == nil {
		t.Error("metrics that could not be logged, want an error")
	}
	metrics.err = nil
	got, err := v.ComputeAndLogMetrics(t.Context())
	want := map[string]float64{"val/reward": 0.5, "val/num_samples": 2}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, metrics (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]map[string]float64{want}, metrics.metrics); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
	if _, err := v.ComputeAndLogMetrics(t.Context()); err == nil {
		t.Error("computing has not cleared the trajectories")
	}
}

// A validation whose answer was lost has the same metrics when it is asked for again: while they are logged, afterwards, and
// by the validator's next process. What is put meanwhile is not lost.
func TestALostAnswerOfAValidation(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { testLostAnswer(t, dir) })
}

func testLostAnswer(t *testing.T, dir string) {
	metrics := &held{open: make(chan struct{}), asked: make(chan struct{}, 9)}
	open := func() (*roles.Validator, *journal.Journal) {
		j, records, err := journal.OpenDir(t.Context(), journal.DirConfig{Path: dir, NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		v, err := roles.NewValidator(roles.ValidatorConfig{Metrics: metrics, Journal: j, Records: records})
		if err != nil {
			t.Fatal(err)
		}
		return v, j
	}
	put := func(v *roles.Validator, task string, reward float64) {
		if _, err := v.PutTrajectory(map[string]any{"task_id": task, "scores": map[string]any{"reward": reward}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	v, j := open()
	put(v, "0/0/0", 1)
	answers := make(chan map[string]float64, 2)
	measure := func() {
		got, err := v.ComputeAndLogMetrics(t.Context(), "0/0")
		if err != nil {
			t.Error(err)
		}
		answers <- got
	}
	go measure()
	<-metrics.asked
	go measure() // its caller has lost the connection of the first
	put(v, "0/1/0", 0)
	synctest.Wait()
	close(metrics.open)
	first, second := <-answers, <-answers
	if first["val/reward"] != 1 || cmp.Diff(first, second) != "" || len(metrics.logged) != 1 {
		t.Errorf("metrics %v and %v, logged %d times; want the same, of the first trajectory, once", first, second, len(metrics.logged))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	v, j = open()
	defer func() { _ = j.Close() }()
	again, err := v.ComputeAndLogMetrics(t.Context(), "0/0")
	if err != nil || cmp.Diff(first, again) != "" {
		t.Errorf("after a restart %v, %v; want %v", again, err, first)
	}
	next, err := v.ComputeAndLogMetrics(t.Context(), "0/1")
	if err != nil || next["val/reward"] != 0 || next["val/num_samples"] != 1 {
		t.Errorf("the next validation has %v, %v; want what was put while the first was logged", next, err)
	}
}

// held logs once it is opened.
type held struct {
	open, asked chan struct{}
	logged      []map[string]float64
}

func (h *held) LogMetrics(_ context.Context, measured validation.Measured) error {
	h.asked <- struct{}{}
	<-h.open
	h.logged = append(h.logged, measured.Metrics)
	return nil
}
