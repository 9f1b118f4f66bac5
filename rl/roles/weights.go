package roles

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/optional"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/record"
	"github.com/fray-ml/fray/rl/weights"
)

// Copier copies weights to all that answer prompts.
type Copier interface {
	// Copy returns once all inference services have a version; the error names those that do not.
	Copy(ctx context.Context, tag rl.ModelTag, version int64) error
}

// WeightsConfig is of the actor weight_sync_controller.
type WeightsConfig struct {
	Machine weights.Config
	Peers   peer.Peers
	Copier  Copier
	Pools   []string       // actors of the trajectory pools
	Journal record.Journal // nil: nothing outlives the process
	Records [][]byte       // of the journal, as it was opened
	Log     *slog.Logger
}

// Weights is the actor of weight synchronization. Its exported methods are what can be called.
type Weights struct {
	peers  peer.Peers
	copier Copier
	pools  []string
	log    *slog.Logger
	keep   record.Keeper

	mu      sync.Mutex
	machine *weights.Machine
	queue   []step
	saved   journal.Position // of the newest state
	changed signal
}

// step is an action that is to be carried out; done is closed then, or nil.
type step struct {
	weights.Action
	at   journal.Position // of the state that asks for it
	done chan struct{}
}

// NewWeights returns the actor, in the state that its journal has.
func NewWeights(cfg WeightsConfig) (*Weights, error) {
	machine, err := weights.New(cfg.Machine)
	if err != nil {
		return nil, err
	}
	w := &Weights{
		peers: cfg.Peers, copier: cfg.Copier, pools: cfg.Pools, log: cfg.Log, keep: record.Keeper{Journal: cfg.Journal}, machine: machine, changed: newSignal(),
	}
	var models map[rl.ModelTag]weights.Model
	found, err := record.Kept(cfg.Records, &models)
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
		s := step{Action: action, at: w.saved}
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
		w.queue = append(w.queue, step{at: w.saved, done: done})
	}
	w.changed.notify()
}

// decide changes the machine and has its actions carried out once its state is durable. done is closed after those that are
// no copies.
func (w *Weights) decide(change func(*weights.Machine) []weights.Action, done chan struct{}) (journal.Position, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	actions := change(w.machine)
	at, err := w.keep.Put(w.machine.Models())
	if err != nil {
		return 0, err
	}
	w.saved = at
	w.enqueue(actions, done)
	return at, nil
}

// change changes the machine, keeps its state, and has its actions carried out; it returns once they are, except for
// copies.
func (w *Weights) change(ctx context.Context, decide func(*weights.Machine) []weights.Action) error {
	done := make(chan struct{})
	at, err := w.decide(decide, done)
	if err == nil {
		err = w.keep.Wait(at)
	}
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

// await waits until a condition is fulfilled, which is called with the lock.
func (w *Weights) await(ctx context.Context, fulfilled func() bool) error {
	for {
		w.mu.Lock()
		ok, changed := fulfilled(), w.changed.changed
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
	return w.rolloutStatus(tag)
}

// rolloutStatus blocks rollouts also until the pools are unlocked: they would roll out again what they put before.
func (w *Weights) rolloutStatus(tag rl.ModelTag) rl.RolloutStatus {
	unlocks := func(s step) bool { return s.Verb == weights.UnlockPools && s.Tag == rl.TagOf(tag) }
	if slices.ContainsFunc(w.queue, unlocks) {
		return rl.Block
	}
	return w.machine.RolloutStatus(tag)
}

// WaitRolloutService returns "continue" as soon as rollouts may go on, and "block" after so many seconds.
func (w *Weights) WaitRolloutService(ctx context.Context, tag string, seconds float64) rl.RolloutStatus {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
	defer cancel()
	if w.await(ctx, func() bool { return w.rolloutStatus(tag) == rl.Continue }) != nil {
		return rl.Block
	}
	return rl.Continue
}

// RolloutService is whether rollouts of a model may ask its inference service, and of which version of weights its answers are.
type RolloutService struct {
	Status  rl.RolloutStatus `json:"status"`
	Version int64            `json:"version"`
}

// RolloutService answers as soon as rollouts may go on, or after so many seconds, of one moment.
func (w *Weights) RolloutService(ctx context.Context, tag string, seconds float64) RolloutService {
	status := w.WaitRolloutService(ctx, tag, seconds)
	w.mu.Lock()
	defer w.mu.Unlock()
	if status == rl.Continue { // it may have been locked again
		status = w.rolloutStatus(tag)
	}
	return RolloutService{Status: status, Version: w.machine.Of(tag).Rollout}
}

// TrajectoryPoolNotifyBatchReady is called by a pool before it gives a batch; its ID may follow, and the first of the versions
// of weights that its trajectories are of. A batch that is too old for its update is not counted. When it returns the pools
// are locked, if they are to be.
func (w *Weights) TrajectoryPoolNotifyBatchReady(ctx context.Context, tag string, more ...any) (rl.BatchVerdict, error) {
	id, err := optional.Arguments(more).Text(0, "batch_id")
	if err != nil {
		return rl.BatchVerdict{}, err
	}
	oldest, err := optional.Arguments(more).Version(1, "oldest")
	if err != nil {
		return rl.BatchVerdict{}, err
	}
	var verdict rl.BatchVerdict
	err = w.change(ctx, func(m *weights.Machine) (actions []weights.Action) {
		if verdict.Counted = m.Takes(tag, id, oldest); verdict.Counted {
			actions = m.BatchReady(tag, id)
		}
		verdict.Floor = m.Floor(tag)
		return actions
	})
	return verdict, err
}

// TrainWorkerNotifyWeightUpdate is called by a train worker whose new weights are in the sync buffer; an ID of the update may
// follow. It returns once rollouts have these weights, if they are to have them before the next update: the buffer may be
// written again then.
func (w *Weights) TrainWorkerNotifyWeightUpdate(ctx context.Context, worker, tag string, more ...any) error {
	id, err := optional.Arguments(more).Text(0, "update_id")
	if err != nil {
		return err
	}
	if err := w.change(ctx, func(m *weights.Machine) []weights.Action { return m.Updated(tag, worker, id) }); err != nil {
		return err
	}
	synced := func() bool { m := w.machine.Of(tag); return !m.InCopy && m.Failure == "" }
	if err := w.await(ctx, synced); err != nil {
		return err
	}
	w.mu.Lock()
	at := w.saved
	w.mu.Unlock()
	return w.keep.Wait(at) // else the next process may copy from the buffer again
}

// SyncWeightToRolloutService copies the newest weights. Its error is that not all inference services have them; rollouts
// stay blocked then, and the copy is tried again.
func (w *Weights) SyncWeightToRolloutService(ctx context.Context, tag string) error {
	if err := w.change(ctx, func(m *weights.Machine) []weights.Action { return m.Sync(tag) }); err != nil {
		return err
	}
	failure := ""
	err := w.await(ctx, func() bool { m := w.machine.Of(tag); failure = m.Failure; return !m.InCopy })
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

// EndValidate ends a validation: training goes on. A name of the validation may follow, by which it ends once: asked again
// since an answer was lost, it does not end the next one.
func (w *Weights) EndValidate(ctx context.Context, tag string, more ...any) error {
	name, err := optional.Arguments(more).Text(0, "validation")
	if err != nil {
		return err
	}
	return w.change(ctx, func(m *weights.Machine) []weights.Action { return m.ValidatedAs(tag, name) })
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
		"check_rollout_service_status": once, "wait_rollout_service": once, "rollout_service": once, "get_rollout_model_version": once, "get_train_model_version": once,
		"is_waiting_for_validation": once, "status": once, "health_check": once, "sync_weight_to_rollout_service": once, "end_validate": once,
	}}
}
