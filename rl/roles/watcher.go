package roles

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/activity"
	"github.com/fray-ml/fray/rl/checkpoint"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/run"
	"github.com/fray-ml/fray/sleep"
)

// watcher observes a run for its controller.
type watcher struct {
	controller *Controller

	mu   sync.Mutex
	gone map[string]time.Duration

	errors  activity.HealthStatus // as they were checked last
	checked time.Time             // then
}

// isObserved reports whether a run is observed in a phase: workers may have been started.
func isObserved(phase run.Phase) bool {
	return slices.Contains([]run.Phase{run.Running, run.Validating, run.ValidatingFirst}, phase)
}

// health checks the modules until ctx ends, while the run is under way.
func (w *watcher) health(ctx context.Context) {
	cfg := w.controller.cfg
	if cfg.Health <= 0 {
		return
	}
	for sleep.For(ctx, cfg.Health) {
		if !isObserved(w.controller.Status().Phase) {
			continue // modules may not be there yet, or not any more
		}
		seconds, err := peer.Ask[map[string]float64](ctx, cfg.Peers, string(rl.ActivityTracker), "get_unhealthy_modules", cfg.HealthTimeout.Seconds())
		if err != nil {
			cfg.Log.Warn("the modules' health is not known", "error", err)
			continue
		}
		gone := map[string]time.Duration{}
		for name, s := range seconds {
			gone[name] = time.Duration(s * float64(time.Second))
		}
		w.mu.Lock()
		w.gone = gone
		w.mu.Unlock()
	}
}

// observe reads what the controller decides on, in the order in which data flows.
func (w *watcher) observe(ctx context.Context, state run.State) (run.Observation, error) {
	c := w.controller
	o := run.Observation{}
	w.mu.Lock()
	o.Gone = maps.Clone(w.gone)
	w.mu.Unlock()
	switch state.Phase {
	case run.Loading:
		return o, w.checkpoints(&o)
	case run.Running, run.Validating, run.ValidatingFirst:
		ctx, cancel := context.WithTimeout(ctx, observeTimeout)
		defer cancel()
		var err error
		if o.Step, err = peer.Ask[int64](ctx, c.cfg.Peers, string(rl.ActivityTracker), "get_training_step"); err != nil {
			return o, err
		}
		if err := w.modules(ctx, &o); err != nil {
			return o, err
		}
		if len(o.Restarted) > 0 {
			return o, nil // the others may be among them
		}
		if state.Phase != run.Running {
			return o, w.validation(ctx, &o)
		}
		return o, w.flow(ctx, &o)
	case run.Stopping:
		ctx, cancel := context.WithTimeout(ctx, observeTimeout)
		defer cancel()
		quiescent, err := peer.Ask[bool](ctx, c.cfg.Peers, string(rl.ActivityTracker), "is_quiescent")
		o.Quiescent = quiescent && state.Begun && c.stopped()
		return o, err
	case run.Initializing, run.Syncing, run.Starting, run.Rewinding, run.Ended:
	}
	return o, nil
}

// observeTimeout is how long an observation may take: an actor that is being restarted is waited for elsewhere.
const observeTimeout = 5 * time.Second

// modules reads what modules have reported, as often as it is to be checked, and which have new processes.
func (w *watcher) modules(ctx context.Context, o *run.Observation) error {
	c := w.controller
	if now := c.cfg.Now(); c.cfg.Errors > 0 && now.Sub(w.checked) >= c.cfg.Errors {
		health, err := peer.Ask[activity.HealthStatus](ctx, c.cfg.Peers, string(rl.ActivityTracker), "get_error_health_status")
		if err != nil {
			return err
		}
		w.errors, w.checked = health, now
	}
	o.Health, o.Critical, o.Message = w.errors.Status, w.errors.Critical, w.errors.Message
	now, err := c.cfg.Peers.Incarnations(ctx)
	if err != nil {
		return err
	}
	o.Restarted = c.restarted(now)
	return nil
}

func (w *watcher) validation(ctx context.Context, o *run.Observation) (err error) {
	if !w.controller.cfg.Cast.Validates {
		o.Complete = true
		return nil
	}
	c := w.controller
	c.mu.Lock()
	o.Complete = c.record.Measured // it is being ended: its loader may have been reset for the next one
	c.mu.Unlock()
	if o.Complete {
		return nil
	}
	o.Complete, err = peer.Ask[bool](ctx, w.controller.cfg.Peers, string(rl.Validator), "is_complete")
	return err
}

func (w *watcher) flow(ctx context.Context, o *run.Observation) (err error) {
	peers := w.controller.cfg.Peers
	if o.Loader, err = peer.Ask[rl.LoaderStatus](ctx, peers, string(rl.DataLoader), "status"); err != nil {
		return err
	}
	o.PoolsEmpty = true
	for _, pool := range w.controller.cfg.Cast.Pools {
		empty, err := peer.Ask[bool](ctx, peers, pool, "is_empty")
		if err != nil {
			return err
		}
		o.PoolsEmpty = o.PoolsEmpty && empty
	}
	if o.TrainBatchesEmpty, err = peer.Ask[bool](ctx, peers, string(rl.TrainBatchPool), "is_empty"); err != nil {
		return err
	}
	if o.Quiescent, err = peer.Ask[bool](ctx, peers, string(rl.ActivityTracker), "is_quiescent"); err != nil {
		return err
	}
	status, err := peer.Ask[WeightsStatus](ctx, peers, string(rl.WeightSyncController), "status")
	if err != nil {
		return err
	}
	o.Settled, o.Waiting = status.Settled, status.Waiting
	if len(status.Models) == 0 { // a class of the user that does not count them
		o.Trained = o.Step
	}
	for _, model := range status.Models {
		o.Trained += model.Train
	}
	return nil
}

// checkpoints lists the directory of checkpoints.
func (w *watcher) checkpoints(o *run.Observation) error {
	cfg := w.controller.cfg
	if path := cfg.Machine.ResumePath; path != "" {
		_, err := os.Stat(filepath.Join(path, checkpoint.ManifestName))
		o.Missing = errors.Is(err, fs.ErrNotExist)
	}
	var err error
	o.Checkpoints, err = checkpoint.Names(cfg.Checkpoints)
	return err
}
