package weights

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/rl"
)

// Phase is where the weights of one model are.
type Phase string

// The phases, in their order. Rollouts are blocked in NeedSync and Syncing.
const (
	Running  Phase = "running"
	NeedSync Phase = "need_sync" // the trainer is to make newer weights first, or a copy has failed
	Syncing  Phase = "syncing"   // weights are copied to the inference services
)

// Config configures a Machine.
type Config struct {
	Mode rl.SyncMode // "": Sync
	// StalenessThreshold is how many updates the weights of a trajectory may be behind those that are trained with it, in
	// mode batch-async; in mode sync it is 0.
	StalenessThreshold int64
	// ValidateFreq is after how many versions of weights a validation is due; 0: never.
	ValidateFreq int64
	// TrainWorkers is how many workers train a model: a version is there once each has reported; 0: 1.
	TrainWorkers int
}

// Verb is what an Action does.
type Verb string

// The verbs.
const (
	LockPools    Verb = "lock_pools"    // trajectory pools answer re-rollout from now on
	Copy         Verb = "copy"          // save and copy Version to all inference services, then report
	UnlockPools  Verb = "unlock_pools"  // trajectory pools take trajectories of Version and later ones
	UnlockLoader Verb = "unlock_loader" // the loader gives its next batch
)

// Action is what is to be done for one model.
type Action struct {
	Verb    Verb
	Tag     rl.ModelTag
	Version int64 // of weights: which are copied, or from which on trajectories are taken
}

// Model is the state of one model.
type Model struct {
	Phase   Phase `json:"phase"`
	Train   int64 `json:"train_version"`
	Rollout int64 `json:"rollout_version"`
	// Outstanding is how many batches were given to be trained on and have not been.
	Outstanding int64 `json:"outstanding"`
	// Copying is the version that is being copied; 0: none, or the initial weights.
	Copying  int64    `json:"copying"`
	InCopy   bool     `json:"in_copy"`
	Again    bool     `json:"again,omitempty"`  // fully-async: newer weights came during the copy
	Locked   bool     `json:"locked,omitempty"` // the pools are
	Reported []string `json:"reported,omitempty"`
	// Due is that the loader's next batch is to be unlocked with the pools, and Unlocking that it is being unlocked.
	Due       bool `json:"due,omitempty"`
	Unlocking bool `json:"unlocking,omitempty"`
	// UnlockAt is where the loader was before the attempt to unlock it; nil: there was none.
	UnlockAt *rl.Position `json:"unlock_at,omitempty"`
	// Waiting is that a validation is due and that locks stay until its end.
	Waiting   bool   `json:"waiting_for_validation,omitempty"`
	Validated string `json:"validated,omitempty"` // the name of the validation that ended last
	// Failure is why the last copy failed; "": it did not.
	Failure string   `json:"failure,omitempty"`
	Batches []string `json:"batches,omitempty"` // of late, by ID: a pool that was restarted may report one again
	Updates []string `json:"updates,omitempty"` // likewise of workers
}

// Machine decides for all models of a run. It is not safe for concurrent use.
type Machine struct {
	cfg    Config
	models map[rl.ModelTag]*Model
}

// New returns a machine whose models have version 0 everywhere.
func New(cfg Config) (*Machine, error) {
	if cfg.Mode == "" {
		cfg.Mode = rl.Sync
	}
	if cfg.TrainWorkers == 0 {
		cfg.TrainWorkers = 1
	}
	if cfg.Mode == rl.Sync {
		cfg.StalenessThreshold = 0
	}
	if cfg.StalenessThreshold < 0 || cfg.ValidateFreq < 0 || cfg.TrainWorkers < 0 {
		return nil, fmt.Errorf("weight sync: staleness_threshold %d, validate_freq %d, train workers %d: none may be negative",
			cfg.StalenessThreshold, cfg.ValidateFreq, cfg.TrainWorkers)
	}
	return &Machine{cfg: cfg, models: map[rl.ModelTag]*Model{}}, nil
}

func (m *Machine) model(tag rl.ModelTag) *Model {
	tag = rl.TagOf(tag)
	if m.models[tag] == nil {
		m.models[tag] = &Model{Phase: Running}
	}
	return m.models[tag]
}

// RolloutStatus is whether a rollout may ask its inference service now.
func (m *Machine) RolloutStatus(tag rl.ModelTag) rl.RolloutStatus {
	if known := m.models[rl.TagOf(tag)]; known != nil && known.Phase != Running {
		return rl.Block
	}
	return rl.Continue
}

// Floor is the version of weights before which no trajectory may be in the next batch of a model; 0: any may. The batches
// that were given are trained on in their order, one update each, so that the next one is trained on with
// Train + Outstanding updates made.
func (m *Machine) Floor(tag rl.ModelTag) int64 {
	if m.cfg.Mode == rl.FullyAsync {
		return 0
	}
	model := m.Of(tag)
	return max(0, model.Train+m.rounds(model)-m.cfg.StalenessThreshold)
}

// Takes reports whether a batch may be given, if oldest is the first of the versions that its trajectories are of; nil: of
// none is known. What BatchReady has counted stays so.
func (m *Machine) Takes(tag rl.ModelTag, id string, oldest *int64) bool {
	if oldest == nil || *oldest >= m.Floor(tag) {
		return true
	}
	return id != "" && slices.Contains(m.Of(tag).Batches, id)
}

// BatchReady takes notice of a batch that is about to be given to be trained on, and that Takes has admitted. An ID that
// was seen before changes nothing; "" is always new.
func (m *Machine) BatchReady(tag rl.ModelTag, id string) []Action {
	model := m.model(tag)
	if id != "" && !remember(&model.Batches, id) {
		return nil
	}
	model.Outstanding++
	model.Due = true
	if model.Phase != Running || model.Waiting {
		return nil // the end of the copy, or of the validation, decides
	}
	if m.cfg.Mode == rl.FullyAsync || !m.tooStale(model) {
		return m.unlock(tag, model)
	}
	model.Phase = NeedSync
	return m.lock(tag, model)
}

// tooStale reports whether the last batch that was given would be trained on by weights that are further from
// those of its rollouts than allowed. With one batch outstanding that is train + 1 - rollout > threshold.
func (m *Machine) tooStale(model *Model) bool {
	return model.Train+m.rounds(*model)-model.Rollout > m.cfg.StalenessThreshold
}

// rounds is how many versions the batches will have made that were given: each is made of a batch of every train worker.
func (m *Machine) rounds(model Model) int64 { return model.Outstanding / int64(m.cfg.TrainWorkers) }

func (m *Machine) lock(tag rl.ModelTag, model *Model) []Action {
	if model.Locked {
		return nil
	}
	model.Locked = true
	return []Action{{Verb: LockPools, Tag: rl.TagOf(tag)}}
}

// Updated takes notice of an update by a train worker, whose ID (of the process and its step) is "" if it has none;
// one that was seen before changes nothing.
func (m *Machine) Updated(tag rl.ModelTag, worker, id string) []Action {
	model := m.model(tag)
	if id != "" && !remember(&model.Updates, worker+" "+id) {
		return nil
	}
	if id != "" || !slices.Contains(model.Reported, worker) { // one worker may have trained on the batch that was another's
		model.Reported = append(model.Reported, worker)
	}
	if len(model.Reported) < m.cfg.TrainWorkers {
		return nil
	}
	model.Reported = nil
	model.Train++
	model.Outstanding = max(0, model.Outstanding-int64(m.cfg.TrainWorkers))
	switch {
	case m.cfg.Mode == rl.FullyAsync && model.InCopy:
		model.Again = true
		return nil
	case m.cfg.Mode == rl.FullyAsync:
		return m.copy(tag, model)
	case model.Phase == NeedSync:
		model.Phase = Syncing
		return m.copy(tag, model)
	}
	return nil // batch-async within its threshold; or a copy is under way and its end decides
}

// Sync has the newest weights copied, with rollouts blocked unless the mode is fully-async: the first copy of a run, that after
// a copy has failed, and that for an inference service whose process is new.
func (m *Machine) Sync(tag rl.ModelTag) []Action {
	model := m.model(tag)
	if model.InCopy {
		return nil
	}
	if m.cfg.Mode == rl.FullyAsync && model.Failure == "" && model.Rollout > 0 {
		return m.copy(tag, model)
	}
	var actions []Action
	if m.cfg.Mode != rl.FullyAsync {
		actions = m.lock(tag, model)
		model.Phase = Syncing
	}
	return append(actions, m.copy(tag, model)...)
}

func (m *Machine) copy(tag rl.ModelTag, model *Model) []Action {
	model.Copying, model.InCopy = model.Train, true
	return []Action{{Verb: Copy, Tag: rl.TagOf(tag), Version: model.Train}}
}

// Copied takes notice that all inference services have a version.
func (m *Machine) Copied(tag rl.ModelTag, version int64) []Action {
	model := m.model(tag)
	if !model.InCopy || model.Copying != version {
		return nil // of a copy that was given up
	}
	before := model.Rollout
	model.Rollout, model.Failure, model.InCopy = max(model.Rollout, version), "", false
	if f := m.cfg.ValidateFreq; f > 0 && model.Rollout/f > before/f {
		model.Waiting = true
	}
	if model.Again {
		model.Again = false
		return m.copy(tag, model)
	}
	if m.cfg.Mode == rl.FullyAsync {
		return nil
	}
	return m.settle(tag, model)
}

// settle follows a copy, or a validation: it goes on if rollouts are fresh enough for the batches outstanding.
func (m *Machine) settle(tag rl.ModelTag, model *Model) []Action {
	if model.Waiting { // rollouts of the validation ask the inference service
		model.Phase = Running
		return nil
	}
	if m.tooStale(model) {
		model.Phase = NeedSync
		if model.Train > model.Rollout { // an update came during the copy
			model.Phase = Syncing
			return append(m.lock(tag, model), m.copy(tag, model)...)
		}
		return m.lock(tag, model)
	}
	model.Phase = Running
	return m.unlock(tag, model)
}

func (m *Machine) unlock(tag rl.ModelTag, model *Model) []Action {
	var actions []Action
	if model.Locked {
		model.Locked = false
		actions = append(actions, Action{Verb: UnlockPools, Tag: rl.TagOf(tag), Version: m.Floor(tag)})
	}
	if model.Due {
		model.Due, model.Unlocking = false, true
		actions = append(actions, Action{Verb: UnlockLoader, Tag: rl.TagOf(tag)})
	}
	return actions
}

// UnlockAt notes where the loader is as it is about to be unlocked. It unlocks nothing at another position, so that the
// attempt may be repeated after a lost answer or a restart.
func (m *Machine) UnlockAt(tag rl.ModelTag, seen rl.Position) { m.model(tag).UnlockAt = &seen }

// Unlocked takes notice that the loader was unlocked.
func (m *Machine) Unlocked(tag rl.ModelTag) {
	model := m.model(tag)
	model.Unlocking, model.UnlockAt = false, nil
}

// CopyFailed takes notice that not all inference services have a version. Nothing is unlocked: some of them may serve
// newer weights than others. Sync tries again.
func (m *Machine) CopyFailed(tag rl.ModelTag, version int64, why string) []Action {
	model := m.model(tag)
	if !model.InCopy || model.Copying != version {
		return nil
	}
	model.InCopy, model.Again, model.Failure = false, false, why
	if m.cfg.Mode == rl.FullyAsync {
		return nil // it never blocks: rollouts go on with the version that they have
	}
	model.Phase = NeedSync
	return nil
}

// Failed are the models whose last copy failed, each with the reason.
func (m *Machine) Failed() map[rl.ModelTag]string {
	failed := map[rl.ModelTag]string{}
	for tag, model := range m.models {
		if model.Failure != "" && !model.InCopy {
			failed[tag] = model.Failure
		}
	}
	return failed
}

// Waiting are the models for which a validation is due, sorted.
func (m *Machine) Waiting() []rl.ModelTag {
	var waiting []rl.ModelTag
	for _, tag := range slices.Sorted(maps.Keys(m.models)) {
		if m.models[tag].Waiting && !m.models[tag].InCopy {
			waiting = append(waiting, tag)
		}
	}
	return waiting
}

// ValidatedAs is Validated of a validation with a name. Again by the same name it changes nothing; "" is always new.
func (m *Machine) ValidatedAs(tag rl.ModelTag, name string) []Action {
	model := m.model(tag)
	if name != "" && model.Validated == name {
		return nil
	}
	model.Validated = name
	return m.Validated(tag)
}

// Validated takes notice of the end of a validation: the locks that it kept go.
func (m *Machine) Validated(tag rl.ModelTag) []Action {
	model := m.model(tag)
	if !model.Waiting {
		return nil
	}
	model.Waiting = false
	if model.Phase != Running {
		return nil
	}
	if m.cfg.Mode == rl.FullyAsync {
		return m.unlock(tag, model)
	}
	return m.settle(tag, model)
}

// Abandon takes notice that the batches outstanding will never be trained on: they were dropped on the way, and nothing
// is left in any pool. What waited for them goes on.
func (m *Machine) Abandon(tag rl.ModelTag) []Action {
	model := m.model(tag)
	model.Outstanding = 0
	if m.cfg.Mode == rl.FullyAsync || model.Phase != NeedSync || model.Failure != "" {
		return nil
	}
	return m.settle(tag, model)
}

// Begin sets the version of a model: of the checkpoint from which the run goes on. Nothing is outstanding then; a copy that is under way is
// given up, and Sync is to follow.
func (m *Machine) Begin(tag rl.ModelTag, version int64) {
	old := m.model(tag)
	m.models[rl.TagOf(tag)] = &Model{Phase: Running, Train: version, Rollout: version, Locked: old.Locked, Batches: old.Batches}
}

// Of is a copy of the state of a model.
func (m *Machine) Of(tag rl.ModelTag) Model {
	if known := m.models[rl.TagOf(tag)]; known != nil {
		return known.clone()
	}
	return Model{Phase: Running}
}

// Models are copies of all, by tag.
func (m *Machine) Models() map[rl.ModelTag]Model {
	models := make(map[rl.ModelTag]Model, len(m.models))
	for tag, model := range m.models {
		models[tag] = model.clone()
	}
	return models
}

// Restore replaces all models by those that Models returned, and returns what is to be done again: locks, as a pool may
// have been restarted too, and copies that were under way or had failed.
func (m *Machine) Restore(models map[rl.ModelTag]Model) []Action {
	m.models = map[rl.ModelTag]*Model{}
	var actions []Action
	for _, tag := range slices.Sorted(maps.Keys(models)) {
		model := models[tag].clone()
		if model.Phase == "" {
			model.Phase = Running
		}
		m.models[tag] = &model
		switch {
		case model.Locked:
			actions = append(actions, Action{Verb: LockPools, Tag: tag})
		case m.cfg.Mode != rl.FullyAsync:
			actions = append(actions, Action{Verb: UnlockPools, Tag: tag, Version: m.Floor(tag)})
		}
		if model.Unlocking {
			actions = append(actions, Action{Verb: UnlockLoader, Tag: tag})
		}
		switch {
		case model.InCopy:
			actions = append(actions, Action{Verb: Copy, Tag: tag, Version: model.Copying})
		case model.Failure != "":
			actions = append(actions, m.Sync(tag)...)
		}
	}
	return actions
}

func (m Model) clone() Model {
	m.Reported, m.Batches, m.Updates = slices.Clone(m.Reported), slices.Clone(m.Batches), slices.Clone(m.Updates)
	return m
}

// remembered is how many IDs of the last batches and updates are known: more than can be under way.
const remembered = 256

// remember adds an ID to a list, and reports whether it was not there.
func remember(list *[]string, id string) bool {
	if slices.Contains(*list, id) {
		return false
	}
	*list = append(*list, id)
	if len(*list) > remembered {
		*list = slices.Clone((*list)[len(*list)-remembered:])
	}
	return true
}
