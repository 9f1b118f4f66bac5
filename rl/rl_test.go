package rl_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/rl"
)

func TestParseNamesWhatIsAllowed(t *testing.T) {
	if got, err := rl.ParseReadiness("batch_size"); got != rl.BatchSizeReached || err != nil {
		t.Errorf("batch_size is %q, %v; want another name of batch_size_reached", got, err)
	}
	_, err := rl.ParseSyncMode("asink")
	if unknown := (*rl.UnknownError)(nil); !errors.As(err, &unknown) || unknown.Got != "asink" || len(unknown.Want) != 3 {
		t.Errorf("got %v, want an UnknownError that names three modes", err)
	}
	for _, role := range rl.Roles() {
		if got, err := rl.ParseRole(string(role)); got != role || err != nil {
			t.Errorf("%s is read as %q, %v", role, got, err)
		}
	}
}

func TestActorNames(t *testing.T) {
	for _, test := range []struct {
		role         rl.Role
		index, count int
		want         string
	}{
		{rl.RolloutWorker, 0, 1, "rollout_worker_0"},
		{rl.TrajectoryPool, 0, 1, "trajectory_pool"},
		{rl.TrajectoryPool, 3, 4, "trajectory_pool_3"},
		{rl.DataLoader, 0, 1, "data_loader"},
	} {
		if got := rl.ActorName(test.role, test.index, test.count); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

// A header is the same by the codec of calls and by JSON, where the journal has it.
func TestHeaderIsCarried(t *testing.T) {
	hot, version := 0.5, int64(0)
	want := rl.Header{
		Keys: map[string]any{"group_id": "g", "run": int64(7)}, Fields: []string{"prompt", "response"}, Scores: map[string]float64{"reward": 1},
		TaskID: rl.TaskID(0, 3, 1), Temperature: &hot, Version: &version,
	}
	data, buffers, err := codec.EncodeResult(codec.Msgpack, want)
	if err != nil {
		t.Fatal(err)
	}
	var got rl.Header
	if err := codec.DecodeResult(codec.Msgpack, data, buffers, codec.DefaultMemory, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("by the codec (-want +got):\n%s", diff)
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got = rl.Header{}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("by JSON (-want +got):\n%s", diff)
	}
}
