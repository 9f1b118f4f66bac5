package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/rl"
)

// Config configures a Machine.
type Config struct {
	TotalSteps          int64 // updates after which the run is finished; 0: when the data is
	ValidateBeforeTrain bool
	ValidateFreq        int64         // after how many updates a validation is due; 0: never
	Resume              rl.ResumeMode // "": ResumeDisable
	ResumePath          string        // of ResumeFromPath: a checkpoint
	// Policy is what errors of modules do; "": StopOnError.
	Policy rl.ErrorPolicy
	// Recovery is what the restart of a stateful role does; "": RecoverJournal.
	Recovery rl.Recovery
	// RolloutWorkers is how many there are: the run ends once all of them are gone for Patience.
	RolloutWorkers int
	// Patience is how long orders may fail, observations be incomplete, and a module be gone, before the run ends; 0: 10 min.
	Patience time.Duration
	// StopTimeout is how long a stop waits for activities; 0: 30 s.
	StopTimeout time.Duration
}

// State is what a restarted controller goes on with.
type State struct {
	Phase    Phase       `json:"phase"`
	Epoch    int         `json:"epoch"`
	Step     int64       `json:"step"` // of the checkpoint that was loaded; 0: fresh
	Path     string      `json:"path,omitempty"`
	Tag      rl.ModelTag `json:"tag,omitempty"`      // of the validation
	Begun    bool        `json:"begun,omitempty"`    // the validation, or the stop
	Again    bool        `json:"again,omitempty"`    // workers were started before: Loading follows a rewind
	Failed   bool        `json:"failed,omitempty"`   // the run
	Reason   string      `json:"reason,omitempty"`   // why it ends
	Since    time.Time   `json:"since,omitzero"`     // when the phase began
	Leftover string      `json:"leftover,omitempty"` // what had not ended after the stop
}

// Machine decides for a controller. It is not safe for concurrent use.
type Machine struct {
	cfg   Config
	state State
	idle  int    // observations in a row in which nothing moved
	seen  string // by which they are compared
	// reached is when the last update was seen; zero: it was not.
	reached time.Time
	// failing is since when orders have failed, and unseen since when not all could be observed; zero: the last one was
	// carried out, or was whole.
	failing, unseen time.Time
}

// New returns the machine of a run that begins.
func New(cfg Config, now time.Time) *Machine {
	cfg.Resume = cmp.Or(cfg.Resume, rl.ResumeDisable)
	cfg.Policy = cmp.Or(cfg.Policy, rl.StopOnError)
	cfg.Recovery = cmp.Or(cfg.Recovery, rl.RecoverJournal)
	cfg.Patience = cmp.Or(cfg.Patience, 10*time.Minute)
	cfg.StopTimeout = cmp.Or(cfg.StopTimeout, 30*time.Second)
	return &Machine{cfg: cfg, state: State{Phase: Initializing, Since: now}}
}

// State is the state.
func (m *Machine) State() State { return m.state }

// Restore goes on from a state. What was ordered and not reported as done is ordered again.
func (m *Machine) Restore(s State) {
	if s.Phase != "" {
		m.state = s
	}
}

func (m *Machine) enter(now time.Time, p Phase) {
	m.state.Phase, m.state.Since, m.state.Begun = p, now, false
	m.idle, m.seen = 0, ""
}

// Next is what is due.
func (m *Machine) Next(now time.Time, o Observation) Order {
	if o.Problem != "" && m.state.Phase != Stopping {
		return m.blind(now, o)
	}
	m.unseen = time.Time{}
	order := m.decide(now, o)
	if order.Verb == None {
		m.failing = time.Time{} // what failed is not due any more
	}
	return order
}

func (m *Machine) decide(now time.Time, o Observation) Order {
	switch m.state.Phase {
	case Initializing:
		return Order{Verb: Initialize}
	case Loading:
		return m.load(now, o)
	case Syncing:
		return Order{Verb: SyncWeights}
	case Starting:
		return Order{Verb: StartWorkers, Epoch: m.state.Epoch}
	case ValidatingFirst, Validating:
		if order, ok := m.interruption(now, o); ok {
			return order
		}
		return m.validate(o)
	case Running:
		if order, ok := m.interruption(now, o); ok {
			return order
		}
		return m.monitor(now, o)
	case Rewinding:
		return Order{Verb: Rewind, Epoch: m.state.Epoch}
	case Stopping:
		return m.stopping(now, o)
	case Ended:
	}
	return Order{}
}

// blind is what is due while not all can be observed: only what interrupts the run. A run that cannot be observed for Patience
// has failed.
func (m *Machine) blind(now time.Time, o Observation) Order {
	if m.isUnderWay() {
		if order, ok := m.interruption(now, o); ok {
			return order
		}
	}
	if m.unseen.IsZero() {
		m.unseen = now
	}
	if now.Sub(m.unseen) >= m.cfg.Patience && !m.isTolerant() {
		m.fail(now, "observe the run: "+o.Problem)
		return m.stopping(now, o)
	}
	return Order{}
}

// isUnderWay reports whether workers may have been started.
func (m *Machine) isUnderWay() bool {
	return m.state.Phase == Running || m.state.Phase == Validating || m.state.Phase == ValidatingFirst
}

// isTolerant reports whether the run goes on whatever its modules do, as its policy has it.
func (m *Machine) isTolerant() bool { return m.cfg.Policy == rl.ContinueOnAny && m.isUnderWay() }

// load chooses the checkpoint to begin with. After a rewind it is the newest there is.
func (m *Machine) load(now time.Time, o Observation) Order {
	mode := m.cfg.Resume
	if m.state.Again {
		mode = rl.ResumeAuto
	}
	switch mode {
	case rl.ResumeFromPath:
		if o.Missing {
			m.fail(now, fmt.Sprintf("resume.resume_path %q is no checkpoint: want a directory global_step_N with run.json", m.cfg.ResumePath))
			return m.Next(now, o)
		}
		step, _ := CheckpointStep(base(m.cfg.ResumePath))
		return Order{Verb: Load, Path: m.cfg.ResumePath, Step: step, Epoch: m.state.Epoch}
	case rl.ResumeAuto:
		if name, step, ok := Latest(o.Checkpoints); ok {
			return Order{Verb: Load, Path: name, Step: step, Epoch: m.state.Epoch}
		}
	case rl.ResumeDisable:
	}
	if m.state.Again && m.cfg.Resume == rl.ResumeFromPath && !o.Missing { // none of its own is saved yet
		step, _ := CheckpointStep(base(m.cfg.ResumePath))
		return Order{Verb: Load, Path: m.cfg.ResumePath, Step: step, Epoch: m.state.Epoch}
	}
	return Order{Verb: PrepareFresh, Epoch: m.state.Epoch}
}

func base(path string) string {
	path = strings.TrimRight(path, "/")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// validate leads a validation: workers take its tasks, all are done, workers go back.
func (m *Machine) validate(o Observation) Order {
	switch {
	case !m.state.Begun:
		return Order{Verb: StartValidation, Tag: m.state.Tag, Step: o.Step}
	case o.Complete:
		return Order{Verb: EndValidation, Tag: m.state.Tag, Step: o.Step}
	}
	return Order{}
}

// interruption is what comes before anything else: errors, lost modules, restarts.
func (m *Machine) interruption(now time.Time, o Observation) (Order, bool) {
	if why, stop := m.ends(o); stop {
		m.fail(now, why)
		return m.stopping(now, o), true
	}
	for _, name := range o.Restarted {
		if m.rewinds(name) {
			m.state.Epoch++
			m.state.Again = true
			m.reached = time.Time{}
			m.enter(now, Rewinding)
			return Order{Verb: Rewind, Epoch: m.state.Epoch, Reason: name + " was restarted"}, true
		}
	}
	if len(o.Restarted) > 0 {
		return Order{Verb: StartWorkers, Modules: o.Restarted, Epoch: m.state.Epoch}, true
	}
	return Order{}, false
}

// rewinds reports whether the loss of a module's process leads back to a checkpoint: by RecoverCheckpoint that of each
// stateful role. By RecoverJournal they have their state again; a train worker replays the batches since its checkpoint
// to a train service that has lost the model.
func (m *Machine) rewinds(module string) bool {
	switch RoleOf(module) {
	case rl.TrainService, rl.TrajectoryPool, rl.TrainBatchPool, rl.WeightSyncController, rl.DataLoader:
		return m.cfg.Recovery == rl.RecoverCheckpoint
	case rl.RolloutWorker, rl.TrainWorker, rl.AlgorithmProcessor, rl.ValidateDataLoader, rl.Validator, rl.ActivityTracker,
		rl.Controller, rl.ExperimentLogger, rl.InferenceService:
	}
	return false
}

// RoleOf is the role of an actor's name: with or without its index.
func RoleOf(actor string) rl.Role {
	name := strings.TrimRight(actor, "0123456789")
	if role, err := rl.ParseRole(strings.TrimSuffix(name, "_")); err == nil {
		return role
	}
	return rl.Role(actor)
}

// ends reports whether errors end the run, by its policy. A health that is none of the known ones counts as an error.
func (m *Machine) ends(o Observation) (why string, stop bool) {
	if m.cfg.Policy == rl.ContinueOnAny {
		return "", false
	}
	var rollouts []string
	for _, name := range slices.Sorted(keys(o.Gone)) {
		gone := o.Gone[name]
		switch {
		case gone < m.cfg.Patience:
			continue
		case RoleOf(name) == rl.RolloutWorker: // others roll out what was its
			if rollouts = append(rollouts, name); len(rollouts) < m.cfg.RolloutWorkers {
				continue
			}
		}
		return fmt.Sprintf("%s has not answered for %s", name, gone.Round(time.Second)), true
	}
	if o.Critical > 0 {
		return "critical error: " + o.Message, true
	}
	if m.cfg.Policy == rl.StopOnCritical && o.Health == rl.HealthError {
		return "", false
	}
	switch o.Health {
	case rl.Healthy, rl.HealthWarning, "":
		return "", false
	case rl.HealthError:
		return "error: " + o.Message, true
	}
	return fmt.Sprintf("unknown health %q", o.Health), true
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// still is how many observations in a row have to be equal before they show that nothing moves.
const still = 2

// monitor finds the end of the run, validations that are due, and a standstill.
func (m *Machine) monitor(now time.Time, o Observation) Order {
	if m.cfg.TotalSteps > 0 && o.Step >= m.cfg.TotalSteps && len(o.Waiting) == 0 {
		if m.isLastPending(now, o) {
			return Order{}
		}
		m.stop(now, fmt.Sprintf("finished: %d steps", o.Step), false)
		return m.stopping(now, o)
	}
	if len(o.Waiting) > 0 {
		m.enter(now, Validating)
		m.state.Tag = o.Waiting[0]
		return m.validate(o)
	}
	if !o.Loader.Quiet() || !o.PoolsEmpty || !o.TrainBatchesEmpty || !o.Quiescent || !o.Settled {
		m.idle, m.seen = 0, ""
		return Order{}
	}
	if seen := fmt.Sprint(o.Step, o.Loader); seen != m.seen {
		m.idle, m.seen = 0, seen
	}
	if m.idle++; m.idle < still {
		return Order{}
	}
	if o.Loader.Finished {
		m.stop(now, fmt.Sprintf("finished: all data is used, after %d steps", o.Step), false)
		return m.stopping(now, o)
	}
	return Order{Verb: Release, Reason: "every rollout of the batch failed, or its batch was dropped"}
}

// isLastPending reports whether the last update is still being dealt with: its checkpoint is written before it is reported, and
// its weights are copied before a validation of them is due. A trainer that reports no updates is waited for no longer than
// Patience.
func (m *Machine) isLastPending(now time.Time, o Observation) bool {
	if o.Trained >= o.Step && (o.Settled || m.cfg.ValidateFreq <= 0) {
		return false
	}
	if m.reached.IsZero() {
		m.reached = now
	}
	return now.Sub(m.reached) < m.cfg.Patience
}

// Stop ends the run in an orderly way.
func (m *Machine) Stop(now time.Time, reason string) { m.stop(now, cmp.Or(reason, "stopped"), false) }

func (m *Machine) fail(now time.Time, reason string) { m.stop(now, reason, true) }

func (m *Machine) stop(now time.Time, reason string, failed bool) {
	if m.state.Phase == Stopping || m.state.Phase == Ended {
		return
	}
	m.enter(now, Stopping)
	m.state.Reason, m.state.Failed = reason, failed
}

func (m *Machine) stopping(now time.Time, o Observation) Order {
	late := now.Sub(m.state.Since) >= m.cfg.StopTimeout
	switch {
	case !m.state.Begun && !late:
		return Order{Verb: StopWorkers, Reason: m.state.Reason}
	case o.Quiescent || late:
		return Order{Verb: Conclude, Reason: m.state.Reason}
	}
	return Order{}
}

// Deadline is when a stop waits no longer; zero: the run is not being stopped.
func (m *Machine) Deadline() time.Time {
	if m.state.Phase != Stopping {
		return time.Time{}
	}
	return m.state.Since.Add(m.cfg.StopTimeout)
}

// Done takes notice that an order is carried out. One that is not due any more, since the run is being stopped, changes
// nothing.
func (m *Machine) Done(now time.Time, order Order) {
	phase := m.state.Phase
	m.failing = time.Time{}
	switch {
	case order.Verb == Initialize && phase == Initializing:
		m.enter(now, Loading)
	case (order.Verb == Load || order.Verb == PrepareFresh) && phase == Loading:
		m.state.Path, m.state.Step = order.Path, order.Step
		m.enter(now, Syncing)
	case order.Verb == SyncWeights && phase == Syncing:
		m.enter(now, Starting)
		if m.cfg.ValidateBeforeTrain && !m.state.Again {
			m.enter(now, ValidatingFirst)
			m.state.Tag = rl.DefaultModel
		}
	case order.Verb == StartValidation:
		m.state.Begun = phase == Validating || phase == ValidatingFirst
	case order.Verb == EndValidation && phase == ValidatingFirst:
		m.enter(now, Starting)
	case order.Verb == EndValidation && phase == Validating:
		m.enter(now, Running)
	case order.Verb == StartWorkers && phase == Starting:
		m.enter(now, Running)
	case order.Verb == Release:
		m.idle, m.seen = 0, ""
	case order.Verb == Rewind && phase == Rewinding:
		m.enter(now, Initializing)
	case order.Verb == StopWorkers:
		m.state.Begun = m.state.Begun || phase == Stopping
	case order.Verb == Conclude && phase == Stopping:
		m.enter(now, Ended)
	}
}

// Failed takes notice that an order could not be carried out. It is ordered again until orders have failed for Patience; a
// final error, as of a wrong configuration, ends the run at once.
func (m *Machine) Failed(now time.Time, order Order, why string, final bool) {
	phase := m.state.Phase
	if m.failing.IsZero() {
		m.failing = now
	}
	switch {
	case phase == Stopping && order.Verb == StopWorkers:
		m.state.Begun = true // those that do not answer are named in the end
	case phase == Stopping || phase == Ended:
	case final, now.Sub(m.failing) >= m.cfg.Patience && !m.isTolerant():
		m.fail(now, fmt.Sprintf("%s: %s", order.Verb, why))
	}
}

// Left notes what had not ended after a stop.
func (m *Machine) Left(what string) { m.state.Leftover = what }
