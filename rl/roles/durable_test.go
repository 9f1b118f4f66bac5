package roles_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/rl/trajectory"
	"github.com/fray-ml/fray/rl/weights"
)

// slowJournal keeps nothing, and waits until it may.
type slowJournal struct{ waits, may chan struct{} }

func (j slowJournal) Append([]byte) journal.Position    { return 1 }
func (j slowJournal) Rewrite([][]byte) journal.Position { return 1 }
func (j slowJournal) Size() int64                       { return 0 }

func (j slowJournal) Wait(journal.Position) error {
	j.waits <- struct{}{}
	<-j.may
	return nil
}

// Rollouts that ask whether they may go on do not wait for the journal, and pools are locked once the state is durable.
func TestWeightsAnswerWhileTheJournalIsWritten(t *testing.T) {
	slow := slowJournal{waits: make(chan struct{}, 8), may: make(chan struct{})}
	called := make(chan struct{}, 8)
	w, err := roles.NewWeights(roles.WeightsConfig{
		Machine: weights.Config{}, Peers: counting(called), Pools: []string{"trajectory_pool"}, Journal: slow, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tended := make(chan error, 1)
	go func() { tended <- w.Tend(ctx) }()
	ready := make(chan error, 1)
	go func() {
		_, err := w.TrajectoryPoolNotifyBatchReady(ctx, rl.DefaultModel, "b1")
		ready <- err
	}()
	<-slow.waits
	<-slow.waits // both the caller and what locks the pools
	if got := w.CheckRolloutServiceStatus(rl.DefaultModel); got != rl.Block {
		t.Errorf("rollouts %s, want block", got)
	}
	if len(called) > 0 {
		t.Error("the pool is locked before the state is durable")
	}
	close(slow.may)
	<-called
	if err := <-ready; err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-tended; err != nil {
		t.Error(err)
	}
}

// counting notes that a pool was called.
type counting chan struct{}

func (c counting) Call(context.Context, string, string, ...any) (any, error) {
	c <- struct{}{}
	return nil, nil
}

func (c counting) Incarnations(context.Context) (map[string]string, error) { return nil, nil }

// What the journal cannot have is not stored: put again, it would count as acknowledged.
func TestPutThatCannotBeRecordedStoresNothing(t *testing.T) {
	j, records, err := journal.OpenDir(t.Context(), journal.DirConfig{Path: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	at := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC) // which JSON has no form for
	pool, err := roles.NewPool(roles.PoolConfig{
		Pool: trajectory.Config{BatchSize: 1, Ready: rl.BatchSizeReached}, Loader: fixed{}, Weights: &notified{}, Journal: j, Records: records,
		Now: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	header := rl.Header{TaskID: "0/0/0", Lease: "1"}
	if got, err := pool.PutTrajectory(t.Context(), header, []byte("a")); err == nil {
		t.Fatalf("got %s, want an error", got)
	}
	if empty, err := pool.IsEmpty(); err != nil || !empty {
		t.Errorf("empty %t, %v, after a put that failed", empty, err)
	}
	at = now()
	if got, err := pool.PutTrajectory(t.Context(), header, []byte("a")); err != nil || got != rl.Success {
		t.Errorf("got %s, %v", got, err)
	}
	if size, err := pool.Size(); err != nil || size != 1 {
		t.Errorf("%d trajectories, %v, want 1", size, err)
	}
}
