package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/rl"
)

// The targets of the part "rl".
const (
	rlPutRate   = 20_000                // trajectories a second into one pool
	rlPoolsRate = 10_000                // into all pools
	rlBatchTime = 20 * time.Millisecond // of a batch of rlBatch
	rlUnblock   = 50 * time.Millisecond // beyond the copy of weights
)

const (
	rlPayload = 4 << 10 // bytes of a trajectory
	rlBatch   = 512     // trajectories
	rlGroup   = 8
	rlMemory  = 64 << 20 // max_bytes of a pool
)

// rlSizes are how much the part "rl" measures. Each has an environment variable.
type rlSizes struct {
	puts    int // FRAY_BENCH_RL_PUTS: into one pool, and as many into several
	workers int // FRAY_BENCH_RL_WORKERS: that put into one pool
	many    int // FRAY_BENCH_RL_MANY: that put into several
	pools   int // FRAY_BENCH_RL_POOLS
	turns   int // FRAY_BENCH_RL_TURNS: of what is measured as a median
}

// rlBench measures the roles of an RL run in Go, over their sockets. Each measurement is in a process of its own, with its
// clients.
type rlBench struct {
	*bench
	sizes rlSizes
}

func (s *rlSizes) read(environment func(string) string) error {
	*s = rlSizes{puts: 100_000, workers: 64, many: 1000, pools: 8, turns: 20}
	for name, size := range map[string]*int{"PUTS": &s.puts, "WORKERS": &s.workers, "MANY": &s.many, "POOLS": &s.pools, "TURNS": &s.turns} {
		given := environment("FRAY_BENCH_RL_" + name)
		if given == "" {
			continue
		}
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 {
			return fmt.Errorf("FRAY_BENCH_RL_%s is %q: want a number from 1 on", name, given)
		}
		*size = n
	}
	return nil
}

// rl measures everything.
func (b rlBench) rl() error {
	if err := b.sizes.read(os.Getenv); err != nil {
		return err
	}
	for _, measure := range []func() error{b.putRate, b.manyRate, b.batchTime, b.unblockTime} {
		if err := measure(); err != nil {
			return err
		}
	}
	return nil
}

// The measurements of the part "rl" that have a process of their own.
const (
	oneRLPuts    = "rl-puts"
	oneRLMany    = "rl-many"
	oneRLBatch   = "rl-batch"
	oneRLUnblock = "rl-unblock"
)

// rlJournal is where a pool keeps what it acknowledges.
type rlJournal string

// The journals.
const (
	rlBare    rlJournal = "bare"    // no pool at all: an actor that does nothing
	rlNone    rlJournal = "none"    // memory
	rlWritten rlJournal = "written" // a file, which outlives the process
	rlSynced  rlJournal = "synced"  // likewise, and a crash of the machine: as runs have it
)

func (b rlBench) putRate() error {
	synced, r, err := b.one(oneRLPuts, strconv.Itoa(b.sizes.puts), string(rlSynced))
	if err != nil {
		return err
	}
	var beside strings.Builder
	for _, kind := range []rlJournal{rlWritten, rlNone, rlBare} {
		_, other, err := b.one(oneRLPuts, strconv.Itoa(b.sizes.puts), string(kind))
		if err != nil {
			return err
		}
		fmt.Fprintf(&beside, "%s: %s; ", kind, perSecond(other.Rate))
	}
	b.row(fmt.Sprintf("put_trajectory of 4 KiB from %d workers, one pool", b.sizes.workers), perSecond(r.Rate), perSecond(rlPutRate), beside.String()+"bare is an actor that does nothing")
	b.row(fmt.Sprintf("memory of that, %s put", mb(int64(b.sizes.puts)*rlPayload)), "held "+mb(r.Held), "at most "+mb(rlMemory), "peak of the process, clients in it: "+mb(synced.peak))
	return nil
}

func (b rlBench) manyRate() error {
	c, r, err := b.one(oneRLMany, strconv.Itoa(b.sizes.puts), string(rlSynced))
	if err != nil {
		return err
	}
	_, bare, err := b.one(oneRLMany, strconv.Itoa(b.sizes.puts), string(rlBare))
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("put_trajectory of 4 KiB from %d workers, %d pools", b.sizes.many, b.sizes.pools), perSecond(r.Rate), perSecond(rlPoolsRate),
		fmt.Sprintf("bare: %s; peak with clients %s", perSecond(bare.Rate), mb(c.peak)))
	return nil
}

func (b rlBench) batchTime() error {
	_, r, err := b.one(oneRLBatch, strconv.Itoa(b.sizes.turns), string(rlSynced))
	if err != nil {
		return err
	}
	_, none, err := b.one(oneRLBatch, strconv.Itoa(b.sizes.turns), string(rlNone))
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("get_batch of %d", rlBatch), ms(r.Took), ms(rlBatchTime), fmt.Sprintf("slowest of %d: %s; without a journal: %s", b.sizes.turns, ms(r.Longest), ms(none.Took)))
	return nil
}

func (b rlBench) unblockTime() error {
	_, r, err := b.one(oneRLUnblock, strconv.Itoa(b.sizes.turns), string(rlSynced))
	if err != nil {
		return err
	}
	_, none, err := b.one(oneRLUnblock, strconv.Itoa(b.sizes.turns), string(rlNone))
	if err != nil {
		return err
	}
	b.row("last train notification to the first unblocked rollout, beyond the copy", ms(r.Took), ms(rlUnblock),
		fmt.Sprintf("slowest of %d: %s; without journals: %s", b.sizes.turns, ms(r.Longest), ms(none.Took)))
	return nil
}

// runRL takes one measurement of the part "rl".
func runRL(ctx context.Context, what string, n int, kind rlJournal) (result, error) {
	var sizes rlSizes
	if err := sizes.read(os.Getenv); err != nil {
		return result{}, err
	}
	dir, err := os.MkdirTemp("", "fray-bench-rl-")
	if err != nil {
		return result{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rig := &rlRig{ctx: ctx, dir: dir, kind: kind}
	defer rig.close()
	switch what {
	case oneRLPuts:
		return rig.puts(n, sizes.workers, 1)
	case oneRLMany:
		return rig.puts(n, sizes.many, sizes.pools)
	case oneRLBatch:
		return rig.batches(n)
	case oneRLUnblock:
		return rig.unblocks(n)
	}
	return result{}, fmt.Errorf("there is no measurement %q", what)
}

// rlRig is a server of actors and its clients.
type rlRig struct {
	ctx     context.Context
	dir     string
	kind    rlJournal
	server  *host.Server
	closing []func()
}

func (g *rlRig) close() {
	for _, closing := range slices.Backward(g.closing) {
		closing()
	}
}

// client is one with a connection of its own.
func (g *rlRig) client() (*actorrpc.Client, error) {
	names, err := resolver.NewFixed(g.server.Address())
	if err != nil {
		return nil, err
	}
	c := actorrpc.NewClient(names, actorrpc.Config{})
	g.closing = append(g.closing, func() { _ = c.Close() })
	return c, nil
}

// puts has workers put trajectories into pools while one consumer for each pool takes batches.
func (g *rlRig) puts(n, workers, pools int) (result, error) {
	names := make([]string, pools)
	for i := range names {
		names[i] = fmt.Sprintf("trajectory_pool_%d", i)
	}
	if err := g.servePools(names); err != nil {
		return result{}, err
	}
	handles := make([][]actorrpc.Handle, workers)
	for w := range handles {
		c, err := g.client()
		if err != nil {
			return result{}, err
		}
		for _, name := range names {
			h, err := c.Lookup(g.ctx, name)
			if err != nil {
				return result{}, err
			}
			handles[w] = append(handles[w], h)
		}
	}
	taken := &rlTaken{done: make(chan struct{})}
	var consumers sync.WaitGroup
	var failed atomic.Pointer[error]
	for i, h := range handles[0] {
		if g.kind != rlBare {
			consumers.Go(func() { note(&failed, taken.consume(g.ctx, h, names[i])) })
		}
	}
	began := time.Now()
	var putting sync.WaitGroup
	for w, to := range handles {
		putting.Go(func() { note(&failed, putShare(g.ctx, to, w, workers, n)) })
	}
	putting.Wait()
	took := time.Since(began)
	close(taken.done)
	consumers.Wait()
	if err := failed.Load(); err != nil {
		return result{}, *err
	}
	if got := int(taken.trajectories.Load()); g.kind != rlBare && n-got >= pools*(rlBatch+rlGroup) {
		return result{}, fmt.Errorf("%d trajectories were put, and %d came in batches", n, got)
	}
	return result{Rate: float64(n) / took.Seconds(), Held: taken.held.Load()}, nil
}

// note keeps the first error.
func note(first *atomic.Pointer[error], err error) {
	if err != nil {
		first.CompareAndSwap(nil, &err)
	}
}

// putShare puts the trajectories of one worker of several: one of each of their groups.
func putShare(ctx context.Context, pools []actorrpc.Handle, worker, workers, n int) error {
	payload := make([]byte, rlPayload)
	for i := worker; i < n; i += workers {
		got, err := actorrpc.Call[rl.Outcome](ctx, pools[i/rlGroup%len(pools)], "put_trajectory", rlHeader(i), payload)
		if err == nil && got != rl.Success {
			err = fmt.Errorf("put %d: %s", i, got)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func rlHeader(i int) rl.Header {
	version, temperature := int64(0), 1.0
	return rl.Header{
		Keys: map[string]any{"group_id": fmt.Sprintf("0/%d", i/rlGroup)}, Fields: []string{"finish_reason", "logprobs", "prompt", "response", "reward", "tokens"},
		Scores: map[string]float64{"reward": 0.5}, TaskID: rl.TaskID(0, i/rlGroup, i%rlGroup), Lease: fmt.Sprintf("train/bench/0/%d", i), Tokens: 128,
		Temperature: &temperature, Version: &version,
	}
}

// errNoBatch is a pool that has no batch though it should.
var errNoBatch = errors.New("the pool has no batch")
