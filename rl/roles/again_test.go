package roles_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/fray-ml/fray/rl/roles"
)

// gate has the calls of pools wait until it is opened.
type gate struct{ asked, open chan struct{} }

func (g gate) Call(ctx context.Context, _, _ string, _ ...any) (any, error) {
	g.asked <- struct{}{}
	select {
	case <-g.open:
	case <-ctx.Done():
	}
	return nil, ctx.Err()
}

func (g gate) Incarnations(context.Context) (map[string]string, error) { return nil, nil }

// N34: a batch that a pool reports again, since the answer was lost, is not given before the locks that the first report
// asked for.
func TestN34_ABatchThatIsReportedAgainWaitsForTheLocks(t *testing.T) {
	g := gate{asked: make(chan struct{}), open: make(chan struct{})}
	w, err := roles.NewWeights(roles.WeightsConfig{Peers: g, Pools: []string{"trajectory_pool"}, Log: slog.New(slog.DiscardHandler)})
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
	lost, give := context.WithCancel(t.Context())
	go func() { <-g.asked; give() }() // the pool is being locked; the pool that reported dies
	if _, err := w.TrajectoryPoolNotifyBatchReady(lost, "default", "b1"); err == nil {
		t.Fatal("the first report ends before the pool is locked")
	}
	gone, end := context.WithCancel(t.Context())
	end()
	for range 50 { // of an answer and the end of its context, which are both there, select takes either
		if _, err := w.TrajectoryPoolNotifyBatchReady(gone, "default", "b1"); err == nil {
			t.Fatal("a further report ends before the pool is locked")
		}
	}
	close(g.open)
	if _, err := w.TrajectoryPoolNotifyBatchReady(t.Context(), "default", "b1"); err != nil {
		t.Error(err)
	}
}
