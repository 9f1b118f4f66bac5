// Package simulation runs a day of a run with preemptions: all machines wired in one process under a virtual clock. It
// leaves out actors, which rl/roles tests. Start with TestADayOfARun.
package simulation

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/loader"
	"github.com/fray-ml/fray/rl/run"
	"github.com/fray-ml/fray/rl/trainbatch"
	"github.com/fray-ml/fray/rl/trajectory"
	"github.com/fray-ml/fray/rl/weights"
)

const (
	workers   = 200
	groupSize = 8
	batch     = 512 // trajectories of a step
	items     = 1536
	passes    = 5
	steps     = items * passes * groupSize / batch
)

// seeds is how many days are simulated in each mode; `make soak` simulates more.
var seeds = flag.Int("simulation.seeds", 1, "days that are simulated in each mode")

// settings are of one simulation.
type settings struct {
	mode       rl.SyncMode
	threshold  int64
	processors int           // of batches
	processing time.Duration // that one takes at most
	lag        int64         // how many updates a trajectory's weights may be behind those that are trained with it; -1: any number
}

// TestADayOfARun has 200 workers, of which one is preempted every minute, and restarts of every stateful role. The run
// ends, each task is trained on once, each group is whole, and staleness is bounded as its mode says.
func TestADayOfARun(t *testing.T) {
	for name, given := range map[string]settings{
		"sync":                        {mode: rl.Sync, processors: 1, processing: time.Minute, lag: 0},
		"batch-async by 0":            {mode: rl.BatchAsync, processors: 1, processing: time.Minute, lag: 0},
		"batch-async by 2":            {mode: rl.BatchAsync, threshold: 2, processors: 1, processing: time.Minute, lag: 2},
		"batch-async, two processors": {mode: rl.BatchAsync, threshold: 2, processors: 2, processing: 30 * time.Minute, lag: 2}, // batches overtake each other
		"fully-async":                 {mode: rl.FullyAsync, processors: 2, processing: time.Minute, lag: -1},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(*seeds) {
				w := newWorld(t, given, seed)
				w.run()
				w.check(given)
				t.Logf("seed %d: %d steps in %s, %d preemptions, %d restarts of roles, %d failed copies, lag at most %d, %d tasks rolled out again",
					seed, w.step, w.now.Sub(begin).Round(time.Minute), w.preempted, w.restarted, w.failed, w.worst, w.evicted)
			}
		})
	}
}

// check verifies what the run has trained on.
func (w *world) check(given settings) {
	w.t.Helper()
	if w.step != steps {
		w.t.Errorf("%d steps, want %d", w.step, steps)
	}
	groups := map[string]int{}
	for task, times := range w.trained {
		if times != 1 {
			w.t.Errorf("task %s was trained on %d times", task, times)
		}
		var pass, index, run int
		if _, err := fmt.Sscanf(task, "%d/%d/%d", &pass, &index, &run); err != nil {
			w.t.Fatal(err)
		}
		groups[fmt.Sprintf("%d/%d", pass, index)]++
	}
	if len(groups) != items*passes {
		w.t.Errorf("%d groups, want %d", len(groups), items*passes)
	}
	for group, n := range groups {
		if n != groupSize {
			w.t.Errorf("group %s has %d trajectories", group, n)
		}
	}
	if given.lag >= 0 && w.worst > given.lag {
		w.t.Errorf("a trajectory's weights were %d updates behind, want at most %d", w.worst, given.lag)
	}
	if given.mode == rl.BatchAsync && (w.evicted == 0 || w.worst < given.lag) {
		w.t.Errorf("%d tasks were rolled out again, and weights were at most %d updates behind: the bound of %d is not tried", w.evicted, w.worst, given.lag)
	}
	if now := w.now.Sub(begin); w.preempted < 100 || w.restarted < 20 || now < 6*time.Hour {
		w.t.Errorf("%d preemptions and %d restarts in %s: too few to show anything", w.preempted, w.restarted, now)
	}
}

func newWorld(t *testing.T, given settings, seed uint64) *world {
	t.Helper()
	ready := rl.BatchSizeReached
	if given.mode == rl.Sync {
		ready = rl.LoadedBatchFinished
	}
	w := &world{
		t: t, draw: newDraws(seed), processors: given.processors, processing: given.processing, now: begin, trained: map[string]int{}, updates: map[string]bool{}, busy: map[int]bool{},
		loading: loader.Config{
			Length: items, BatchSize: batch / groupSize, Repeat: groupSize, Passes: passes, Shuffle: true, Seed: seed, KeepBatchOrder: given.mode == rl.Sync,
			LeaseTTL: 10 * time.Minute, Instance: "sim",
		},
		pooling: trajectory.Config{Name: "pool", KeyList: []string{"group_id"}, GroupSize: groupSize, BatchSize: batch, Ready: ready},
		syncing: weights.Config{Mode: given.mode, StalenessThreshold: given.threshold, ValidateFreq: 25},
	}
	var err error
	if w.loader, err = loader.New(w.loading); err != nil {
		t.Fatal(err)
	}
	if w.pool, err = trajectory.New(w.pooling); err != nil {
		t.Fatal(err)
	}
	if w.batches, err = trainbatch.New(trainbatch.Config{}); err != nil {
		t.Fatal(err)
	}
	if w.weights, err = weights.New(w.syncing); err != nil {
		t.Fatal(err)
	}
	w.machine = run.New(run.Config{}, begin)
	return w
}
