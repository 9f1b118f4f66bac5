package rlroles

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/rl"
)

// rig is a server of actors and its clients.
type rig struct {
	ctx     context.Context
	dir     string
	kind    Journal
	server  *host.Server
	closing []func()
}

func (g *rig) close() {
	for _, closing := range slices.Backward(g.closing) {
		closing()
	}
}

// client is one with a connection of its own.
func (g *rig) client() (*actorrpc.Client, error) {
	names, err := resolver.NewFixed(g.server.Address())
	if err != nil {
		return nil, err
	}
	c := actorrpc.NewClient(names, actorrpc.Config{})
	g.closing = append(g.closing, func() { _ = c.Close() })
	return c, nil
}

// puts has workers put trajectories into pools while one consumer for each pool takes batches.
func (g *rig) puts(n, workers, pools int) (Result, error) {
	names := make([]string, pools)
	for i := range names {
		names[i] = fmt.Sprintf("trajectory_pool_%d", i)
	}
	if err := g.servePools(names); err != nil {
		return Result{}, err
	}
	handles := make([][]actorrpc.Handle, workers)
	for w := range handles {
		c, err := g.client()
		if err != nil {
			return Result{}, err
		}
		for _, name := range names {
			h, err := c.Lookup(g.ctx, name)
			if err != nil {
				return Result{}, err
			}
			handles[w] = append(handles[w], h)
		}
	}
	consumed := &taken{done: make(chan struct{})}
	var consumers sync.WaitGroup
	var failed atomic.Pointer[error]
	for i, h := range handles[0] {
		if g.kind != Bare {
			consumers.Go(func() { note(&failed, consumed.consume(g.ctx, h, names[i])) })
		}
	}
	began := time.Now()
	var putting sync.WaitGroup
	for w, to := range handles {
		putting.Go(func() { note(&failed, putShare(g.ctx, to, w, workers, n)) })
	}
	putting.Wait()
	took := time.Since(began)
	close(consumed.done)
	consumers.Wait()
	if err := failed.Load(); err != nil {
		return Result{}, *err
	}
	if got := int(consumed.trajectories.Load()); g.kind != Bare && n-got >= pools*(batchSize+groupSize) {
		return Result{}, fmt.Errorf("%d trajectories were put, and %d came in batches", n, got)
	}
	return Result{Rate: float64(n) / took.Seconds(), Held: consumed.held.Load()}, nil
}

// note keeps the first error.
func note(first *atomic.Pointer[error], err error) {
	if err != nil {
		first.CompareAndSwap(nil, &err)
	}
}

// putShare puts the trajectories of one worker of several: one of each of their groups.
func putShare(ctx context.Context, pools []actorrpc.Handle, worker, workers, n int) error {
	payload := make([]byte, payloadSize)
	for i := worker; i < n; i += workers {
		got, err := actorrpc.Call[rl.Outcome](ctx, pools[i/groupSize%len(pools)], "put_trajectory", header(i), payload)
		if err == nil && got != rl.Success {
			err = fmt.Errorf("put %d: %s", i, got)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func header(i int) rl.Header {
	version, temperature := int64(0), 1.0
	return rl.Header{
		Keys: map[string]any{"group_id": fmt.Sprintf("0/%d", i/groupSize)}, Fields: []string{"finish_reason", "logprobs", "prompt", "response", "reward", "tokens"},
		Scores: map[string]float64{"reward": 0.5}, TaskID: rl.TaskID(0, i/groupSize, i%groupSize), Lease: fmt.Sprintf("train/bench/0/%d", i), Tokens: 128,
		Temperature: &temperature, Version: &version,
	}
}

// errNoBatch is a pool that has no batch though it should.
var errNoBatch = errors.New("the pool has no batch")
