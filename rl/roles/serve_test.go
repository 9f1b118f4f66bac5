package roles_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/rl/run"
)

const patience = 5 * time.Minute // of a busy machine

func document(t *testing.T, out string, changes map[string]any) string {
	t.Helper()
	doc := map[string]any{
		"out":             out,
		"data":            map[string]any{"type": "mock", "num_samples": 40, "batch_size": 4, "repeat_item": 2, "keep_batch_order": true},
		"rollout_worker":  map[string]any{"num_workers": 3},
		"trajectory_pool": map[string]any{"key_list": []string{"group_id"}, "group_size": 2, "batch_size": 8, "check_batch_ready_function": "loaded_batch_finished"},
		"train_worker":    map[string]any{"total_train_steps": 6},
		"validate":        map[string]any{"validate_before_train": true, "data": map[string]any{"type": "mock", "num_samples": 5}},
		"weight":          map[string]any{"sync_mode": "sync", "validate_freq": 3},
		"roles":           map[string]any{"inference_service": map[string]any{"count": 1}},
		"logger":          map[string]any{"backend": []string{"jsonl"}},
		"runtime_monitor": map[string]any{"exception_handling": map[string]any{"enabled": true, "policy": "continue", "check_interval": 0.1}},
	}
	maps.Copy(doc, changes)
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rollouts serves the rollout workers and their inference service.
func (s *stage) rollouts() {
	for i := range 3 {
		name := fmt.Sprintf("rollout_worker_%d", i)
		s.worker(name, &rollout{s: s, name: name, life: "1"})
	}
	s.worker("inference_service_0", &inference{s: s})
}

func (s *stage) workers(save int64) {
	s.rollouts()
	s.worker("algorithm_processor_0", &processor{s: s})
	s.worker("train_worker_0", &trainer{s: s, save: save})
}

func (s *stage) wait(ended <-chan error) {
	s.t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			s.t.Fatalf("the run ended by %v", err)
		}
	case <-time.After(patience):
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		status, err := s.peers.Call(ctx, "controller", "status")
		weights, _ := s.peers.Call(ctx, "weight_sync_controller", "status")
		loader, _ := s.peers.Call(ctx, "data_loader", "status")
		s.t.Fatalf("the run does not end: controller %v (%v), weights %v, loader %v", status, err, weights, loader)
	}
}

// until waits for an event.
func (s *stage) until(what string, happened func(m *model) bool) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		s.model.mu.Lock()
		ok := happened(s.model)
		s.model.mu.Unlock()
		if ok {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
	s.t.Fatalf("%s did not happen", what)
}

// check verifies that every step was made of one whole loaded batch, by the weights of the step before.
func (s *stage) check(steps int64) {
	s.t.Helper()
	s.checkBatches(8, steps)
}

func (s *stage) checkBatches(size int, steps int64) {
	s.t.Helper()
	m := s.model
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.step != steps {
		s.t.Errorf("%d updates, want %d", m.step, steps)
	}
	for step, versions := range m.stale {
		if len(versions) != size {
			s.t.Errorf("step %d was trained on %d trajectories, want %d", step, len(versions), size)
		}
		for _, version := range versions {
			if version != step-1 {
				s.t.Errorf("step %d was trained on a trajectory of version %d", step, version)
			}
		}
	}
	uses := m.uses()
	for task, times := range uses {
		if times != 1 {
			s.t.Errorf("task %s was trained on %d times", task, times)
		}
	}
	if len(uses) != int(steps)*size {
		s.t.Errorf("%d tasks were trained on, want %d", len(uses), int(steps)*size)
	}
}

func goRoles() []string {
	return []string{
		"data_loader", "trajectory_pool", "train_batch_pool", "weight_sync_controller", "validate_dataloader", "validator", "controller",
	}
}

// A whole run: initial sync, validation, six updates with validations between, checkpoints, the end.
func TestServeLeadsARunToItsEnd(t *testing.T) {
	out := t.TempDir()
	s := newStage(t, document(t, out, nil))
	s.workers(2)
	_, ended := s.serve(goRoles()...)
	s.wait(ended)
	s.check(6)
	metrics, err := os.ReadFile(filepath.Join(out, "metrics", "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var steps []int64
	for line := range lines(metrics) {
		var r struct {
			Step int64
			Data map[string]float64
		}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Data["val/num_samples"] == 5 && r.Data["val/reward"] == 0.5 {
			steps = append(steps, r.Step)
		}
	}
	if len(steps) < 2 || steps[0] != 0 || steps[1] != 3 { // one of step 6 may come before the end
		t.Errorf("validated at steps %v, want 0 and 3", steps)
	}
	checkManifest(t, s, 4)
}

func lines(text []byte) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		begin := 0
		for i, b := range text {
			if b == '\n' {
				if !yield(text[begin:i]) {
					return
				}
				begin = i + 1
			}
		}
	}
}

func checkManifest(t *testing.T, s *stage, step int64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.cfg.Checkpoints(), run.CheckpointName(step), "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m run.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if m.Step != step || len(m.Loader) == 0 || m.Position.Batch != int(step) {
		t.Errorf("run.json has step %d, position %+v, %d bytes of the loader", m.Step, m.Position, len(m.Loader))
	}
}

// N58: a run that begins at a checkpoint has its step, and does not use its data again.
func TestN58_ResumeSetsTheStepAndSkipsData(t *testing.T) {
	out := t.TempDir()
	s := newStage(t, document(t, out, map[string]any{"train_worker": map[string]any{"total_train_steps": 4}}))
	s.workers(2)
	_, ended := s.serve(goRoles()...)
	s.wait(ended)
	s.check(4)
	first := s.model

	s = newStage(t, document(t, out, map[string]any{"resume": map[string]any{"mode": "auto"}}))
	s.workers(2)
	_, ended = s.serve(goRoles()...)
	s.wait(ended)
	if s.model.step != 6 || filepath.Base(s.model.loaded) != "global_step_4" {
		t.Errorf("step %d from %q, want 6 from global_step_4", s.model.step, s.model.loaded)
	}
	if states := append(slices.Clone(first.states), s.model.states...); !slices.Equal(states, []string{"", s.model.loaded}) {
		t.Errorf("the processor loaded %q, want that of a new one, then the trainer's checkpoint", states)
	}
	before := first.uses()
	for task := range s.model.uses() {
		if before[task] > 0 {
			t.Errorf("task %s was used again", task)
		}
	}
}

// N65: while the inference service fails nothing is unlocked, and once it works the run goes on.
func TestN65_AFailedSyncBlocksUntilItSucceeds(t *testing.T) {
	s := newStage(t, document(t, t.TempDir(), nil))
	s.workers(0)
	_, ended := s.serve(goRoles()...)
	s.until("an update", func(m *model) bool { return m.step == 2 })
	s.model.mu.Lock()
	s.model.failing = true
	s.model.mu.Unlock()
	s.until("a failed sync", func(*model) bool {
		health, err := s.peers.Call(t.Context(), "activity_tracker", "get_error_health_status")
		return err == nil && health.(map[string]any)["warning_level_count"].(int64) > 0
	})
	if status, err := s.peers.Call(t.Context(), "weight_sync_controller", "check_rollout_service_status", "default"); err != nil || status != "block" {
		t.Errorf("after the failure rollouts %v (%v), want block", status, err)
	}
	s.model.mu.Lock()
	s.model.failing = false
	s.model.mu.Unlock()
	s.wait(ended)
	s.check(6)
}

// Each stateful role is ended in the middle of the run and started again on its journal: the run is the same as
// without.
func TestARunSurvivesRestartsOfItsRoles(t *testing.T) {
	for _, victim := range goRoles() {
		t.Run(victim, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, document(t, t.TempDir(), nil))
			s.workers(0)
			var others []string
			for _, role := range goRoles() {
				if role != victim {
					others = append(others, role)
				}
			}
			_, ended := s.serve(others...)
			stop, victimEnded := s.serve(victim)
			s.until("an update", func(m *model) bool { return m.step == 2 })
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			_, again := s.serve(victim)
			if victim == "controller" {
				ended = again
			}
			_ = victimEnded
			s.wait(ended)
			s.check(6)
		})
	}
}

// A stop ends a run before its last step.
func TestStopEndsARun(t *testing.T) {
	s := newStage(t, document(t, t.TempDir(), nil))
	s.workers(0)
	_, ended := s.serve(goRoles()...)
	s.until("an update", func(m *model) bool { return m.step == 1 })
	if _, err := s.peers.Call(t.Context(), "controller", "stop", "enough"); err != nil {
		t.Fatal(err)
	}
	s.wait(ended)
	if step := s.model.step; step >= 6 {
		t.Errorf("%d updates after a stop at the first", step)
	}
}
