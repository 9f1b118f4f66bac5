package roles_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/rl/run"
)

// cast are the workers of stage.workers.
func cast() roles.Cast {
	return roles.Cast{
		RolloutWorkers: []string{"rollout_worker_0", "rollout_worker_1", "rollout_worker_2"}, TrainWorkers: []string{"train_worker_0"},
		Processors: []string{"algorithm_processor_0"}, Pools: []string{"trajectory_pool"}, Inference: []string{"inference_service_0"},
	}
}

// lead serves a controller with times of its own, until its run or the test ends.
func (s *stage) lead(machine run.Config) (ended <-chan error) {
	s.t.Helper()
	machine.TotalSteps = 1000
	c, err := roles.NewController(roles.ControllerConfig{
		Machine: machine, Run: "of the test", End: s.endPath(), Cast: cast(), Peers: s.peers, Checkpoints: s.cfg.Checkpoints(),
		SyncWeights: s.cfg.SyncWeights(), Health: 20 * time.Millisecond, HealthTimeout: 30 * time.Second, Errors: 20 * time.Millisecond,
		Now: time.Now, Log: s.log,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.worker("controller", c)
	ctx, cancel := context.WithCancel(context.Background())
	result, left := make(chan error, 1), make(chan struct{})
	go func() { defer close(left); result <- c.Run(ctx) }()
	s.t.Cleanup(func() { cancel(); <-left })
	return result
}

// others serves all roles in Go but the controller.
func (s *stage) others() {
	s.t.Helper()
	s.serve("activity_tracker", "trajectory_pool", "train_batch_pool", "weight_sync_controller")
}

func (s *stage) call(actor, method string, args ...any) any {
	s.t.Helper()
	result, err := s.peers.Call(s.t.Context(), actor, method, args...)
	if err != nil {
		s.t.Fatalf("%s.%s: %v", actor, method, err)
	}
	return result
}

// deaf is a rollout worker that does not stop any more, once it is told to be deaf.
type deaf struct {
	rollout
	told, released chan struct{}
}

func (d *deaf) Stop() {
	select {
	case <-d.told:
		<-d.released
	default:
	}
	d.rollout.Stop()
}

// TestN83_AStopNamesWhatIsLeft: a worker that does not stop and an activity that does not end are waited for, and named then.
func TestN83_AStopNamesWhatIsLeft(t *testing.T) {
	t.Parallel()
	s := newStage(t, document(t, t.TempDir(), map[string]any{"validate": map[string]any{}, "weight": map[string]any{}}))
	s.others()
	s.serve("data_loader")
	s.workers(0)
	d := &deaf{rollout: rollout{s: s, name: "rollout_worker_1", life: "1"}, told: make(chan struct{}), released: make(chan struct{})}
	s.worker("rollout_worker_1", d)
	t.Cleanup(func() { close(d.released) })
	ended := s.lead(run.Config{StopTimeout: 300 * time.Millisecond})
	s.until("an update", func(m *model) bool { return m.step == 1 })
	close(d.told)
	s.call("activity_tracker", "start", "train_worker_0", "step 7", "p1")
	began := time.Now()
	s.call("controller", "stop", "enough")
	s.wait(ended)
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("it waited for %s, want the whole time of a stop", took)
	}
	status, end := s.status(), s.recordedEnd()
	left, _ := status["leftover"].(string)
	if status["ended"] != true || status["exit"] != int64(0) || status["reason"] != "enough" || end.Reason != "enough" || end.Leftover != left {
		t.Errorf("the status is %v, the recorded end %+v", status, end)
	}
	for _, want := range []string{"did not stop: rollout_worker_1", "train_worker_0: step 7, for "} {
		if !strings.Contains(left, want) {
			t.Errorf("left is %q, want %q in it", left, want)
		}
	}
}

// patient is a train worker whose initialization goes on until the test ends.
type patient struct {
	trainer
	begun, released chan struct{}
}

func (p *patient) InitializeWorkers() {
	close(p.begun)
	<-p.released
}

// TestN83_AStopDoesNotWaitForTheStart: a model that is being loaded does not hold a stop up.
func TestN83_AStopDoesNotWaitForTheStart(t *testing.T) {
	t.Parallel()
	s := newStage(t, document(t, t.TempDir(), map[string]any{"validate": map[string]any{}, "weight": map[string]any{}}))
	s.others()
	s.serve("data_loader")
	s.workers(0)
	p := &patient{trainer: trainer{s: s}, begun: make(chan struct{}), released: make(chan struct{})}
	s.worker("train_worker_0", p)
	t.Cleanup(func() { close(p.released) })
	ended := s.lead(run.Config{})
	<-p.begun
	s.call("controller", "stop", "enough")
	s.wait(ended)
	if end := s.recordedEnd(); end.Reason != "enough" || end.Exit != 0 || end.Step != 0 {
		t.Errorf("the recorded end is %+v", end)
	}
}

// TestN80_ARoleThatStaysGoneEndsTheRun: also one that is read at each observation, so that none of these is whole.
func TestN80_ARoleThatStaysGoneEndsTheRun(t *testing.T) {
	t.Parallel()
	s := newStage(t, document(t, t.TempDir(), map[string]any{"validate": map[string]any{}, "weight": map[string]any{}}))
	s.others()
	stop, _ := s.serve("data_loader")
	s.workers(0)
	ended := s.lead(run.Config{Patience: 5 * time.Second, StopTimeout: 5 * time.Second})
	s.until("an update", func(m *model) bool { return m.step == 1 })
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		failed, ok := errors.AsType[*roles.RunError](err)
		if !ok || !strings.Contains(failed.Reason, "data_loader") {
			t.Errorf("the run ends by %v, want the failure that data_loader is gone", err)
		}
	case <-time.After(patience):
		t.Fatalf("the run does not end: %v", s.status())
	}
	s.serve("data_loader") // for the workers of the test, which put their tasks back
}

// A checkpoint that no run can begin with ends the run at once, with what is wrong with it.
func TestN57_ACheckpointThatCannotBeUsedEndsTheRun(t *testing.T) {
	s := newStage(t, document(t, t.TempDir(), map[string]any{"validate": map[string]any{}, "weight": map[string]any{}}))
	s.others()
	s.serve("data_loader")
	s.workers(0)
	path := filepath.Join(t.TempDir(), "best")
	writeManifest(t, path, `{"step": 7}`)
	failed, ok := errors.AsType[*roles.RunError](<-s.lead(run.Config{Resume: "from_path", ResumePath: path}))
	if !ok || !strings.Contains(failed.Reason, "run.json has step 7; want a directory global_step_7 with that name") {
		t.Errorf("the run ends by %v", failed)
	}
}
