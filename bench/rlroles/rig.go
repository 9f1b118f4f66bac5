package rlroles

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/loader"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/record"
	"github.com/fray-ml/fray/rl/roles"
	"github.com/fray-ml/fray/rl/source"
	"github.com/fray-ml/fray/rl/trajectory"
	"github.com/fray-ml/fray/rl/weights"
	"github.com/fray-ml/fray/sleep"
)

// open is the journal of a role; nil with None.
func (g *rig) open(name string) (record.Journal, [][]byte, error) {
	if g.kind == None || g.kind == Bare {
		return nil, nil, nil
	}
	j, records, err := journal.OpenDir(g.ctx, journal.DirConfig{Path: filepath.Join(g.dir, name), NoSync: g.kind == Written})
	if err != nil {
		return nil, nil, err
	}
	g.closing = append(g.closing, func() { _ = j.Close() })
	return j, records, nil
}

// serve serves actors by their names.
func (g *rig) serve(actors map[string]any) error {
	server, err := host.New(host.Config{})
	if err != nil {
		return err
	}
	for name, actor := range actors {
		options := host.Options{MaxConcurrency: 1 << 14}
		switch actor.(type) {
		case *roles.Pool:
			options = roles.PoolOptions()
		case *roles.Loader:
			options = roles.LoaderOptions()
		case *roles.Weights:
			options = roles.WeightsOptions()
		}
		if _, err := server.Register(name, actor, options); err != nil {
			return err
		}
	}
	if err := server.Start(g.ctx); err != nil {
		return err
	}
	g.server = server
	g.closing = append(g.closing, func() { _ = server.Shutdown(context.WithoutCancel(g.ctx)) })
	return nil
}

// bare answers as a pool does, and keeps nothing.
type bare struct{}

// PutTrajectory returns at once.
func (bare) PutTrajectory(context.Context, rl.Header, []byte) (rl.Outcome, error) {
	return rl.Success, nil
}

// always is a loader that gives nothing more while its workers roll out, and weight sync that counts every batch.
type always struct{}

// Status is that of a loader whose workers roll out.
func (always) Status(context.Context) (rl.LoaderStatus, error) {
	return rl.LoaderStatus{Drained: true, Leased: 1}, nil
}

// WaitQuiet waits: workers roll out all the time.
func (a always) WaitQuiet(ctx context.Context, _ float64) (rl.LoaderStatus, error) {
	<-ctx.Done()
	return a.Status(ctx)
}

// BatchReady counts a batch.
func (always) BatchReady(context.Context, rl.ModelTag, string, *int64) (rl.BatchVerdict, error) {
	return rl.BatchVerdict{Counted: true}, nil
}

func (g *rig) servePools(names []string) error {
	actors := map[string]any{}
	for _, name := range names {
		if g.kind == Bare {
			actors[name] = bare{}
			continue
		}
		pool, err := g.pool(name, always{}, always{})
		if err != nil {
			return err
		}
		actors[name] = pool
	}
	return g.serve(actors)
}

func (g *rig) pool(name string, from roles.LoaderStatus, weights roles.BatchNotifier) (*roles.Pool, error) {
	kept, records, err := g.open(name)
	if err != nil {
		return nil, err
	}
	return roles.NewPool(roles.PoolConfig{
		Pool:   trajectory.Config{Name: name, KeyList: []string{"group_id"}, GroupSize: groupSize, BatchSize: batchSize, Ready: rl.BatchSizeReached, MaxBytes: maxBytes},
		Loader: from, Weights: weights, Journal: kept, Records: records, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
}

// taken is what consumers of pools have taken.
type taken struct {
	done         chan struct{} // closed once nothing more is put
	trajectories atomic.Int64
	held         atomic.Int64 // bytes that a pool had at most
}

// consume takes batches as fast as it can.
func (t *taken) consume(ctx context.Context, pool actorrpc.Handle, name string) error {
	for last := false; ; {
		batch, err := actorrpc.Call[*rl.Batch](ctx, pool, "get_batch", nil, nil, "algorithm_processor_0")
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		status, err := actorrpc.Call[trajectory.Status](ctx, pool, "status")
		if err != nil {
			return err
		}
		t.held.Store(max(t.held.Load(), status.Bytes))
		if batch != nil {
			t.trajectories.Add(int64(len(batch.Payloads)))
			if _, err := actorrpc.Call[bool](ctx, pool, "ack", batch.ID); err != nil {
				return err
			}
			continue
		}
		if last {
			return nil
		}
		select {
		case <-t.done:
			last = true
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// batches measures get_batch, from the call to the decoded batch.
func (g *rig) batches(turns int) (Result, error) {
	if err := g.servePools([]string{"trajectory_pool"}); err != nil {
		return Result{}, err
	}
	c, err := g.client()
	if err != nil {
		return Result{}, err
	}
	h, err := c.Lookup(g.ctx, "trajectory_pool")
	if err != nil {
		return Result{}, err
	}
	var all []time.Duration
	for turn := range turns {
		futures := make([]*actorrpc.Future[rl.Outcome], batchSize)
		for i := range futures {
			futures[i] = actorrpc.Go[rl.Outcome](g.ctx, h, "put_trajectory", header(turn*batchSize+i), make([]byte, payloadSize))
		}
		for _, f := range futures {
			if _, err := f.Result(g.ctx); err != nil {
				return Result{}, err
			}
		}
		began := time.Now()
		batch, err := actorrpc.Call[*rl.Batch](g.ctx, h, "get_batch", nil, nil, "algorithm_processor_0")
		if err != nil {
			return Result{}, err
		}
		all = append(all, time.Since(began))
		if batch == nil || len(batch.Payloads) != batchSize {
			return Result{}, errNoBatch
		}
		if _, err := actorrpc.Call[bool](g.ctx, h, "ack", batch.ID); err != nil {
			return Result{}, err
		}
	}
	return spread(all), nil
}

// spread is the median and the longest of measurements.
func spread(all []time.Duration) Result {
	slices.Sort(all)
	return Result{Took: all[len(all)/2], Longest: all[len(all)-1]}
}

// copyTime is how long a copy of weights takes.
const copyTime = 20 * time.Millisecond

// sleeper copies weights by waiting, and notes how long that took.
type sleeper struct{ took atomic.Int64 }

// Copy waits.
func (s *sleeper) Copy(ctx context.Context, _ rl.ModelTag, _ int64) error {
	began := time.Now()
	sleep.For(ctx, copyTime)
	s.took.Store(int64(time.Since(began)))
	return ctx.Err()
}

// unblocks measures in mode sync how long it is from the trainer's notice of an update to the answer that a rollout waits for,
// beyond the copy.
func (g *rig) unblocks(turns int) (r Result, err error) {
	copier := &sleeper{}
	client, control, err := g.serveSync(copier)
	if err != nil {
		return Result{}, err
	}
	tended := make(chan error, 1)
	ctx, cancel := context.WithCancel(g.ctx)
	go func() { tended <- control.Tend(ctx) }()
	defer func() {
		cancel()
		if ended := <-tended; err == nil {
			err = ended
		}
	}()
	h, err := client.Lookup(g.ctx, string(rl.WeightSyncController))
	if err != nil {
		return Result{}, err
	}
	var all []time.Duration
	for turn := range turns {
		id := fmt.Sprint(turn)
		if _, err := actorrpc.Call[any](g.ctx, h, "trajectory_pool_notify_batch_ready", rl.DefaultModel, id); err != nil {
			return Result{}, err
		}
		waits := actorrpc.Go[rl.RolloutStatus](g.ctx, h, "wait_rollout_service", rl.DefaultModel, 60.0)
		if err := expect(rl.Block)(actorrpc.Call[rl.RolloutStatus](g.ctx, h, "check_rollout_service_status", rl.DefaultModel)); err != nil {
			return Result{}, err
		}
		began := time.Now()
		notice := actorrpc.Go[any](g.ctx, h, "train_worker_notify_weight_update", "train_worker_0", rl.DefaultModel, id)
		if err := expect(rl.Continue)(waits.Result(g.ctx)); err != nil {
			return Result{}, err
		}
		all = append(all, time.Since(began)-time.Duration(copier.took.Load()))
		if _, err := notice.Result(g.ctx); err != nil {
			return Result{}, err
		}
	}
	return spread(all), nil
}

// expect is an error unless rollouts have a status.
func expect(want rl.RolloutStatus) func(rl.RolloutStatus, error) error {
	return func(got rl.RolloutStatus, err error) error {
		if err == nil && got != want {
			err = fmt.Errorf("rollouts %s, want %s", got, want)
		}
		return err
	}
}

// serveSync serves weight sync with a pool and a loader, whose actors it calls over the socket.
func (g *rig) serveSync(copier roles.Copier) (*actorrpc.Client, *roles.Weights, error) {
	pool, err := g.pool("trajectory_pool", always{}, always{})
	if err != nil {
		return nil, nil, err
	}
	kept, records, err := g.open("data_loader")
	if err != nil {
		return nil, nil, err
	}
	from, err := roles.NewLoader(roles.LoaderConfig{
		Loader: loader.Config{KeepBatchOrder: true}, Source: source.Mock(batchSize), Journal: kept, Records: records, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, nil, err
	}
	peers := &late{}
	if kept, records, err = g.open("weight_sync_controller"); err != nil {
		return nil, nil, err
	}
	control, err := roles.NewWeights(roles.WeightsConfig{
		Machine: weights.Config{Mode: rl.Sync}, Peers: peers, Copier: copier, Pools: []string{"trajectory_pool"}, Journal: kept, Records: records,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, nil, err
	}
	err = g.serve(map[string]any{"trajectory_pool": pool, string(rl.DataLoader): from, string(rl.WeightSyncController): control})
	if err != nil {
		return nil, nil, err
	}
	client, err := g.client()
	if err != nil {
		return nil, nil, err
	}
	peers.Peers = peer.Of(client)
	return client, control, nil
}

// late are peers that are known once the server has its address.
type late struct{ peer.Peers }
