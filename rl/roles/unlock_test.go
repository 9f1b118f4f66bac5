package roles_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/loader"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/rl/source"
	"github.com/fray-ml/fray/rl/weights"
)

// losing are peers with a loader, whose answer to the first unlock is lost: until it is asked again the batch that was
// unlocked is rolled out.
type losing struct {
	t      *testing.T
	loader *roles.Loader
	asked  int
}

func (l *losing) Call(_ context.Context, _, method string, args ...any) (any, error) {
	switch method {
	case "status":
		return l.loader.Status(), nil
	case "unlock_for_next_batch":
		at, _ := args[0].(rl.Position)
		unlocked, err := l.loader.UnlockForNextBatch(at)
		if l.asked++; l.asked == 1 {
			rollAll(l.t, l.loader)
			return nil, errors.New("the answer is lost")
		}
		return unlocked, err
	}
	return nil, nil
}

func (l *losing) Incarnations(context.Context) (map[string]string, error) { return nil, nil }

// rollAll rolls out what there is, and returns how many tasks that were.
func rollAll(t *testing.T, l *roles.Loader) int {
	t.Helper()
	for n := 0; ; n++ {
		task, err := l.GetNextItem("w", "1")
		if err != nil {
			t.Fatal(err)
		}
		if task == nil {
			return n
		}
		if _, err := l.Complete(task.Lease.ID, "success"); err != nil {
			t.Fatal(err)
		}
	}
}

// copied are copies that succeed.
type copied struct{}

func (copied) Copy(context.Context, rl.ModelTag, int64) error { return nil }

// N12: an unlock whose answer was lost is made again, and frees one batch all the same.
func TestN12_ARepeatedUnlockFreesOneBatch(t *testing.T) {
	l := newLoader(t, loader.Config{BatchSize: 2, KeepBatchOrder: true}, source.Mock(6))
	peers := &losing{t: t, loader: l}
	w, err := roles.NewWeights(roles.WeightsConfig{Machine: weights.Config{Mode: rl.Sync}, Peers: peers, Copier: copied{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tended := make(chan error, 1)
	go func() { tended <- w.Tend(ctx) }()
	defer func() {
		cancel()
		if err := <-tended; err != nil {
			t.Error(err)
		}
	}()
	for batch := range 2 {
		if n := rollAll(t, l); batch == 0 && n != 2 {
			t.Fatalf("%d tasks before the first unlock, want 2", n)
		}
		if _, err := w.TrajectoryPoolNotifyBatchReady(t.Context(), "default", string(rune('a'+batch))); err != nil {
			t.Fatal(err)
		}
		if err := w.TrainWorkerNotifyWeightUpdate(t.Context(), "train_worker_0", "default", string(rune('a'+batch))); err != nil {
			t.Fatal(err)
		}
		if err := w.EndValidate(t.Context(), "default"); err != nil { // it waits for all that is under way
			t.Fatal(err)
		}
		if status := l.Status(); batch == 0 && (status.Position.Batch != 2 || !status.Quiet()) {
			t.Fatalf("after the repeated unlock the loader is %+v, want it quiet behind its second batch", status)
		}
	}
	if n := rollAll(t, l); n != 2 || peers.asked != 3 {
		t.Errorf("%d tasks after the second unlock, which was asked for as number %d; want 2, and 3", n, peers.asked)
	}
}
