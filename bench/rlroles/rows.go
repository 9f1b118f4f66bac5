// Package rlroles measures the roles of an RL run in Go, over their sockets: what a trajectory pool takes, how long a batch and
// the end of a weight sync take. It leaves out the workers in Python. Start with Rows.
package rlroles

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// The targets.
const (
	putRate   = 20_000                // trajectories a second into one pool
	poolsRate = 10_000                // into all pools
	batchTime = 20 * time.Millisecond // of a batch of batchSize
	unblock   = 50 * time.Millisecond // beyond the copy of weights
)

const (
	payloadSize = 4 << 10 // bytes of a trajectory
	batchSize   = 512     // trajectories
	groupSize   = 8
	maxBytes    = 64 << 20 // of a pool
)

// Sizes are how much is measured. Each has an environment variable.
type Sizes struct {
	Puts    int // FRAY_BENCH_RL_PUTS: into one pool, and as many into several
	Workers int // FRAY_BENCH_RL_WORKERS: that put into one pool
	Many    int // FRAY_BENCH_RL_MANY: that put into several
	Pools   int // FRAY_BENCH_RL_POOLS
	Turns   int // FRAY_BENCH_RL_TURNS: of what is measured as a median
}

// SizesOf reads the sizes from an environment, as os.Getenv is one.
func SizesOf(environment func(string) string) (Sizes, error) {
	s := Sizes{Puts: 100_000, Workers: 64, Many: 1000, Pools: 8, Turns: 20}
	for name, size := range map[string]*int{"PUTS": &s.Puts, "WORKERS": &s.Workers, "MANY": &s.Many, "POOLS": &s.Pools, "TURNS": &s.Turns} {
		given := environment("FRAY_BENCH_RL_" + name)
		if given == "" {
			continue
		}
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 {
			return s, fmt.Errorf("FRAY_BENCH_RL_%s is %q: want a number from 1 on", name, given)
		}
		*size = n
	}
	return s, nil
}

// Measurement is what is measured.
type Measurement string

// The measurements.
const (
	Puts    Measurement = "puts"    // into one pool
	Many    Measurement = "many"    // into several
	Batch   Measurement = "batch"   // get_batch
	Unblock Measurement = "unblock" // the end of a weight sync
)

// Journal is where a pool keeps what it acknowledges.
type Journal string

// The journals.
const (
	Bare    Journal = "bare"    // no pool at all: an actor that does nothing
	None    Journal = "none"    // memory
	Written Journal = "written" // a file, which outlives the process
	Synced  Journal = "synced"  // likewise, and a crash of the machine: as runs have it
)

// Result is what was measured.
type Result struct {
	Rate    float64       // trajectories a second
	Held    int64         // bytes of trajectories in a pool, at most
	Took    time.Duration // the median
	Longest time.Duration
	Peak    int64 // bytes of memory of the process; 0: it is not known
}

// Measure takes a measurement in this process.
func Measure(ctx context.Context, what Measurement, kind Journal, sizes Sizes) (Result, error) {
	dir, err := os.MkdirTemp("", "fray-bench-rl-")
	if err != nil {
		return Result{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := &rig{ctx: ctx, dir: dir, kind: kind}
	defer g.close()
	switch what {
	case Puts:
		return g.puts(sizes.Puts, sizes.Workers, 1)
	case Many:
		return g.puts(sizes.Puts, sizes.Many, sizes.Pools)
	case Batch:
		return g.batches(sizes.Turns)
	case Unblock:
		return g.unblocks(sizes.Turns)
	}
	return Result{}, fmt.Errorf("there is no measurement %q", what)
}

// Row is one of a table.
type Row struct{ What, Measured, Target, Beside string }

// Rows measures everything. measure is Measure in a process of its own, so that its memory counts alone.
func Rows(sizes Sizes, measure func(Measurement, Journal) (Result, error)) ([]Row, error) {
	var rows []Row
	for _, of := range []func(Sizes, func(Measurement, Journal) (Result, error)) ([]Row, error){putRows, manyRows, batchRows, unblockRows} {
		more, err := of(sizes, measure)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func putRows(sizes Sizes, measure func(Measurement, Journal) (Result, error)) ([]Row, error) {
	r, err := measure(Puts, Synced)
	if err != nil {
		return nil, err
	}
	var beside strings.Builder
	for _, kind := range []Journal{Written, None, Bare} {
		other, err := measure(Puts, kind)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&beside, "%s: %s; ", kind, perSecond(other.Rate))
	}
	return []Row{
		{fmt.Sprintf("put_trajectory of 4 KiB from %d workers, one pool", sizes.Workers), perSecond(r.Rate), perSecond(putRate), beside.String() + "bare is an actor that does nothing"},
		{fmt.Sprintf("memory of that, %s put", mb(int64(sizes.Puts)*payloadSize)), "held " + mb(r.Held), "at most " + mb(maxBytes), "peak of the process, with its clients: " + mb(r.Peak)},
	}, nil
}

func manyRows(sizes Sizes, measure func(Measurement, Journal) (Result, error)) ([]Row, error) {
	r, err := measure(Many, Synced)
	if err != nil {
		return nil, err
	}
	bare, err := measure(Many, Bare)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("put_trajectory of 4 KiB from %d workers, %d pools", sizes.Many, sizes.Pools)
	return []Row{{what, perSecond(r.Rate), perSecond(poolsRate), fmt.Sprintf("bare: %s; peak with clients %s", perSecond(bare.Rate), mb(r.Peak))}}, nil
}

func batchRows(sizes Sizes, measure func(Measurement, Journal) (Result, error)) ([]Row, error) {
	return timeRows(sizes, Batch, fmt.Sprintf("get_batch of %d", batchSize), batchTime, measure)
}

func unblockRows(sizes Sizes, measure func(Measurement, Journal) (Result, error)) ([]Row, error) {
	return timeRows(sizes, Unblock, "last train notification to the first unblocked rollout, beyond the copy", unblock, measure)
}

func timeRows(sizes Sizes, m Measurement, what string, target time.Duration, measure func(Measurement, Journal) (Result, error)) ([]Row, error) {
	r, err := measure(m, Synced)
	if err != nil {
		return nil, err
	}
	none, err := measure(m, None)
	if err != nil {
		return nil, err
	}
	return []Row{{what, ms(r.Took), ms(target), fmt.Sprintf("slowest of %d: %s; without a journal: %s", sizes.Turns, ms(r.Longest), ms(none.Took))}}, nil
}

func perSecond(rate float64) string { return fmt.Sprintf("%.0f/s", rate) }
func ms(d time.Duration) string     { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
func mb(bytes int64) string         { return fmt.Sprintf("%d MB", bytes>>20) }
