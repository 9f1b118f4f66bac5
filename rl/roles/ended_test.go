package roles_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fray-ml/fray/rl/run"
)

// When the run has ended each process of it ends without an error; a controller that was killed is no end.
func TestProcessesEndWithTheirRun(t *testing.T) {
	s := newStage(t, document(t, t.TempDir(), nil))
	s.workers(0)
	_, other := s.serve("data_loader", "trajectory_pool", "train_batch_pool", "weight_sync_controller", "validate_dataloader", "validator")
	stop, _ := s.serve("controller")
	s.until("an update", func(m *model) bool { return m.step == 2 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	_, ended := s.serve("controller")
	s.wait(ended)
	s.check(6)
	select {
	case err := <-other:
		if err != nil {
			t.Errorf("the other process ended by %v", err)
		}
	case <-time.After(patience):
		t.Error("the other process goes on after the end of the run")
	}
}

// A run that begins afresh beside the checkpoints of a former one sets them aside.
func TestAFreshRunSetsFormerCheckpointsAside(t *testing.T) {
	out := t.TempDir()
	s := newStage(t, document(t, out, nil))
	former := filepath.Join(s.cfg.Checkpoints(), run.CheckpointName(900))
	if err := os.MkdirAll(former, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(former, "run.json"), []byte(`{"step":900}`), 0o644); err != nil {
		t.Fatal(err)
	}
	s.workers(0)
	_, ended := s.serve(goRoles()...)
	s.wait(ended)
	s.check(6)
	if _, err := os.Stat(former); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", former, err)
	}
	if _, err := os.Stat(filepath.Join(s.cfg.Checkpoints(), "former_1", run.CheckpointName(900), "run.json")); err != nil {
		t.Error(err)
	}
}

// Under recovery "checkpoint" the loss of a stateful role leads all back to the last checkpoint, in the next epoch.
func TestALostRoleRewindsTheRun(t *testing.T) {
	s := newStage(t, document(t, t.TempDir(), map[string]any{"recovery": "checkpoint"}))
	s.workers(2)
	_, ended := s.serve("data_loader", "train_batch_pool", "weight_sync_controller", "validate_dataloader", "validator", "controller")
	stop, _ := s.serve("trajectory_pool")
	s.until("a checkpoint", func(m *model) bool { return m.step == 3 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	s.serve("trajectory_pool")
	s.wait(ended)
	s.model.mu.Lock()
	defer s.model.mu.Unlock()
	if s.model.step != 6 || s.model.loaded == "" {
		t.Errorf("step %d, the checkpoint %q was loaded; want 6 after one was", s.model.step, s.model.loaded)
	}
}
