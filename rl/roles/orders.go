package roles

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/checkpoint"
	"github.com/fray-ml/fray/rl/ended"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/run"
)

// carryOut carries an order out. It may be repeated after a failure, or by the controller's next process.
func (c *Controller) carryOut(ctx context.Context, order run.Order) error {
	switch order.Verb {
	case run.Initialize:
		return c.all(ctx, c.cfg.Cast.TrainWorkers, "initialize_workers")
	case run.PrepareFresh:
		return c.prepareFresh(ctx, order)
	case run.Load:
		return c.load(ctx, order)
	case run.SyncWeights:
		return c.call(ctx, rl.WeightSyncController, "sync_weight_to_rollout_service", rl.DefaultModel)
	case run.StartValidation:
		return c.startValidation(ctx)
	case run.EndValidation:
		return c.endValidation(ctx, order)
	case run.StartWorkers:
		return c.startWorkers(ctx, order)
	case run.Release:
		return c.release(ctx)
	case run.Rewind:
		return c.rewind(ctx)
	case run.StopWorkers:
		return c.stopWorkers(ctx)
	case run.Conclude:
		return c.conclude(ctx, order)
	case run.None:
	}
	return nil
}

func (c *Controller) call(ctx context.Context, role rl.Role, method string, args ...any) error {
	if _, err := c.cfg.Peers.Call(ctx, string(role), method, args...); err != nil {
		return fmt.Errorf("%s.%s: %w", role, method, err)
	}
	return nil
}

func (c *Controller) all(ctx context.Context, actors []string, method string, args ...any) error {
	return peer.ErrorOf(method, peer.CallAll(ctx, c.cfg.Peers, actors, method, args...))
}

// prepareFresh begins at step 0: the initial weights are saved for rollouts, and what a former run has left is dropped.
func (c *Controller) prepareFresh(ctx context.Context, order run.Order) error {
	if err := checkpoint.SetAside(c.cfg.Checkpoints, -1); err != nil {
		return err
	}
	if err := c.knowAll(ctx); err != nil {
		return err
	}
	initial, err := c.initial(ctx)
	if err != nil {
		return err
	}
	if order.Epoch > 0 {
		if err := c.drop(ctx, initial, order.Epoch); err != nil {
			return err
		}
		if err := c.all(ctx, c.cfg.Cast.TrainWorkers, "load_checkpoint", ""); err != nil {
			return err
		}
	}
	if err := c.all(ctx, c.cfg.Cast.Processors, "load_checkpoint", ""); err != nil { // a former run may have left its state
		return err
	}
	if err := c.begin(ctx, 0); err != nil {
		return err
	}
	return c.all(ctx, c.cfg.Cast.TrainWorkers, "save_sync_weights", c.cfg.SyncWeights)
}

// initial is the loader's snapshot before the first task of the run.
func (c *Controller) initial(ctx context.Context) ([]byte, error) {
	c.mu.Lock()
	initial := c.record.Initial
	c.mu.Unlock()
	if initial != nil {
		return initial, nil
	}
	initial, err := peer.Ask[[]byte](ctx, c.cfg.Peers, string(rl.DataLoader), "snapshot")
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Initial = initial
	return initial, c.save()
}

// drop empties the pools, and sets the loader to a snapshot: all of them are in the given epoch then.
func (c *Controller) drop(ctx context.Context, loader []byte, epoch int) error {
	if err := c.all(ctx, append(slices.Clone(c.cfg.Cast.Pools), string(rl.TrainBatchPool)), "rewind", epoch); err != nil {
		return err
	}
	return c.call(ctx, rl.DataLoader, "restore", loader, epoch)
}

// begin sets the step everywhere.
func (c *Controller) begin(ctx context.Context, step int64) error {
	if err := c.call(ctx, rl.ActivityTracker, "set_training_step", step); err != nil {
		return err
	}
	return c.call(ctx, rl.WeightSyncController, "set_model_version", rl.DefaultModel, step)
}

// load begins at a checkpoint: its weights, its step, and the data behind those that it was made of.
func (c *Controller) load(ctx context.Context, order run.Order) error {
	path := c.checkpointPath(order.Path)
	m, err := checkpoint.Read(path, order.Step)
	if err != nil {
		return err
	}
	if err := c.knowAll(ctx); err != nil {
		return err
	}
	own := int64(-1) // a checkpoint of elsewhere: none here is the run's
	if checkpoint.IsSame(filepath.Dir(path), c.cfg.Checkpoints) {
		own = order.Step
	}
	if err := checkpoint.SetAside(c.cfg.Checkpoints, own); err != nil {
		return err
	}
	if _, err := c.initial(ctx); err != nil {
		return err
	}
	if err := c.skip(ctx, m, order.Epoch); err != nil {
		return err
	}
	if err := c.all(ctx, c.cfg.Cast.TrainWorkers, "load_checkpoint", path); err != nil {
		return err
	}
	if err := c.all(ctx, c.cfg.Cast.TrainWorkers, "set_train_step", m.Step); err != nil {
		return err
	}
	if err := c.all(ctx, c.cfg.Cast.Processors, "load_checkpoint", path); err != nil {
		return err
	}
	if err := c.begin(ctx, m.Step); err != nil {
		return err
	}
	return c.all(ctx, c.cfg.Cast.TrainWorkers, "save_sync_weights", c.cfg.SyncWeights)
}

// skip leaves out the data that a checkpoint has used: to the loader's state in it or, where another program wrote it, so
// many batches.
func (c *Controller) skip(ctx context.Context, m run.Manifest, epoch int) error {
	if len(m.Loader) > 0 {
		if err := c.drop(ctx, m.Loader, epoch); err != nil {
			return err
		}
		return giveUntrained(ctx, c, m.Untrained, max(epoch, m.Epoch))
	}
	initial, err := c.initial(ctx)
	if err != nil {
		return err
	}
	if err := c.drop(ctx, initial, epoch); err != nil {
		return err
	}
	return c.call(ctx, rl.DataLoader, "skip_batches", m.Step)
}

// rewind has no worker go on with what is about to be dropped, nor validate any more: what they roll out until the weights of the
// checkpoint are served would count as made by these.
func (c *Controller) rewind(ctx context.Context) error {
	cast := c.cfg.Cast
	if cast.Validates {
		if err := c.all(ctx, cast.RolloutWorkers, "end_validate"); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.record.Measured = false
	c.mu.Unlock()
	return c.all(ctx, slices.Concat(cast.RolloutWorkers, cast.TrainWorkers, cast.Processors), "stop")
}

// startValidation begins a validation, without what one that was given up has left.
func (c *Controller) startValidation(ctx context.Context) error {
	if !c.cfg.Cast.Validates {
		return nil
	}
	if err := c.call(ctx, rl.Validator, "clear"); err != nil { // of a validation that the run has gone back from
		return err
	}
	if err := c.call(ctx, rl.ValidateDataLoader, "reset"); err != nil {
		return err
	}
	if err := callRollouts(ctx, c, c.cfg.Cast.RolloutWorkers, "begin_validate"); err != nil {
		return err
	}
	c.mu.Lock()
	phase := c.machine.State().Phase
	c.mu.Unlock()
	if phase != run.ValidatingFirst {
		return nil
	}
	now, err := c.cfg.Peers.Incarnations(ctx) // workers have not been started yet
	if err != nil {
		return err
	}
	if err := callRollouts(ctx, c, c.cfg.Cast.RolloutWorkers, "stop", "run"); err != nil {
		return err
	}
	forgetLate(c, now, c.cfg.Cast.RolloutWorkers)
	return nil
}

// endValidation has metrics logged, and then leads workers back, unlocks and resets, in this order.
func (c *Controller) endValidation(ctx context.Context, order run.Order) error {
	if c.cfg.Cast.Validates {
		if err := c.measure(ctx); err != nil {
			return err
		}
		if err := callRollouts(ctx, c, c.cfg.Cast.RolloutWorkers, "end_validate"); err != nil {
			return err
		}
		noteLate(c)
	}
	if err := c.call(ctx, rl.WeightSyncController, "end_validate", order.Tag, validationOf(c)); err != nil {
		return err
	}
	if c.cfg.Cast.Validates {
		return c.call(ctx, rl.ValidateDataLoader, "reset")
	}
	return nil
}

// validationOf names the present validation, so that what ends it counts once.
func validationOf(c *Controller) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("%d/%d", c.machine.State().Epoch, c.record.Validations)
}

func (c *Controller) measure(ctx context.Context) error {
	c.mu.Lock()
	measured := c.record.Measured
	c.mu.Unlock()
	if measured {
		return nil
	}
	metrics, err := peer.Ask[map[string]float64](ctx, c.cfg.Peers, string(rl.Validator), "compute_and_log_metrics", validationOf(c))
	switch {
	case peer.Raised(err): // no trajectory came of it; training goes on
		c.cfg.Log.Error("the validation has no result", "error", err)
		report := map[string]any{"type": "ValidationError", "message": err.Error()}
		_, _ = c.cfg.Peers.Call(ctx, string(rl.ActivityTracker), "report_exception", string(rl.Controller), "validation", report, string(rl.SeverityWarning))
	case err != nil:
		return err
	default:
		c.cfg.Log.Info("validated", "metrics", metrics)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record.Measured = true
	return c.save()
}

// start has workers run. One that runs already is stopped before: it finishes what it does.
func (c *Controller) start(ctx context.Context, workers []string) error {
	if err := c.all(ctx, workers, "stop"); err != nil {
		return err
	}
	return c.all(ctx, workers, "run")
}

// startWorkers starts all workers, or those whose processes are new.
func (c *Controller) startWorkers(ctx context.Context, order run.Order) error {
	now, err := c.cfg.Peers.Incarnations(ctx)
	if err != nil {
		return err
	}
	cast := c.cfg.Cast
	if len(order.Modules) == 0 {
		workers := slices.Concat(cast.Processors, cast.TrainWorkers)
		c.know(now, workers)
		c.knowNew(now)
		if err := callRollouts(ctx, c, cast.RolloutWorkers, "stop", "run"); err != nil {
			return err
		}
		forgetLate(c, now, cast.RolloutWorkers)
		return c.start(ctx, workers)
	}
	for _, name := range order.Modules {
		if err := c.restart(ctx, name); err != nil {
			return err
		}
		c.cfg.Log.Info("an actor was restarted and goes on", "actor", name)
	}
	forgetLate(c, now, order.Modules)
	return nil
}

// restart has the new process of an actor go on where the former was.
func (c *Controller) restart(ctx context.Context, name string) error {
	one := []string{name}
	switch run.RoleOf(name) {
	case rl.RolloutWorker:
		where := "end_validate" // it may have missed that
		if c.isValidating() {
			where = "begin_validate"
		}
		if !c.cfg.Cast.Validates {
			return callRollouts(ctx, c, one, "health_check", "stop", "run")
		}
		return callRollouts(ctx, c, one, "health_check", where, "stop", "run")
	case rl.AlgorithmProcessor:
		return c.start(ctx, one)
	case rl.TrainWorker:
		path, err := c.newest()
		if err != nil {
			return err
		}
		if err := c.all(ctx, one, "stop"); err != nil {
			return err
		}
		if err := c.all(ctx, one, "load_checkpoint", path); err != nil {
			return err
		}
		return c.all(ctx, one, "run")
	case rl.InferenceService: // it has none of the weights
		return c.call(ctx, rl.WeightSyncController, "sync_weight_to_rollout_service", rl.DefaultModel)
	case rl.TrajectoryPool, rl.TrainBatchPool, rl.WeightSyncController, rl.DataLoader, rl.ValidateDataLoader, rl.Validator,
		rl.ActivityTracker, rl.Controller, rl.ExperimentLogger, rl.TrainService:
	}
	return nil // they go on by themselves
}

func (c *Controller) isValidating() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.machine.State()
	return s.Begun && (s.Phase == run.Validating || s.Phase == run.ValidatingFirst)
}

// newest is the path of the newest checkpoint, "" if there is none.
func (c *Controller) newest() (string, error) {
	names, err := checkpoint.Names(c.cfg.Checkpoints)
	if err != nil {
		return "", err
	}
	name, _, ok := run.Latest(names)
	if !ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.checkpointPath(c.machine.State().Path), nil
	}
	return c.checkpointPath(name), nil
}

// release goes on to the next batch, as no batch is left that would lead there.
func (c *Controller) release(ctx context.Context) error {
	c.mu.Lock()
	at := c.loader.Position // which is another one once abandon has unlocked it, or the answer to an unlock was lost
	c.mu.Unlock()
	if err := c.call(ctx, rl.WeightSyncController, "abandon", rl.DefaultModel); err != nil {
		return err
	}
	return c.call(ctx, rl.DataLoader, "unlock_for_next_batch", at)
}

// stopWorkers has all workers stop. The error names those that did not by the deadline.
func (c *Controller) stopWorkers(ctx context.Context) error {
	c.mu.Lock()
	deadline := c.machine.Deadline()
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, deadline.Sub(c.cfg.Now()))
	defer cancel()
	cast := c.cfg.Cast
	failed := peer.CallAll(ctx, c.cfg.Peers, slices.Concat(cast.RolloutWorkers, cast.Processors, cast.TrainWorkers), "stop")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = slices.Sorted(maps.Keys(failed))
	return peer.ErrorOf("stop", failed)
}

// stopped reports whether all workers have stopped, as far as is known.
func (c *Controller) stopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.running) == 0
}

// conclude notes what has not ended, and records the end, from which each process of the run that is started later knows of it.
func (c *Controller) conclude(ctx context.Context, order run.Order) error {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	tracker := string(rl.ActivityTracker)
	if _, err := c.cfg.Peers.Call(ctx, tracker, "experiment_logger_flush", flushTime.Seconds()); err != nil {
		c.cfg.Log.Warn("the last metrics may not have reached their logger", "error", err)
	}
	quiescent, err := peer.Ask[bool](ctx, c.cfg.Peers, tracker, "is_quiescent")
	summary := ""
	if err == nil && !quiescent {
		summary, err = peer.Ask[string](ctx, c.cfg.Peers, tracker, "get_running_status_summary")
	}
	if err != nil {
		summary = err.Error()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var left []string
	if len(c.running) > 0 {
		left = append(left, "did not stop: "+strings.Join(c.running, ", "))
	}
	if summary != "" {
		left = append(left, summary)
	}
	what := strings.Join(left, "\n")
	c.machine.Left(what)
	if what != "" {
		c.cfg.Log.Warn("the run has ended; not all activities have", "left", what)
	}
	state := c.machine.State()
	end := ended.Record{
		Run: c.cfg.Run, Exit: exitOf(state), Reason: order.Reason, Step: max(c.updates, state.Step), Leftover: what, Time: c.cfg.Now().UTC(),
	}
	return end.Write(c.cfg.End)
}

// flushTime is how long the end of a run waits for metrics that are on their way to a logger.
const flushTime = 3 * time.Second
