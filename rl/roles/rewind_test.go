package roles_test

import (
	"slices"
	"testing"
)

// rewound is a run under recovery "checkpoint", with one of its roles in a process of its own.
func rewound(t *testing.T, victim string) (s *stage, stop func() error, ended <-chan error) {
	t.Helper()
	s = newStage(t, document(t, t.TempDir(), map[string]any{
		"recovery": "checkpoint", "train_worker": map[string]any{"total_train_steps": 6, "save_freq": 2},
	}))
	s.workers(2)
	others := slices.DeleteFunc(goRoles(), func(role string) bool { return role == victim })
	_, ended = s.serve(others...)
	stop, _ = s.serve(victim)
	return s, stop, ended
}

func (s *stage) status() map[string]any {
	s.t.Helper()
	status, err := s.peers.Call(s.t.Context(), "controller", "status")
	if err != nil {
		s.t.Fatal(err)
	}
	return status.(map[string]any)
}

// Under recovery "checkpoint" the loss of a stateful role leads all back to the last checkpoint, in the next epoch. From there each
// update is made of one whole batch, by the weights of the step before, and each task is used once.
func TestALostRoleRewindsTheRun(t *testing.T) {
	for _, victim := range []string{"data_loader", "trajectory_pool", "train_batch_pool", "weight_sync_controller"} {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			s, stop, ended := rewound(t, victim)
			s.until("a checkpoint", func(m *model) bool { return m.step == 3 })
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			s.serve(victim)
			s.until("the checkpoint to be loaded", func(m *model) bool { return m.loaded != "" })
			s.wait(ended)
			s.check(6)
			if end := s.recordedEnd(); end.Step != 6 {
				t.Errorf("the recorded end is %+v", end)
			}
		})
	}
}

// What has an older epoch is dropped, as its task comes again, and does not stand for that.
func TestATrajectoryOfBeforeTheRewindIsNotTaken(t *testing.T) {
	s := newStage(t, document(t, t.TempDir(), nil))
	s.serve("data_loader", "trajectory_pool", "train_batch_pool", "weight_sync_controller")
	put := func(epoch int) any {
		t.Helper()
		header := map[string]any{"keys": map[string]any{"group_id": "g"}, "task_id": "0/0/0", "epoch": epoch, "fields": []string{"prompt"}}
		outcome, err := s.peers.Call(t.Context(), "trajectory_pool", "put_trajectory", header, []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		return outcome
	}
	if outcome := put(0); outcome != "success" {
		t.Fatalf("before the rewind: %v", outcome)
	}
	before, err := s.peers.Call(t.Context(), "data_loader", "snapshot")
	if err != nil {
		t.Fatal(err)
	}
	for _, rewinds := range [][]any{{"trajectory_pool", "rewind", 1}, {"train_batch_pool", "rewind", 1}, {"data_loader", "restore", before, 1}} {
		if _, err := s.peers.Call(t.Context(), rewinds[0].(string), rewinds[1].(string), rewinds[2:]...); err != nil {
			t.Fatal(err)
		}
	}
	task, err := s.peers.Call(t.Context(), "data_loader", "get_next_item", "w", "1")
	if err != nil {
		t.Fatal(err)
	}
	if epoch := task.(map[string]any)["lease"].(map[string]any)["epoch"]; epoch != int64(1) {
		t.Errorf("a task has the epoch %v, want 1", epoch)
	}
	if got := []any{put(0), put(1)}; !slices.Equal(got, []any{"fail", "success"}) {
		t.Errorf("trajectories of the epochs 0 and 1 are answered %v", got)
	}
}

// A rewind during a validation ends the validation: rollout workers take tasks of training again, and the next validation counts
// nothing of that one.
func TestARewindDuringAValidation(t *testing.T) {
	s, stop, ended := rewound(t, "trajectory_pool")
	held := make(chan struct{})
	s.until("an update", func(m *model) bool {
		if m.step >= 1 {
			m.held = held
		}
		return m.held != nil
	})
	s.until("a validation of step 3", func(m *model) bool { return m.step == 3 })
	s.until("its begin", func(*model) bool { return s.status()["phase"] == "validating" })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	s.serve("trajectory_pool")
	s.until("the next epoch", func(*model) bool { return s.status()["epoch"] == int64(1) })
	close(held)
	s.wait(ended)
	s.check(6)
}
