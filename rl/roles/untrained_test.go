package roles_test

import (
	"maps"
	"testing"
)

// A run of mode fully-async that begins at a checkpoint uses each task once that the run before it had not trained on: those that
// waited in a pool at the checkpoint come again.
func TestAResumedAsyncRunUsesWhatWaitedInPools(t *testing.T) {
	out := t.TempDir()
	async := func(steps int, more map[string]any) string {
		changes := map[string]any{
			"trajectory_pool": map[string]any{"key_list": []string{"group_id"}, "group_size": 2, "batch_size": 8, "check_batch_ready_function": "batch_size_reached"},
			"weight":          map[string]any{"sync_mode": "fully-async", "validate_freq": 0},
			"data":            map[string]any{"type": "mock", "num_samples": 40, "batch_size": 4, "repeat_item": 2, "keep_batch_order": false},
			"train_worker":    map[string]any{"total_train_steps": steps},
		}
		maps.Copy(changes, more)
		return document(t, out, changes)
	}
	s := newStage(t, async(4, nil))
	s.rollouts()
	s.worker("algorithm_processor_0", &processor{s: s, most: 6})
	s.worker("train_worker_0", &trainer{s: s, save: 4, beforeCheckpoint: func(int64) {
		s.until("the end of all rollouts", func(*model) bool {
			status, err := s.peers.Call(t.Context(), "data_loader", "status")
			return err == nil && status.(map[string]any)["finished"] == true
		})
		s.until("a batch in each pool", func(*model) bool {
			sizes, err := s.peers.Call(t.Context(), "train_batch_pool", "sizes")
			return err == nil && sizes.(map[string]any)["default"] == int64(4) // of 7, of which 3 are acknowledged
		})
	}})
	_, ended := s.serve(goRoles()...)
	s.wait(ended)
	first := s.model.uses()
	if len(first) != 32 {
		t.Fatalf("the first run trained on %d tasks, want 32", len(first))
	}

	s = newStage(t, async(10, map[string]any{"resume": map[string]any{"mode": "auto"}}))
	s.workers(0)
	_, ended = s.serve(goRoles()...)
	s.wait(ended)
	all := maps.Clone(first)
	for task, times := range s.model.uses() {
		if s.model.loaded != "" {
			all[task] += times
		}
	}
	for task, times := range all {
		if times != 1 {
			t.Errorf("task %s was trained on %d times", task, times)
		}
	}
	if len(all) != 80 {
		t.Errorf("%d tasks were trained on, want 80", len(all))
	}
}
