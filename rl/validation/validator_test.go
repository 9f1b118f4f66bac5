package validation_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/validation"
)

func TestN68_PutSucceedsAndCompleteIsQuiet(t *testing.T) {
	var v validation.Validator
	if got := v.Put(validation.Header{}); got != rl.Success {
		t.Errorf("put: %s, want success", got)
	}
	for _, test := range []struct {
		status rl.LoaderStatus
		want   bool
	}{
		{rl.LoaderStatus{}, false},
		{rl.LoaderStatus{Drained: true, Finished: true, Leased: 1}, false},
		{rl.LoaderStatus{Drained: true, Leased: 0}, false}, // locked between two batches
		{rl.LoaderStatus{Drained: true, Finished: true}, true},
	} {
		if got := validation.IsComplete(test.status); got != test.want {
			t.Errorf("%+v: complete %t, want %t", test.status, got, test.want)
		}
	}
}

func TestN69_MeansOfScores(t *testing.T) {
	var v validation.Validator
	put := func(task, source string, scores map[string]any) {
		v.Put(validation.HeaderOf(map[string]any{"task_id": task, "data_source": source, "scores": scores, "fields": []any{"score"}}))
	}
	put("0/0/0", "math", map[string]any{"reward": 1.0, "exact": int64(1), "note": "good", "ok": true, "bad": math.NaN()})
	put("0/1/0", "code", map[string]any{"reward": 0.5})
	put("0/2/0", "", map[string]any{"reward": 0.0})
	put("0/2/0", "", map[string]any{"reward": 9.0}) // from a second worker
	got, err := v.Metrics()
	want := map[string]float64{
		"val/num_samples": 3, "val/reward": 0.5, "val/exact": 1, "val/math/reward": 1, "val/math/exact": 1, "val/code/reward": 0.5,
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, metrics (-want +got):\n%s", err, diff)
	}
}

func TestN70_EmptyValidationIsAnError(t *testing.T) {
	var v validation.Validator
	if _, err := v.Metrics(); !errors.Is(err, validation.ErrNoTrajectories) {
		t.Errorf("got %v, want ErrNoTrajectories", err)
	}
	v.Put(validation.Header{TaskID: "0/0/0", Scores: map[string]float64{"reward": 1}})
	if _, err := v.Metrics(); err != nil || v.Len() != 0 {
		t.Errorf("%v, %d trajectories; want that computing clears them", err, v.Len())
	}
	v.Put(validation.Header{TaskID: "0/0/0"}) // of the next validation
	if v.Len() != 1 {
		t.Errorf("%d trajectories, want that of the next validation", v.Len())
	}
}
