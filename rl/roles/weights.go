package roles

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/weights"
	"github.com/fray-ml/fray/sleep"
)

// Copier copies weights to all that answer prompts.
type Copier interface {
	// Copy returns once all inference services have a version; the error names those that do not.
	Copy(ctx context.Context, tag rl.ModelTag, version int64) error
}

// WeightsConfig is of the actor weight_sync_controller.
type WeightsConfig struct {
	Machine weights.Config
	Peers   Peers
	Copier  Copier
	Pools   []string // actors of the trajectory pools
	Journal Journal  // nil: nothing outlives the process
	Records [][]byte // of the journal, as it was opened
	Log     *slog.Logger
}

// Weights is the actor of weight synchronization. Its exported methods are what can be called.
type Weights struct {
	peers  Peers
	copier Copier
	pools  []string
	log    *slog.Logger
	keep   keeper

	mu      sync.Mutex
	machine *weights.Machine
	queue   []step
	changed signal
}

// step is an action that is to be carried out; done is closed then, or nil.
type step struct {
	weights.Action
	done chan struct{}
}

// NewWeights returns the actor, in the state that its journal has.
func NewWeights(cfg WeightsConfig) (*Weights, error) {
	machine, err := weights.New(cfg.Machine)
	if err != nil {
		return nil, err
	}
	w := &Weights{
		peers: cfg.Peers, copier: cfg.Copier, pools: cfg.Pools, log: cfg.Log, keep: keeper{cfg.Journal}, machine: machine, changed: newSignal(),
	}
	var models map[rl.ModelTag]weights.Model
	found, err := kept(cfg.Records, &models)
	if err != nil {
		return nil, fmt.Errorf("weight sync controller: %w", err)
	}
	if found {
		w.enqueue(machine.Restore(models), nil)
	}
	return w, nil
}

// enqueue adds actions behind those that are not carried out yet. done is closed after the last of them that is no copy
// and all before it, also if there are none.
func (w *Weights) enqueue(actions []weights.Action, done chan struct{}) {
	last := -1
	for i, action := range actions {
		if action.Verb != weights.Copy {
			last = i
		}
	}
	for i, action := range actions {
		s := step{Action: action}
		if i == last {
			s.done = done
		}
		w.queue = append(w.queue, s)
	}
	switch {
	case last >= 0 || done == nil:
	case len(w.queue) == 0:
		close(done)
	default: // a batch that is reported again is not given before the locks that the first report asked for
		w.queue = append(w.queue, step{done: done})
	}
	w.changed.notify()
}

// change changes the machine, keeps its state, and has its actions carried out; it returns once they are, except for
// copies.
func (w *Weights) change(ctx context.Context, decide func(*weights.Machine) []weights.Action) error {
	w.mu.Lock()
	done := make(chan struct{})
	actions := decide(w.machine)
	err := w.keep.save(w.machine.Models())
	if err == nil {
		w.enqueue(actions, done)
	}
	w.mu.Unlock()
	if err != nil {
		return err
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// await waits until the state of a model fulfils a condition.
func (w *Weights) await(ctx context.Context, tag rl.ModelTag, fulfilled func(weights.Model) bool) error {
	for {
		w.mu.Lock()
		ok, changed := fulfilled(w.machine.Of(tag)), w.changed.changed
		w.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// CheckRolloutServiceStatus is whether rollouts of a model may ask its inference service: "continue" or "block".
func (w *Weights) CheckRolloutServiceStatus(tag string) rl.RolloutStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.machine.RolloutStatus(tag)
}

// WaitRolloutService returns "continue" as soon as rollouts may go on, and "block" after so many seconds.
func (w *Weights) WaitRolloutService(ctx context.Context, tag string, seconds float64) rl.RolloutStatus {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
	defer cancel()
	if w.await(ctx, tag, func(m weights.Model) bool { return m.Phase == weights.Running }) != nil {
		return rl.Block
	}
	return rl.Continue
}

// TrajectoryPoolNotifyBatchReady is called by a pool before it gives a batch; its ID may follow. When it returns the
// pools are locked, if they are to be.
func (w *Weights) TrajectoryPoolNotifyBatchReady(ctx context.Context, tag string, more ...any) error {
	id, err := optional(more).text(0, "batch_id")
	if err != nil {
		return err
	}
	return w.change(ctx, func(m *weights.Machine) []weights.Action { return m.BatchReady(tag, id) })
}

// TrainWorkerNotifyWeightUpdate is called by a train worker whose new weights are in the sync buffer; an ID of the update may
// follow. It returns once rollouts have these weights, if they are to have them before the next update: the buffer may be
// written again then.
func (w *Weights) TrainWorkerNotifyWeightUpdate(ctx context.Context, worker, tag string, more ...any) error {
	id, err := optional(more).text(0, "update_id")
	if err != nil {
		return err
	}
	if err := w.change(ctx, func(m *weights.Machine) []weights.Action { return m.Updated(tag, worker, id) }); err != nil {
		return err
	}
	return w.await(ctx, tag, func(m weights.Model) bool { return !m.InCopy && m.Failure == "" })
}

// SyncWeightToRolloutService copies the newest weights. Its error is that not all inference services have them; rollouts
// stay blocked then, and the copy is tried again.
func (w *Weights) SyncWeightToRolloutService(ctx context.Context, tag string) error {
	if err := w.change(ctx, func(m *weights.Machine) []weights.Action { return m.Sync(tag) }); err != nil {
		return err
	}
	failure := ""
	err := w.await(ctx, tag, func(m weights.Model) bool { failure = m.Failure; return !m.InCopy })
	if err == nil && failure != "" {
		return &SyncError{Tag: rl.TagOf(tag), Why: failure}
	}
	return err
}

// SyncError is that not all inference services have the newest weights.
type SyncError struct {
	Tag rl.ModelTag
	Why string
}

func (e *SyncError) Error() string {
	return fmt.Sprintf("sync weights of model %q to the inference services: %s", e.Tag, e.Why)
}

// GetRolloutModelVersion is the version that rollouts have.
func (w *Weights) GetRolloutModelVersion(tag string) int64 { return w.of(tag).Rollout }

// GetTrainModelVersion is how many updates there were.
func (w *Weights) GetTrainModelVersion(tag string) int64 { return w.of(tag).Train }

func (w *Weights) of(tag string) weights.Model {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.machine.Of(tag)
}

// IsWaitingForValidation reports whether a validation is due for any model. The controller asks it.
func (w *Weights) IsWaitingForValidation() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.machine.Waiting()) > 0
}

// EndValidate ends a validation: training goes on.
func (w *Weights) EndValidate(ctx context.Context, tag string) error {
	return w.change(ctx, func(m *weights.Machine) []weights.Action { return m.Validated(tag) })
}

// SetModelVersion begins at a version: that of a checkpoint. A copy is to follow.
func (w *Weights) SetModelVersion(ctx context.Context, tag string, version int64) error {
	return w.change(ctx, func(m *weights.Machine) []weights.Action { m.Begin(tag, version); return nil })
}

// Abandon is called when no batch is left that could be trained on: what waits for one goes on.
func (w *Weights) Abandon(ctx context.Context, tag string) error {
	return w.change(ctx, func(m *weights.Machine) []weights.Action { return m.Abandon(tag) })
}

// WeightsStatus is one reading of weight synchronization.
type WeightsStatus struct {
	Models  map[rl.ModelTag]weights.Model `json:"models"`
	Waiting []rl.ModelTag                 `json:"waiting"` // for a validation
	Settled bool                          `json:"settled"` // no copy, no failure, no validation due, nothing unlocked halfway
}

// Status is the state of all models.
func (w *Weights) Status() WeightsStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := WeightsStatus{Models: w.machine.Models(), Waiting: w.machine.Waiting(), Settled: len(w.queue) == 0}
	for _, model := range s.Models {
		if model.InCopy || model.Failure != "" || model.Waiting || model.Unlocking {
			s.Settled = false
		}
	}
	return s
}

// HealthCheck reports that the actor answers.
func (w *Weights) HealthCheck() bool { return true }

// WeightsOptions are how the actor is served.
func WeightsOptions() host.Options {
	once := host.MethodOptions{Idempotent: true}
	return host.Options{MaxConcurrency: concurrency, Methods: map[string]host.MethodOptions{
		"check_rollout_service_status": once, "wait_rollout_service": once, "get_rollout_model_version": once, "get_train_model_version": once,
		"is_waiting_for_validation": once, "status": once, "health_check": once, "sync_weight_to_rollout_service": once, "end_validate": once,
	}}
}

// Tend carries actions out, in their order, until ctx ends. Copies run beside the others.
func (w *Weights) Tend(ctx context.Context) error {
	var copies sync.WaitGroup
	defer copies.Wait()
	for {
		w.mu.Lock()
		changed := w.changed.changed
		if len(w.queue) == 0 {
			w.mu.Unlock()
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		next := w.queue[0]
		w.mu.Unlock()
		if next.Verb == weights.Copy {
			copies.Go(func() { w.copy(ctx, next.Action) })
		} else if !w.carryOut(ctx, next.Action) {
			return nil
		}
		w.mu.Lock()
		w.queue = w.queue[1:]
		w.changed.notify()
		w.mu.Unlock()
		if next.done != nil {
			close(next.done)
		}
	}
}

// The waits between attempts.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 5 * time.Second
)

// carryOut locks or unlocks, as often as it takes: a pool that is being restarted is there again some time. It
// reports whether that was done before ctx ended.
func (w *Weights) carryOut(ctx context.Context, action weights.Action) bool {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := w.attempt(ctx, action)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		w.log.Warn("weight sync waits for an actor", "action", action.Verb, "model", action.Tag, "error", err)
		if !sleep.For(ctx, wait) {
			return false
		}
	}
}

func (w *Weights) attempt(ctx context.Context, action weights.Action) error {
	switch action.Verb {
	case weights.LockPools:
		return partsError("notify_weight_sync_starting", callAll(ctx, w.peers, w.pools, "notify_weight_sync_starting", action.Tag))
	case weights.UnlockPools:
		return partsError("unlock_for_weight_sync", callAll(ctx, w.peers, w.pools, "unlock_for_weight_sync", action.Tag))
	case weights.UnlockLoader:
		return w.unlockLoader(ctx, action)
	case weights.Copy:
	}
	return nil
}

// unlockLoader unlocks the loader where it was before the first attempt: a further one changes nothing if the answer to
// another was lost.
func (w *Weights) unlockLoader(ctx context.Context, action weights.Action) error {
	name := string(rl.DataLoader)
	at, isFirst := w.of(action.Tag).UnlockAt, false
	for {
		if at == nil {
			status, err := ask[rl.LoaderStatus](ctx, w.peers, name, "status")
			if err != nil {
				return err
			}
			if err := w.unlockAt(action.Tag, status.Position); err != nil {
				return err
			}
			at, isFirst = &status.Position, true
		}
		unlocked, err := ask[bool](ctx, w.peers, name, "unlock_for_next_batch", *at)
		if err != nil {
			return err
		}
		if unlocked || !isFirst {
			return w.unlocked(action.Tag)
		}
		at = nil // it began a batch between the two calls
	}
}

func (w *Weights) unlockAt(tag rl.ModelTag, seen rl.Position) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.machine.UnlockAt(tag, seen)
	return w.keep.save(w.machine.Models())
}

func (w *Weights) unlocked(tag rl.ModelTag) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.machine.Unlocked(tag)
	return w.keep.save(w.machine.Models())
}

// copy copies a version, and tries again until all inference services have the newest one.
func (w *Weights) copy(ctx context.Context, action weights.Action) {
	err := w.copier.Copy(ctx, action.Tag, action.Version)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		w.ended(func(m *weights.Machine) []weights.Action { return m.Copied(action.Tag, action.Version) })
		return
	}
	w.log.Error("weight sync has failed; rollouts stay blocked", "model", action.Tag, "version", action.Version, "error", err)
	w.ended(func(m *weights.Machine) []weights.Action {
		return m.CopyFailed(action.Tag, action.Version, err.Error())
	})
	report := map[string]any{"type": "SyncError", "message": err.Error(), "traceback": ""}
	_, problem := w.peers.Call(ctx, string(rl.ActivityTracker), "report_exception", string(rl.WeightSyncController), "weight sync", report, string(rl.SeverityWarning))
	if problem != nil {
		w.log.Warn("the failed weight sync could not be reported", "error", problem)
	}
	if sleep.For(ctx, longestWait/5) {
		w.ended(func(m *weights.Machine) []weights.Action {
			if m.Of(action.Tag).Failure == "" {
				return nil
			}
			return m.Sync(action.Tag)
		})
	}
}

// ended changes the machine after a copy; what cannot be kept is kept with the next change.
func (w *Weights) ended(decide func(*weights.Machine) []weights.Action) {
	w.mu.Lock()
	defer w.mu.Unlock()
	actions := decide(w.machine)
	if err := w.keep.save(w.machine.Models()); err != nil {
		w.log.Error("the state of weight sync is not kept", "error", err)
	}
	w.enqueue(actions, nil)
}
