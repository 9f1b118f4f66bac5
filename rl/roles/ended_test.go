package roles_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/rl/ended"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/rl/run"
)

// ends hosts roles that are to end by themselves, and returns how they do.
func (s *stage) ends(given ...string) error {
	s.t.Helper()
	parts, err := roles.ParseParts(given, s.cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- roles.Serve(s.t.Context(), parts, s.cfg, roles.Environment{Client: s.client, Out: s.t.Output(), Log: s.log})
	}()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		s.t.Fatalf("%v do not end", given)
		return nil
	}
}

func (s *stage) endPath() string { return filepath.Join(s.cfg.Out, "ended.json") }

func (s *stage) recordedEnd() ended.Record {
	s.t.Helper()
	text, err := os.ReadFile(s.endPath())
	if err != nil {
		s.t.Fatal(err)
	}
	var end ended.Record
	if err := json.Unmarshal(text, &end); err != nil {
		s.t.Fatal(err)
	}
	return end
}

// When the run has ended each process of it ends without an error, also one that is started later; a controller that was killed
// is no end.
func TestProcessesEndWithTheirRun(t *testing.T) {
	s := newStage(t, document(t, t.TempDir(), nil))
	s.workers(0)
	others := []string{"data_loader", "trajectory_pool", "train_batch_pool", "weight_sync_controller", "validate_dataloader", "validator"}
	_, other := s.serve(others...)
	stop, _ := s.serve("controller")
	s.until("an update", func(m *model) bool { return m.step == 2 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	_, done := s.serve("controller")
	s.wait(done)
	s.check(6)
	s.wait(other)
	if end := s.recordedEnd(); end.Exit != 0 || end.Step != 6 || end.Reason != "finished: 6 steps" || end.Run != ended.RunOf(s.cfg) {
		t.Errorf("the recorded end is %+v", end)
	}
	for _, late := range append(others, "controller") {
		if err := s.ends(late); err != nil {
			t.Errorf("%s, started after the end, ends by %v", late, err)
		}
	}
	s.check(6)
	if err := os.WriteFile(s.endPath(), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.ends("validator"); err == nil {
		t.Error("a process ends without an error beside a record that cannot be read")
	}
}

// A process whose controller is gone for good finds the record of the end.
func TestAProcessFindsTheEndWithoutTheController(t *testing.T) {
	s := newStage(t, document(t, t.TempDir(), map[string]any{"run": "mine"}))
	record := func(of string) {
		t.Helper()
		text, err := json.Marshal(ended.Record{Run: of, Reason: "finished"})
		if err == nil {
			err = durable.WriteFile(s.endPath(), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	record("another") // which does not concern it
	_, ended := s.serve("data_loader")
	record("mine")
	s.wait(ended)
}

// A run that has failed ends with its reason, and again when its controller is started again; with another key run it goes on.
func TestAFailedRunStaysFailed(t *testing.T) {
	out := t.TempDir()
	policy := map[string]any{"exception_handling": map[string]any{"policy": "stop_on_error", "check_interval": 0.05}}
	s := newStage(t, document(t, out, map[string]any{"runtime_monitor": policy}))
	s.workers(2)
	_, other := s.serve("data_loader", "trajectory_pool", "train_batch_pool", "weight_sync_controller", "validate_dataloader", "validator")
	_, ended := s.serve("controller")
	s.until("a checkpoint", func(m *model) bool { return m.step == 3 })
	report := map[string]any{"type": "ValueError", "message": "no reward"}
	if _, err := s.peers.Call(t.Context(), "activity_tracker", "report_exception", "rollout_worker_1", "rolling out a task", report); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"at first", "again"} {
		err := error(nil)
		if when == "again" {
			err = s.ends("controller")
		} else {
			err = <-ended
		}
		const want = "error: 1 error in the last 5m0s, the last of rollout_worker_1 during rolling out a task: no reward"
		failed, ok := errors.AsType[*roles.RunError](err)
		if !ok || failed.Reason != want {
			t.Fatalf("%s it ends by %v, want the failure %q", when, err, want)
		}
	}
	s.wait(other)
	if err := s.ends("data_loader"); err != nil {
		t.Errorf("another process ends by %v", err)
	}

	s = newStage(t, document(t, out, map[string]any{"run": "2", "resume": map[string]any{"mode": "auto"}}))
	s.workers(2)
	_, ended = s.serve(goRoles()...)
	s.wait(ended)
	if s.model.step != 6 || filepath.Base(s.model.loaded) != "global_step_2" {
		t.Errorf("the next run made step %d from %q, want 6 from global_step_2", s.model.step, s.model.loaded)
	}
	if end := s.recordedEnd(); end.Run != "2" || end.Exit != 0 {
		t.Errorf("the recorded end is %+v", end)
	}
}

// A controller that dies between the record of the end and its own state ends as it would have.
func TestTheRecordOfTheEndCountsBeforeTheJournal(t *testing.T) {
	s := newStage(t, document(t, t.TempDir(), nil))
	s.workers(0)
	stop, _ := s.serve(goRoles()...)
	s.until("an update", func(m *model) bool { return m.step == 1 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(ended.Record{Run: ended.RunOf(s.cfg), Exit: 1, Reason: "enough", Step: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.endPath(), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if failed, ok := errors.AsType[*roles.RunError](s.ends(goRoles()...)); !ok || failed.Reason != "enough" {
		t.Errorf("it ends by %v, want a failure", failed)
	}
	if err := os.Remove(s.endPath()); err != nil { // as one does who wants it to go on
		t.Fatal(err)
	}
	_, ended := s.serve(goRoles()...)
	s.wait(ended)
	s.check(6)
}

func writeManifest(t *testing.T, checkpoint, text string) {
	t.Helper()
	if err := os.MkdirAll(checkpoint, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(checkpoint, "run.json"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A run that begins afresh beside the checkpoints of a former one sets them aside.
func TestAFreshRunSetsFormerCheckpointsAside(t *testing.T) {
	out := t.TempDir()
	s := newStage(t, document(t, out, nil))
	former := filepath.Join(s.cfg.Checkpoints(), run.CheckpointName(900))
	writeManifest(t, former, `{"step":900}`)
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
