// Package soak holds the model-based test of all that several clients do
// to one stack at once: real leases, real steps and saves, over a store, a
// provider, agents and clocks that fail in every way that real ones do.
//
// A run is one world in a synctest bubble. Its scheduler lets store and provider
// calls through one by one, moves time, and lets faults happen, one a step; all
// its choices come from a seed and a tape of numbers, so that a run can be
// repeated exactly and a failing one be shortened. The oracle (oracle_test.go)
// knows nothing of how the clients work. When the tape is over, faults end and
// the world must become as desired.
//
// What it leaves out: real processes and real stores, which the tests of
// state/store, providers/gcp and cmd/fray have.
//
// Start with run.live; `make soak` runs the long form.
package soak

import (
	"flag"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/propertytest"
)

var (
	stepsFlag = flag.Int("soak.steps", 0, "run at least so many scheduler steps in all, in worlds of random length; 0: the short form")
	seedFlag  = flag.Uint64("soak.seed", propertytest.Seed, "the seed of the first world; 0: a random one")
	rawFlag   = flag.Bool("soak.noshrink", false, "show a failing world as it is instead of shortening it")
	onlyFlag  = flag.Bool("soak.only", false, "run the world of -soak.seed alone and print its trace")
)

// tapeOf is the tape that belongs to a seed.
func tapeOf(seed uint64) []uint64 {
	d := roll(seed, 3)
	tape := make([]uint64, 200+d.n(4000))
	for i := range tape {
		tape[i] = d.r.Uint64()
	}
	return tape
}

// play runs one world.
func play(t *testing.T, seed uint64, tape []uint64, verbose bool) *run {
	t.Helper()
	cryptotest.SetGlobalRandom(t, seed)
	r := newRun(seed, tape)
	r.verbose = verbose
	synctest.Test(t, func(*testing.T) { r.live() })
	return r
}

func TestSoak(t *testing.T) {
	first := *seedFlag
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	if *onlyFlag {
		report(t, play(t, first, tapeOf(first), true))
		return
	}
	seeds := []uint64{1, 2, 3, 4, 5, first}
	total, steps, worlds := newTally(), 0, 0
	for ; worlds < len(seeds) || steps < *stepsFlag; worlds++ {
		seed := first + uint64(worlds)
		if *stepsFlag == 0 {
			seed = seeds[worlds]
		}
		r := play(t, seed, tapeOf(seed), false)
		steps += r.steps
		total.merge(r.tally)
		if r.violated() != nil {
			t.Logf("seed %d: %v\nshortening it; the whole of it is shown by -soak.only -soak.seed=%d", seed, r.violated(), seed)
			if *rawFlag {
				t.FailNow()
			}
			report(t, shrink(t, r, time.Minute))
			break
		}
	}
	t.Logf("first seed %d, %d worlds, %d steps\n%s", first, worlds, steps, total)
}

// report shows a run's trace and what went wrong in it.
func report(t *testing.T, r *run) {
	t.Helper()
	t.Log("\n" + strings.Join(r.trace, "\n"))
	if v := r.violated(); v != nil {
		t.Errorf("seed %d, a tape of %d: %v", r.seed, len(r.tape), v)
	}
}

// The same seed and tape make the same run, or no failure could be repeated.
func TestRunsAreRepeatable(t *testing.T) {
	for seed := range uint64(2) {
		tape := tapeOf(seed)[:200]
		first, second := play(t, seed, tape, true), play(t, seed, tape, true)
		if first.hash == second.hash {
			continue
		}
		for i := range min(len(first.trace), len(second.trace)) {
			if first.trace[i] != second.trace[i] {
				t.Fatalf("seed %d: two runs differ:\nonce  %s\nagain %s", seed, first.trace[i], second.trace[i])
			}
		}
		t.Fatalf("seed %d: two runs differ: %d and %d steps", seed, first.steps, second.steps)
	}
}
