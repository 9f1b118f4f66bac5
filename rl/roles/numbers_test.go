package roles

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/activity"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/run"
	"github.com/fray-ml/fray/rl/weights"
)

// notingPeers notes calls as "actor.method", and answers them.
type notingPeers struct {
	mu      sync.Mutex
	calls   []string
	answers map[string]any
	fails   map[string]error
}

func (p *notingPeers) Call(_ context.Context, actor, method string, _ ...any) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	call := actor + "." + method
	p.calls = append(p.calls, call)
	return p.answers[call], p.fails[call]
}

func (p *notingPeers) Incarnations(context.Context) (map[string]string, error) { return nil, nil }

func controllerOf(t *testing.T, peers peer.Peers) *Controller {
	t.Helper()
	c, err := NewController(ControllerConfig{
		Cast: Cast{RolloutWorkers: []string{"rollout_worker_0"}, Validates: true}, Peers: peers, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestN71_EndOfAValidation: metrics, workers back, unlock, loader reset, in this order. After a failure halfway it is done
// again, but for the metrics.
func TestN71_EndOfAValidation(t *testing.T) {
	away := errors.New("away")
	peers := &notingPeers{
		answers: map[string]any{"validator.compute_and_log_metrics": map[string]float64{"val/reward": 1}},
		fails:   map[string]error{"weight_sync_controller.end_validate": away},
	}
	c := controllerOf(t, peers)
	order := run.Order{Verb: run.EndValidation, Tag: rl.DefaultModel}
	if err := c.carryOut(t.Context(), order); !errors.Is(err, away) {
		t.Fatalf("the failure is %v", err)
	}
	want := []string{"validator.compute_and_log_metrics", "rollout_worker_0.end_validate", "weight_sync_controller.end_validate"}
	if !slices.Equal(peers.calls, want) {
		t.Fatalf("calls %v, want %v", peers.calls, want)
	}
	peers.calls, peers.fails = nil, nil
	if err := c.carryOut(t.Context(), order); err != nil {
		t.Fatal(err)
	}
	want = append(want[1:], "validate_dataloader.reset")
	if !slices.Equal(peers.calls, want) {
		t.Fatalf("calls %v, want %v", peers.calls, want)
	}
}

func TestN74_WaitQuiescentAnswersFalseAfterItsTimeout(t *testing.T) {
	tracker, err := NewTracker(TrackerConfig{Tracker: activity.Config{Instance: "i"}, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	token, err := tracker.Start("m", "work")
	if err != nil {
		t.Fatal(err)
	}
	timeout := 0.001
	if tracker.WaitQuiescent(t.Context(), &timeout) {
		t.Fatal("it is quiescent with an activity")
	}
	quiescent := make(chan bool)
	go func() { quiescent <- tracker.WaitQuiescent(t.Context(), nil) }()
	tracker.End(token)
	if !<-quiescent {
		t.Fatal("it is not quiescent without an activity")
	}
}

// TestN94_N95_VersionAndValidation: the version of rollouts follows that of training with the copy; then a validation is due,
// until it ends.
func TestN94_N95_VersionAndValidation(t *testing.T) {
	w, err := NewWeights(WeightsConfig{
		Machine: weights.Config{Mode: rl.Sync, ValidateFreq: 1, TrainWorkers: 1}, Peers: &notingPeers{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, train, rollout int64, waits bool) {
		t.Helper()
		gotTrain, gotRollout, gotWaits := w.GetTrainModelVersion("m"), w.GetRolloutModelVersion("m"), w.IsWaitingForValidation()
		if gotTrain != train || gotRollout != rollout || gotWaits != waits {
			t.Errorf("%s: versions %d and %d, waits for validation: %t; want %d, %d, %t", when, gotTrain, gotRollout, gotWaits, train, rollout, waits)
		}
	}
	check("at the beginning", 0, 0, false)
	w.machine.BatchReady("m", "b")
	w.machine.Updated("m", "train_worker_0", "1")
	check("after an update", 1, 0, false)
	w.machine.Copied("m", 1)
	check("after its copy", 1, 1, true)
	w.machine.Validated("m")
	check("after the validation", 1, 1, false)
}

// TestN91_PostsHaveTheTrainingStep: where they have none of their own. When the step goes back posts may come again.
func TestN91_PostsHaveTheTrainingStep(t *testing.T) {
	var steps []any
	back := 0
	tracker, err := NewTracker(TrackerConfig{
		Post: func(_ rl.LoggerBackend, fields map[string]any) error {
			steps = append(steps, fields["step"])
			return nil
		},
		Back: func() { back++ }, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []int64{7, 7, 3} {
		if err := tracker.SetTrainingStep(step); err != nil {
			t.Fatal(err)
		}
	}
	for _, fields := range []map[string]any{{"data": map[string]any{}}, {"step": int64(1)}, nil} {
		if err := tracker.ExperimentLoggerPost("jsonl", fields); err != nil {
			t.Fatal(err)
		}
	}
	if want := []any{int64(3), int64(1), int64(3)}; !slices.Equal(steps, want) || back != 1 {
		t.Errorf("posts have steps %v, want %v; the run went back %d times, want 1", steps, want, back)
	}
}

// TestWaitEnded: those that wait for the end of a run are answered with it.
func TestWaitEnded(t *testing.T) {
	c := controllerOf(t, &notingPeers{})
	if status := c.WaitEnded(t.Context(), 0); status.Phase != run.Initializing {
		t.Fatalf("the phase is %s", status.Phase)
	}
	ended := make(chan ControllerStatus)
	go func() { ended <- c.WaitEnded(t.Context(), 3600) }()
	if err := c.Stop("enough"); err != nil {
		t.Fatal(err)
	}
	c.note(run.Order{Verb: run.Conclude}, nil)
	if status := <-ended; status.Phase != run.Ended || status.Reason != "enough" {
		t.Fatalf("the status is %+v", status)
	}
}
