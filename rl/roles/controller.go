package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/checkpoint"
	"github.com/fray-ml/fray/rl/ended"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/record"
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
	Run     string // by which its end is known, ended.RunOf
	End     string // the file in which it is recorded; "": nowhere
	Cast    Cast
	Peers   peer.Peers
	// Checkpoints is the directory of checkpoints, SyncWeights that of the weights for rollouts.
	Checkpoints, SyncWeights string
	Seeds                    map[string]int64 // kept in checkpoints
	Health, Errors           time.Duration    // between checks; 0: none
	HealthTimeout            time.Duration
	Journal                  record.Journal // nil: nothing outlives the process
	Records                  [][]byte
	Now                      func() time.Time
	Log                      *slog.Logger
}

// Controller is the actor that leads a run. Its exported methods are what can be called.
type Controller struct {
	cfg  ControllerConfig
	keep record.Keeper

	mu      sync.Mutex
	machine *run.Machine
	record  controllerRecord
	updates int64           // as they were seen last
	loader  rl.LoaderStatus // likewise
	changed signal
	ordered run.Order
	problem string               // why the present order failed
	running []string             // workers that did not stop
	late    map[string]time.Time // when to ask rollout workers again that did not answer
	abandon func()               // ends the present order, as the run is to be stopped; nil: none is carried out
	left    chan struct{}        // closed once Run has returned: callers that wait get their answers
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
}

// NewController returns the actor, in the state that its journal has. Where another run has ended before, as End records, this
// one begins: at the newest checkpoint or, by its configuration, afresh.
func NewController(cfg ControllerConfig) (*Controller, error) {
	c := &Controller{cfg: cfg, keep: record.Keeper{Journal: cfg.Journal}, machine: run.New(cfg.Machine, cfg.Now()), changed: newSignal(), late: map[string]time.Time{}, left: make(chan struct{})}
	if _, err := record.Kept(cfg.Records, &c.record); err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	if c.record.Known == nil {
		c.record.Known = map[string]string{}
	}
	former, err := ended.Read(cfg.End)
	if err != nil {
		return nil, fmt.Errorf("controller: %w", err)
	}
	switch state := c.record.State; {
	case former != nil || state.Phase == run.Ended:
		return c, c.beginAgain(state.Epoch + 1)
	case state.Phase != "":
		c.cfg.Log.Info("the controller was restarted: the run goes on", "phase", state.Phase)
		c.machine.Restore(state)
	}
	return c, nil
}

// beginAgain begins a run behind another one, in the next epoch: what that has left counts no more. Its end is forgotten once
// the new state is kept.
func (c *Controller) beginAgain(epoch int) error {
	c.machine.Restore(run.State{Phase: run.Initializing, Epoch: epoch, Since: c.cfg.Now()})
	c.record.Known, c.record.Measured = map[string]string{}, false
	if err := c.save(); err != nil {
		return fmt.Errorf("controller: %w", err)
	}
	return ended.Remove(c.cfg.End)
}

// ControllerStatus is how a run is.
type ControllerStatus struct {
	Run      string    `json:"run"`
	Phase    run.Phase `json:"phase"`
	Epoch    int       `json:"epoch"`
	Step     int64     `json:"step"`
	Doing    run.Verb  `json:"doing,omitempty"`
	Problem  string    `json:"problem,omitempty"` // why that has not succeeded yet
	Ended    bool      `json:"ended"`
	Exit     int       `json:"exit"` // status of the controller's process: 1 if the run has failed
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
		Run: c.cfg.Run, Phase: s.Phase, Epoch: s.Epoch, Step: max(c.updates, s.Step), Doing: c.ordered.Verb, Problem: c.problem,
		Ended: s.Phase == run.Ended, Exit: exitOf(s), Failed: s.Failed, Reason: s.Reason, Leftover: s.Leftover, Resumed: s.Path,
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
	if c.abandon != nil {
		c.abandon()
	}
	c.changed.notify()
	return c.save()
}

// WaitEnded returns how the run is as soon as it has ended, or after so many seconds. Processes of the run that have nothing
// else to do end then. A controller that is killed answers nothing: the next one goes on with the run.
func (c *Controller) WaitEnded(ctx context.Context, seconds float64) ControllerStatus {
	ctx, cancel := within(ctx, seconds)
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
			o.Problem = err.Error()
			c.unseen(o.Problem)
		}
		c.step(ctx, o)
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
			if peer.Raised(err) {
				return err
			}
			c.unseen(err.Error())
			if c.Status().Phase == run.Stopping || !sleep.For(ctx, firstWait) {
				return nil
			}
		}
	}
	return nil
}

// pause is how long a controller waits between observations.
func pause(phase run.Phase) time.Duration {
	if isObserved(phase) {
		return 100 * time.Millisecond
	}
	return 20 * time.Millisecond
}

// step carries out what is due.
func (c *Controller) step(ctx context.Context, o run.Observation) {
	order, under, err := c.due(ctx, o)
	defer under.end()
	if err == nil && order.Verb == run.None {
		return
	}
	if err == nil {
		err = c.carryOut(under.ctx, order)
	}
	if err != nil && under.ctx.Err() != nil {
		return // the process ends, and the next one goes on; or the run is to be stopped
	}
	c.note(order, err)
	if err != nil {
		sleep.For(ctx, firstWait*5)
	}
}

// ordered is the context of an order.
type ordered struct {
	ctx context.Context
	end func()
}

// due decides, and keeps the state if it is another one. A stop abandons the order, unless it is part of the stop.
func (c *Controller) due(ctx context.Context, o run.Observation) (run.Order, ordered, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.machine.State().Phase
	order := c.machine.Next(c.cfg.Now(), o)
	if o.Problem == "" && isObserved(before) {
		c.updates, c.loader = o.Step, o.Loader
	}
	c.ordered = order
	if o.Problem == "" && order.Verb == run.None {
		c.problem = ""
	}
	ctx, cancel := context.WithCancel(ctx)
	carried := ordered{ctx: ctx, end: cancel}
	if c.machine.State().Phase != run.Stopping {
		c.abandon = cancel
		carried.end = func() {
			cancel()
			c.mu.Lock()
			defer c.mu.Unlock()
			c.abandon = nil
		}
	}
	var err error
	if c.machine.State().Phase != before {
		err = c.save()
	}
	return order, carried, err
}

// unseen notes why the run could not be observed.
func (c *Controller) unseen(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if why != c.problem { // once, not at each attempt
		c.cfg.Log.Warn("the run cannot be observed", "error", why)
	}
	c.problem = why
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
		switch order.Verb {
		case run.StartValidation: // the last one may have been interrupted after it was measured
			c.record.Measured = false
		case run.EndValidation:
			c.record.Measured = false
			c.record.Validations++
		case run.Load, run.PrepareFresh:
			c.updates = order.Step
		case run.None, run.Initialize, run.SyncWeights, run.StartWorkers, run.Release, run.Rewind, run.StopWorkers, run.Conclude:
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
	c.changed.notify()
}

// isFinal reports whether an order would fail again: the run is being set up, and a module has raised an error, or the checkpoint
// cannot be used.
func isFinal(order run.Order, err error) bool {
	switch order.Verb {
	case run.Initialize, run.Load, run.PrepareFresh:
		_, unusable := errors.AsType[*checkpoint.Error](err)
		return unusable || peer.Raised(err) || errors.Is(err, os.ErrNotExist)
	case run.None, run.SyncWeights, run.StartValidation, run.EndValidation, run.StartWorkers, run.Release, run.Rewind, run.StopWorkers, run.Conclude:
	}
	return false
}

// save keeps the record; c.mu is held.
func (c *Controller) save() error {
	c.record.State = c.machine.State()
	return c.keep.Save(c.record)
}
