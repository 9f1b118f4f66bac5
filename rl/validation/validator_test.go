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
	got, err := settle(&v, "")
	want := map[string]float64{
		"val/num_samples": 3, "val/reward": 0.5, "val/exact": 1, "val/math/reward": 1, "val/math/exact": 1, "val/code/reward": 0.5,
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, metrics (-want +got):\n%s", err, diff)
	}
}

// settle measures a validation and ends it.
func settle(v *validation.Validator, id string) (map[string]float64, error) {
	m, isSettled, err := v.Measure(id)
	if err == nil && !isSettled {
		v.Settle(m)
	}
	return m.Metrics, err
}

func TestN70_EmptyValidationIsAnError(t *testing.T) {
	var v validation.Validator
	if _, err := settle(&v, ""); !errors.Is(err, validation.ErrNoTrajectories) {
		t.Errorf("got %v, want ErrNoTrajectories", err)
	}
	v.Put(validation.Header{TaskID: "0/0/0", Scores: map[string]float64{"reward": 1}})
	if _, err := settle(&v, ""); err != nil || v.Len() != 0 {
		t.Errorf("%v, %d trajectories; want that computing clears them", err, v.Len())
	}
	v.Put(validation.Header{TaskID: "0/0/0"}) // of the next validation
	if v.Len() != 1 {
		t.Errorf("%d trajectories, want that of the next validation", v.Len())
	}
}

// A validation that is measured again by its name has its metrics, whatever was put since; that belongs to the next one.
func TestAMeasuredValidationHasItsMetricsAgain(t *testing.T) {
	var v validation.Validator
	put := func(task string, reward float64) {
		v.Put(validation.Header{TaskID: task, Scores: map[string]float64{"reward": reward}})
	}
	put("0/0/0", 1)
	measured, _, err := v.Measure("first")
	if err != nil || v.Len() != 1 {
		t.Fatalf("%v, %d trajectories; want that measuring changes nothing", err, v.Len())
	}
	put("0/1/0", 0) // while the metrics are logged
	v.Settle(measured)
	for range 2 {
		if got, err := settle(&v, "first"); err != nil || got["val/reward"] != 1 || v.Len() != 1 {
			t.Errorf("measured again: %v, %v, and %d trajectories wait; want reward 1, and that put since", got, err, v.Len())
		}
	}
	var restored validation.Validator
	restored.Restore(v.Snapshot())
	if got, err := settle(&restored, "first"); err != nil || got["val/reward"] != 1 {
		t.Errorf("after a restart: %v, %v", got, err)
	}
	if got, err := settle(&v, "second"); err != nil || got["val/reward"] != 0 || got["val/num_samples"] != 1 {
		t.Errorf("the next one: %v, %v; want reward 0 of one sample", got, err)
	}
	v.Clear()
	if _, err := settle(&v, "second"); !errors.Is(err, validation.ErrNoTrajectories) {
		t.Errorf("after Clear: %v, want ErrNoTrajectories", err)
	}
}

// What comes of a lease that has been given to another worker, or of a former validation, does not displace what came of
// a later lease.
func TestTheLatestLeaseCounts(t *testing.T) {
	for _, test := range []struct {
		leases []string
		want   float64 // which of them counts
	}{
		{[]string{"validate/a/0/9", "validate/a/0/10"}, 1},
		{[]string{"validate/a/0/10", "validate/a/0/9"}, 0},
		{[]string{"validate/a/0/9", "validate/b/0/10"}, 0}, // of two loaders: the first
		{[]string{"", "validate/a/0/1"}, 0},
		{[]string{"cafe-1", "cafe-2"}, 1}, // of a loader in Python
	} {
		var v validation.Validator
		for i, lease := range test.leases {
			v.Put(validation.HeaderOf(map[string]any{"task_id": "0/0/0", "lease": lease, "scores": map[string]any{"reward": float64(i)}}))
		}
		if got, err := settle(&v, ""); err != nil || got["val/reward"] != test.want || got["val/num_samples"] != 1 {
			t.Errorf("%q: %v, %v; want that of lease %v", test.leases, got, err, test.want)
		}
	}
}
