package simulation

import (
	"encoding/json"
	"testing"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/loader"
	"github.com/fray-ml/fray/rl/run"
	"github.com/fray-ml/fray/rl/trainbatch"
	"github.com/fray-ml/fray/rl/trajectory"
	"github.com/fray-ml/fray/rl/weights"
)

// carried is a state as a journal keeps it.
func carried[S any](t *testing.T, state S) S {
	t.Helper()
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	var out S
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// restart replaces a role by a new process, which has the state of the former's journal.
func (w *world) restart() {
	w.restarted++
	var err error
	switch w.draw.IntN(5) {
	case 0:
		state := carried(w.t, w.loader.Snapshot())
		if w.loader, err = loader.New(w.loading); err == nil {
			err = w.loader.Restore(state)
			w.loader.RenewAll(w.now)
		}
	case 1:
		state, payloads := w.pool.Snapshot()
		if w.pool, err = trajectory.New(w.pooling); err == nil {
			err = w.pool.Restore(carried(w.t, state), payloads)
		}
	case 2:
		state, payloads := w.batches.Snapshot()
		if w.batches, err = trainbatch.New(trainbatch.Config{}); err == nil {
			err = w.batches.Restore(carried(w.t, state), payloads)
		}
	case 3:
		models := carried(w.t, w.weights.Models())
		if w.weights, err = weights.New(w.syncing); err == nil {
			w.syncs++ // copies of the former are not heard of
			w.carryOut(w.weights.Restore(models))
		}
	case 4:
		state := carried(w.t, w.machine.State())
		w.machine = run.New(run.Config{}, w.now)
		w.machine.Restore(state)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// lead follows the controller's order.
func (w *world) lead() {
	model := w.weights.Of(rl.DefaultModel)
	o := run.Observation{
		Step: w.step, Loader: w.loader.Status(), PoolsEmpty: w.pool.IsEmpty(rl.DefaultModel), TrainBatchesEmpty: w.batches.IsEmpty(),
		Quiescent: !w.training, Waiting: w.weights.Waiting(), Complete: true, Health: rl.Healthy,
		Settled: !model.InCopy && model.Failure == "" && !model.Waiting && !model.Unlocking,
	}
	order := w.machine.Next(w.now, o)
	switch order.Verb {
	case run.EndValidation:
		w.carryOut(w.weights.Validated(order.Tag))
	case run.Release:
		w.t.Fatalf("step %d: the controller finds a standstill where there is none: %+v, weights %+v", w.step, o, model)
	case run.None, run.Initialize, run.PrepareFresh, run.Load, run.SyncWeights, run.StartValidation, run.StartWorkers, run.Rewind,
		run.StopWorkers, run.Conclude:
	}
	if order.Verb != run.None {
		w.machine.Done(w.now, order)
	}
}
