package roles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/run"
	"github.com/fray-ml/fray/sleep"
)

// Cast are the names of the actors of a run.
type Cast struct {
	RolloutWorkers, TrainWorkers, Processors, Pools, Inference, TrainServices []string
	Validates                                                                 bool // there are a validator and its loader
}

// All are the names of all actors that a run has, for the check of their health.
func (c Cast) All() []string {
	all := slices.Concat(c.RolloutWorkers, c.TrainWorkers, c.Processors, c.Pools, c.Inference, c.TrainServices,
		[]string{string(rl.DataLoader), string(rl.TrainBatchPool), string(rl.WeightSyncController)})
	if c.Validates {
		all = append(all, string(rl.ValidateDataLoader), string(rl.Validator))
	}
	return all
}

// ControllerConfig is of the actor controller.
type ControllerConfig struct {
	Machine run.Config
	Cast    Cast
	Peers   Peers
	// Checkpoints is the directory of checkpoints, SyncWeights that of the weights for rollouts.
	Checkpoints, SyncWeights string
	Seeds                    map[string]int64 // kept in checkpoints
	Health, Errors           time.Duration    // between checks; 0: none
	HealthTimeout            time.Duration
	Journal                  Journal // nil: nothing outlives the process
	Records                  [][]byte
	Now                      func() time.Time
	Log                      *slog.Logger
}

// Controller is the actor that leads a run. Its exported methods are what can be called.
type Controller struct {
	cfg  ControllerConfig
	keep keeper

	mu      sync.Mutex
	machine *run.Machine
	record  controllerRecord
	last    run.Observation
	changed signal
	ordered run.Order
	problem string        // why the present order failed
	running []string      // workers that did not stop
	left    chan struct{} // closed once Run has returned: callers that wait get their answers
}

// controllerRecord is what a controller keeps.
type controllerRecord struct {
	State run.State `json:"state"`
	// Initial is the loader's snapshot before the first task.
	Initial []byte `json:"initial,omitempty"`
	// Known are the processes of actors that were started, by name.
	Known map[string]string `json:"known"`
	// Measured is that the metrics of the present validation are computed.
	Measured bool `json:"measured,omitempty"`
	// Validations is how many have ended. With the epoch it names the present one.
	Validations int `json:"validations,omitempty"`
	// Left is that the process of a run that has ended was done: a further one begins a run.
	Left bool `json:"left,omitempty"`
}

// NewController returns the actor, in the state that its journal has. A run that has ended, and whose process was not
// killed before it was done (leave), begins again: at its newest checkpoint or, by its configuration, afresh.
func NewController(cfg ControllerConfig) (*Controller, error) {
	c := &Controller{cfg: cfg, keep: keeper{cfg.Journal}, machine: run.New(cfg.Machine, cfg.Now()), changed: newSignal(), left: make(chan struct{})}
	if _, err := kept(cfg.Records, &c.record); err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	if c.record.Known == nil {
		c.record.Known = map[string]string{}
	}
	switch state := c.record.State; {
	case state.Phase == "":
	case state.Phase == run.Ended && c.record.Left:
		c.record.Left = false
		c.machine.Restore(run.State{Phase: run.Initializing, Epoch: state.Epoch + 1, Since: cfg.Now()})
		c.record.Known, c.record.Measured = map[string]string{}, false
	default:
		c.cfg.Log.Info("the controller was restarted: the run goes on", "phase", state.Phase)
		c.machine.Restore(state)
	}
	return c, nil
}

// ControllerStatus is how a run is.
type ControllerStatus struct {
	Phase    run.Phase `json:"phase"`
	Epoch    int       `json:"epoch"`
	Step     int64     `json:"step"`
	Doing    run.Verb  `json:"doing,omitempty"`
	Problem  string    `json:"problem,omitempty"` // why that has not succeeded yet
	Failed   bool      `json:"failed,omitempty"`
	Reason   string    `json:"reason,omitempty"` // why the run ends
	Leftover string    `json:"leftover,omitempty"`
	// Resumed is the checkpoint with which the run began; "": none.
	Resumed string `json:"resumed,omitempty"`
}

// Status is how the run is.
func (c *Controller) Status() ControllerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.machine.State()
	return ControllerStatus{
		Phase: s.Phase, Epoch: s.Epoch, Step: max(c.last.Step, s.Step), Doing: c.ordered.Verb, Problem: c.problem, Failed: s.Failed, Reason: s.Reason,
		Leftover: s.Leftover, Resumed: s.Path,
	}
}

// Stop ends the run in an orderly way: workers finish what they do, for 30 s at most.
func (c *Controller) Stop(reason ...string) error {
	why := "stopped"
	if len(reason) > 0 && reason[0] != "" {
		why = reason[0]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machine.Stop(c.cfg.Now(), why)
	c.changed.notify()
	return c.save()
}

// WaitEnded returns how the run is as soon as it has ended, or after so many seconds. Processes of the run that have nothing
// else to do end then. A controller that is killed answers nothing: the next one goes on with the run.
func (c *Controller) WaitEnded(ctx context.Context, seconds float64) ControllerStatus {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
	defer cancel()
	for {
		c.mu.Lock()
		ended, changed := c.machine.State().Phase == run.Ended, c.changed.changed
		c.mu.Unlock()
		if ended {
			return c.Status()
		}
		select {
		case <-changed:
		case <-c.left: // this process ends before
			return c.Status()
		case <-ctx.Done():
			return c.Status()
		}
	}
}

// HealthCheck reports that the actor answers.
func (c *Controller) HealthCheck() bool { return true }

// CheckpointSaved is called by a train worker that has written all but run.json of a checkpoint, under a name that does
// not count yet. When it returns run.json is there, and the worker renames the directory.
func (c *Controller) CheckpointSaved(ctx context.Context, step int64, path string) error {
	status, err := ask[rl.LoaderStatus](ctx, c.cfg.Peers, string(rl.DataLoader), "status")
	if err != nil {
		return err
	}
	loader, err := ask[[]byte](ctx, c.cfg.Peers, string(rl.DataLoader), "snapshot")
	if err != nil {
		return err
	}
	weights, err := ask[WeightsStatus](ctx, c.cfg.Peers, string(rl.WeightSyncController), "status")
	if err != nil {
		return err
	}
	c.mu.Lock()
	m := run.Manifest{Step: step, Epoch: c.machine.State().Epoch, Versions: map[string]int64{}, Position: status.Position, Loader: loader, Seeds: c.cfg.Seeds}
	c.mu.Unlock()
	for tag, model := range weights.Models {
		m.Versions[tag] = model.Train
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("checkpoint of step %d: %w", step, err)
	}
	if err := durable.WriteFile(filepath.Join(path, manifestName), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("checkpoint of step %d: %w", step, err)
	}
	return nil
}

const manifestName = "run.json"

// ControllerOptions are how the actor is served.
func ControllerOptions() host.Options {
	once := host.MethodOptions{Idempotent: true}
	return host.Options{MaxConcurrency: concurrency, Methods: map[string]host.MethodOptions{
		"status": once, "wait_ended": once, "stop": once, "health_check": once, "checkpoint_saved": once,
	}}
}

// RunError is that a run has ended by a failure.
type RunError struct{ Reason string }

func (e *RunError) Error() string { return "the run failed: " + e.Reason }

// leave notes that the process of a run that has ended is done. One that is killed before makes no second run: its next
// process is there so that the others hear of the end.
func (c *Controller) leave() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.machine.State().Phase != run.Ended {
		return nil
	}
	c.record.Left = true
	return c.save()
}

// Run leads the run until it has ended, or ctx ends. Its error is a RunError if the run failed. It is called once.
func (c *Controller) Run(ctx context.Context) error {
	defer close(c.left)
	watch := &watcher{controller: c}
	var watching sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { watch.health(ctx) })
	if c.Status().Phase != run.Ended {
		if err := c.register(ctx); err != nil {
			return err
		}
	}
	for {
		c.mu.Lock()
		state, changed := c.machine.State(), c.changed.changed
		c.mu.Unlock()
		if state.Phase == run.Ended {
			if state.Failed {
				return &RunError{Reason: state.Reason}
			}
			return nil
		}
		o, err := watch.observe(ctx, state)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			c.note(run.Order{}, err)
		}
		if err == nil || state.Phase == run.Stopping {
			c.step(ctx, o)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		case <-time.After(pause(state.Phase)):
		}
	}
}

// register has the tracker check the health of all modules. It returns once the tracker is there.
func (c *Controller) register(ctx context.Context) error {
	for _, name := range c.cfg.Cast.All() {
		for {
			err := c.call(ctx, rl.ActivityTracker, "register_module", name, "", run.RoleOf(name) == rl.RolloutWorker)
			if err == nil {
				break
			}
			if raised(err) {
				return err
			}
			c.note(run.Order{}, err)
			if !sleep.For(ctx, firstWait) {
				return nil
			}
		}
	}
	return nil
}

// pause is how long a controller waits between observations.
func pause(phase run.Phase) time.Duration {
	if phase == run.Running {
		return 100 * time.Millisecond
	}
	return 20 * time.Millisecond
}

// step carries out what is due.
func (c *Controller) step(ctx context.Context, o run.Observation) {
	c.mu.Lock()
	before := c.machine.State().Phase
	order := c.machine.Next(c.cfg.Now(), o)
	c.last, c.ordered = o, order
	var err error
	if c.machine.State().Phase != before {
		err = c.save()
	}
	c.mu.Unlock()
	if err == nil && order.Verb == run.None {
		return
	}
	if err == nil {
		err = c.carryOut(ctx, order)
	}
	if err != nil && ctx.Err() != nil {
		return // the process ends, and the next one goes on
	}
	c.note(order, err)
	if err != nil {
		sleep.For(ctx, firstWait*5)
	}
}

// note takes notice of how an order ended.
func (c *Controller) note(order run.Order, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.Now()
	if err == nil {
		if order.Verb != run.StartWorkers || len(order.Modules) == 0 {
			c.cfg.Log.Info("done", "order", order.Verb, "phase", c.machine.State().Phase, "path", order.Path, "reason", order.Reason)
		}
		c.problem = ""
		c.machine.Done(now, order)
		if order.Verb == run.Conclude {
			defer c.changed.notify() // once it is kept
		}
		if order.Verb == run.StartValidation { // the last one may have been interrupted after it was measured
			c.record.Measured = false
		}
		if order.Verb == run.EndValidation {
			c.record.Measured = false
			c.record.Validations++
		}
		if c.machine.State().Phase == run.Ended {
			c.changed.notify()
		}
	} else {
		if err.Error() != c.problem { // once, not at each attempt
			c.cfg.Log.Warn("not done yet", "order", order.Verb, "error", err)
		}
		c.problem = err.Error()
		c.machine.Failed(now, order, err.Error(), isFinal(order, err))
	}
	if err := c.save(); err != nil {
		c.cfg.Log.Error("the state of the controller is not kept", "error", err)
	}
}

// isFinal reports whether an order would fail again: a module has raised an error while the run was being set up.
func isFinal(order run.Order, err error) bool {
	switch order.Verb {
	case run.Initialize, run.Load, run.PrepareFresh:
		return raised(err) || errors.Is(err, os.ErrNotExist)
	case run.None, run.SyncWeights, run.StartValidation, run.EndValidation, run.StartWorkers, run.Release, run.Rewind, run.StopWorkers, run.Conclude:
	}
	return false
}

// save keeps the record; c.mu is held.
func (c *Controller) save() error {
	c.record.State = c.machine.State()
	return c.keep.save(c.record)
}

// checkpointPath is where a checkpoint is, by its name or its path.
func (c *Controller) checkpointPath(name string) string {
	if name == "" || filepath.IsAbs(name) || filepath.Base(name) != name {
		return name
	}
	return filepath.Join(c.cfg.Checkpoints, name)
}

// restarted are the actors of a run that have another process than when they were started, sorted.
func (c *Controller) restarted(now map[string]string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name, incarnation := range now {
		if known, ok := c.record.Known[name]; ok && known != incarnation {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// know notes the processes that actors have: of some, or of all if none are named.
func (c *Controller) know(now map[string]string, names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(names) == 0 {
		c.record.Known = maps.Clone(now)
		return
	}
	for _, name := range names {
		c.record.Known[name] = now[name]
	}
}
