package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/activity"
	"github.com/fray-ml/fray/rl/optional"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/record"
)

// TrackerConfig is of the actor activity_tracker.
type TrackerConfig struct {
	Tracker activity.Config
	Peers   peer.Peers
	Post    func(backend rl.LoggerBackend, fields map[string]any) error // to an experiment logger
	Flush   func(ctx context.Context) error                             // returns once all posts have reached their loggers; nil: at once
	Back    func()                                                      // the training step went back; nil: nothing
	Journal record.Journal                                              // nil: nothing outlives the process
	Records [][]byte
	Now     func() time.Time
	Log     *slog.Logger
}

// Tracker is the actor of the activity tracker. Its exported methods are what can be called.
type Tracker struct {
	peers peer.Peers
	post  func(rl.LoggerBackend, map[string]any) error
	flush func(context.Context) error
	back  func()
	now   func() time.Time
	log   *slog.Logger
	keep  record.Keeper

	mu      sync.Mutex
	machine *activity.Tracker
	changed signal
	gone    map[string]time.Time // since when modules do not answer
}

// NewTracker returns the actor, in the state that its journal has.
func NewTracker(cfg TrackerConfig) (*Tracker, error) {
	t := &Tracker{
		peers: cfg.Peers, post: cfg.Post, flush: cfg.Flush, back: cfg.Back, now: cfg.Now, log: cfg.Log, keep: record.Keeper{Journal: cfg.Journal}, machine: activity.New(cfg.Tracker),
		changed: newSignal(), gone: map[string]time.Time{},
	}
	var state activity.State
	found, err := record.Kept(cfg.Records, &state)
	if err != nil {
		return nil, fmt.Errorf("activity tracker: %w", err)
	}
	if found {
		t.machine.Restore(t.now(), state)
	}
	return t, nil
}

// Start begins an activity of a module, and returns its token. The incarnation of the module's process may follow, and the
// token if the process chooses it: such a start may be repeated after a lost answer (activity.Tracker.StartAs).
func (t *Tracker) Start(module, work string, more ...any) (string, error) {
	incarnation, err := optional.Arguments(more).Text(0, "incarnation")
	if err != nil {
		return "", err
	}
	token, err := optional.Arguments(more).Text(1, "token")
	if err != nil {
		return "", err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	former := t.machine.Process(module)
	if token != "" {
		t.machine.StartAs(t.now(), token, module, work, incarnation)
	} else {
		token = t.machine.Start(t.now(), module, work, incarnation)
	}
	return token, t.heardOf(module, former)
}

// heardOf keeps which process a module has, if it is another one than before: the tracker's next process waits for it to report
// what it does. t.mu is held.
func (t *Tracker) heardOf(module, former string) error {
	if t.machine.Process(module) == former {
		return nil
	}
	return t.keep.Save(t.machine.Snapshot())
}

// End ends an activity. A token that is unknown, or ended before, does nothing.
func (t *Tracker) End(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.machine.End(token)
	t.changed.notify()
}

// Beat is the heartbeat of a module's process; a map from the tokens that it has to their work may follow, and the token
// that it will choose next: then all that it has chosen before and does not list have ended.
func (t *Tracker) Beat(module, incarnation string, more ...any) error {
	open, err := optional.Arguments(more).Texts(0, "open")
	if err != nil {
		return err
	}
	next, err := optional.Arguments(more).Text(1, "next")
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	former := t.machine.Process(module)
	t.machine.Beat(t.now(), module, incarnation, open, next)
	t.changed.notify()
	return t.heardOf(module, former)
}

// Dead notes that a process has ended: its activities expire. It returns how many did.
func (t *Tracker) Dead(module, incarnation string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	expired := t.machine.Dead(module, incarnation)
	t.changed.notify()
	return expired
}

// IsQuiescent reports whether no activity is under way.
func (t *Tracker) IsQuiescent() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Quiescent()
}

// WaitQuiescent waits until no activity is under way, for so many seconds if they are given, and reports whether there is none.
func (t *Tracker) WaitQuiescent(ctx context.Context, timeout ...*float64) bool {
	if len(timeout) > 0 && timeout[0] != nil {
		var cancel context.CancelFunc
		ctx, cancel = within(ctx, *timeout[0])
		defer cancel()
	}
	for {
		t.mu.Lock()
		quiescent, changed := t.machine.Quiescent(), t.changed.changed
		t.mu.Unlock()
		if quiescent {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// IsRolloutWorkerQuiescent reports whether no rollout worker works and none has a task leased. The lease of a task
// is its activity, so that there is no moment between the two.
func (t *Tracker) IsRolloutWorkerQuiescent(ctx context.Context) (bool, error) {
	status, err := peer.Ask[rl.LoaderStatus](ctx, t.peers, string(rl.DataLoader), "status")
	if err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return status.Leased == 0 && t.machine.RolloutQuiescent(), nil
}

// RegisterModule has a module's health checked, under its actor's name; its address and whether it is a rollout worker
// may follow.
func (t *Tracker) RegisterModule(module string, more ...any) error {
	address, err := optional.Arguments(more).Text(0, "address")
	if err != nil {
		return err
	}
	rollout := len(more) > 1 && more[1] == true
	t.mu.Lock()
	defer t.mu.Unlock()
	t.machine.Register(module, address, rollout)
	return t.keep.Save(t.machine.Snapshot())
}

// defaultLiveness is how many seconds a module has to answer.
const defaultLiveness = 5.0

// CheckModuleLiveness reports whether all registered modules answer health_check with true, within so many seconds (5).
func (t *Tracker) CheckModuleLiveness(ctx context.Context, timeout ...float64) bool {
	limit := defaultLiveness
	if len(timeout) > 0 {
		limit = timeout[0]
	}
	return len(t.liveness(ctx, limit)) == 0
}

// GetUnhealthyModules are the modules that do not answer health_check with true within so many seconds, and for how
// many seconds they have not.
func (t *Tracker) GetUnhealthyModules(ctx context.Context, timeout float64) map[string]float64 {
	gone := map[string]float64{}
	for name, since := range t.liveness(ctx, timeout) {
		gone[name] = since.Seconds()
	}
	return gone
}

// UnhealthyError is that a module's health check returned false.
type UnhealthyError struct{ Module string }

func (e *UnhealthyError) Error() string {
	return e.Module + ": health_check returned false: what failed is in its log and was reported to the activity tracker"
}

// liveness asks all modules for their health, and returns how long those have been gone that do not answer or fail.
func (t *Tracker) liveness(ctx context.Context, limit float64) map[string]time.Duration {
	ctx, cancel := within(ctx, limit)
	defer cancel()
	t.mu.Lock()
	modules := t.machine.Modules()
	t.mu.Unlock()
	failures := make([]error, len(modules))
	var calls sync.WaitGroup
	for i, m := range modules {
		calls.Go(func() {
			healthy, err := peer.Ask[bool](ctx, t.peers, m.Name, "health_check")
			if err == nil && !healthy {
				err = &UnhealthyError{Module: m.Name}
			}
			failures[i] = err
		})
	}
	calls.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	gone := map[string]time.Duration{}
	for i, m := range modules {
		if failures[i] == nil {
			delete(t.gone, m.Name)
			continue
		}
		if _, before := t.gone[m.Name]; !before {
			t.gone[m.Name] = now
			t.log.Warn("a module does not answer or is not healthy", "module", m.Name, "error", failures[i])
			t.machine.Errors.Report(now, activity.Error{
				Module: m.Name, Work: "health check", Severity: rl.SeverityWarning, Message: failures[i].Error(),
			})
		}
		gone[m.Name] = now.Sub(t.gone[m.Name])
	}
	return gone
}

// reported is an exception as Python describes it.
type reported struct {
	Type      string         `json:"type"`
	Message   string         `json:"message"`
	Traceback string         `json:"traceback"`
	Critical  bool           `json:"critical"` // the run cannot go on
	Details   map[string]any `json:"details"`
}

// ReportException keeps an exception of a module with its traceback, and returns its ID; its severity may follow:
// "info", "warning" or "error", which is the default.
func (t *Tracker) ReportException(module, work string, exception map[string]any, more ...any) (string, error) {
	word, err := optional.Arguments(more).Text(0, "severity")
	if err != nil {
		return "", err
	}
	severity := rl.SeverityError
	if word != "" {
		if severity, err = rl.ParseSeverity(word); err != nil {
			return "", err
		}
	}
	text := func(key string) string { s, _ := exception[key].(string); return s }
	r := reported{Type: text("type"), Message: text("message"), Traceback: text("traceback"), Critical: exception["critical"] == true}
	r.Details, _ = exception["details"].(map[string]any)
	if r.Type == "" && r.Message == "" {
		return "", errors.New(`report_exception: the exception has neither "type" nor "message"`)
	}
	t.log.Error("a module reports an error", "module", module, "work", work, "type", r.Type, "message", r.Message)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Errors.Report(t.now(), activity.Error{
		Module: module, Work: work, Severity: severity, Message: r.Message, Type: r.Type, Traceback: r.Traceback, Critical: r.Critical, Details: r.Details,
	}), nil
}

// GetErrorHealthStatus is what the errors of the last five minutes amount to.
func (t *Tracker) GetErrorHealthStatus() activity.HealthStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Errors.Health(t.now())
}

// GetErrors are the errors that are kept, the oldest first.
func (t *Tracker) GetErrors() []activity.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]activity.Error{}, t.machine.Errors.All()...)
}

// GetRunningStatusSummary names module, work and age of each activity under way.
func (t *Tracker) GetRunningStatusSummary() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Summary(t.now())
}

// SetTrainingStep sets the training step.
func (t *Tracker) SetTrainingStep(step int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if step < t.machine.Step() && t.back != nil {
		t.back()
	}
	t.machine.SetStep(step)
	return t.keep.Save(t.machine.Snapshot())
}

// GetTrainingStep is the training step.
func (t *Tracker) GetTrainingStep() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Step()
}

// ExperimentLoggerPost gives metrics or a message to a logger: "console", "jsonl", "tensorboard" or "wandb". The fields
// are "data" and "step" (the training step without), or "content" and "title", and "id": a post of an ID that was taken is not taken again.
func (t *Tracker) ExperimentLoggerPost(backend string, fields map[string]any) error {
	b, err := rl.ParseLoggerBackend(backend)
	if err != nil {
		return err
	}
	if fields["step"] == nil {
		fields = maps.Clone(fields)
		if fields == nil {
			fields = map[string]any{}
		}
		fields["step"] = t.GetTrainingStep()
	}
	return t.post(b, fields)
}

// ExperimentLoggerFlush returns once all posts have reached their loggers, or after so many seconds with an error.
func (t *Tracker) ExperimentLoggerFlush(ctx context.Context, limit float64) error {
	if t.flush == nil {
		return nil
	}
	ctx, cancel := within(ctx, limit)
	defer cancel()
	return t.flush(ctx)
}

// HealthCheck reports that the actor answers.
func (t *Tracker) HealthCheck() bool { return true }

// TrackerOptions are how the actor is served.
func TrackerOptions() host.Options {
	once := host.MethodOptions{Idempotent: true}
	return host.Options{MaxConcurrency: concurrency, Methods: map[string]host.MethodOptions{
		"end": once, "beat": once, "dead": once, "is_quiescent": once, "wait_quiescent": once, "is_rollout_worker_quiescent": once,
		"register_module": once, "check_module_liveness": once, "get_error_health_status": once, "get_errors": once,
		"get_running_status_summary": once, "set_training_step": once, "get_training_step": once, "experiment_logger_flush": once,
		"health_check": once,
	}}
}

// TendTracker has activities of processes expire whose heartbeats have ended, until ctx ends.
func TendTracker(ctx context.Context, t *Tracker) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			t.mu.Lock()
			silent := t.machine.Expire(t.now())
			t.changed.notify()
			t.mu.Unlock()
			for _, module := range silent {
				t.log.Warn("the heartbeats of a module have ended: its activities expire", "module", module)
			}
		}
	}
}
