package roles

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/optional"
	"github.com/fray-ml/fray/rl/record"
	"github.com/fray-ml/fray/rl/trajectory"
)

// LoaderStatus reads the data loader of which a pool's or a validator's trajectories come.
type LoaderStatus interface {
	Status(ctx context.Context) (rl.LoaderStatus, error)
	// WaitQuiet returns the status as soon as nothing is rolled out and nothing is to be, or after so many seconds.
	WaitQuiet(ctx context.Context, seconds float64) (rl.LoaderStatus, error)
}

// TaskReturner has the data loader give tasks again. Calls may be repeated.
type TaskReturner interface {
	// RollOutAgain returns the tasks whose content the loader does not know any more.
	RollOutAgain(ctx context.Context, pool string, epoch int, tasks []rl.TaskAgain) (lost []string, err error)
}

// BatchNotifier reports a batch to the weight sync controller, before the batch is given. After a crash one may be
// reported again, under the same ID. Oldest is the first of the versions that its trajectories are of; nil: none is known.
type BatchNotifier interface {
	BatchReady(ctx context.Context, tag rl.ModelTag, batchID string, oldest *int64) (rl.BatchVerdict, error)
}

// PoolConfig is of the actor trajectory_pool.
type PoolConfig struct {
	Pool    trajectory.Config
	Loader  LoaderStatus
	Tasks   TaskReturner // of the same loader; nil: weight sync bounds no staleness
	Weights BatchNotifier
	Journal record.Journal // nil: nothing outlives the process
	Records [][]byte       // of the journal, as it was opened
	Now     func() time.Time
	Log     *slog.Logger
}

// Pool is the actor of a trajectory pool. Its exported methods are what can be called.
type Pool struct {
	name    string
	loader  LoaderStatus
	tasks   TaskReturner
	weights BatchNotifier
	now     func() time.Time
	log     *slog.Logger
	taking  chan struct{} // has room for the one who takes a batch
	evicted chan struct{} // has room for one: the loader is to give tasks again

	mu      sync.Mutex
	machine *trajectory.Pool
	record  record.Recorder
	puts    int           // trajectories that were stored
	changed chan struct{} // closed once a trajectory that waits should be tried again
	stored  signal        // a trajectory was
}

// poolCommand is a change of a pool, as its journal has it.
type poolCommand struct {
	Op     poolOp              `json:"op"`
	Header *rl.Header          `json:"header,omitempty"`
	Query  *trajectory.Query   `json:"query,omitempty"`
	ID     string              `json:"id,omitempty"` // of a batch, a consumer or a model
	Policy rl.IncompletePolicy `json:"policy,omitempty"`
	Epoch  int                 `json:"epoch,omitempty"`
	// Number is the version of a floor, or of a task that the loader gives again.
	Number int64     `json:"number,omitempty"`
	Now    time.Time `json:"now,omitzero"`
}

// poolOp is a kind of change.
type poolOp string

const (
	opPut         poolOp = "put"
	opTake        poolOp = "take"
	opNotified    poolOp = "notified"
	opReject      poolOp = "reject"
	opFloor       poolOp = "floor"
	opReturned    poolOp = "returned"
	opAck         poolOp = "ack"
	opReleaseOf   poolOp = "release"
	opLock        poolOp = "lock"
	opUnlockModel poolOp = "unlock"
	opFlush       poolOp = "flush"
	opRewindPool  poolOp = "rewind"
)

// anonymous is the consumer of callers that name none.
const anonymous = "(none)"

// NewPool returns the actor, in the state that its journal has.
func NewPool(cfg PoolConfig) (*Pool, error) {
	machine, err := trajectory.New(cfg.Pool)
	if err != nil {
		return nil, err
	}
	p := &Pool{
		name: cfg.Pool.Name, loader: cfg.Loader, tasks: cfg.Tasks, weights: cfg.Weights, now: cfg.Now, log: cfg.Log, taking: make(chan struct{}, 1), evicted: make(chan struct{}, 1),
		machine: machine, changed: make(chan struct{}), stored: newSignal(), record: record.Recorder{Journal: cfg.Journal, Slack: 128 << 20},
	}
	if err := record.Replay(cfg.Records, p.machine.Restore, p.apply); err != nil {
		return nil, fmt.Errorf("trajectory pool: %w", err)
	}
	return p, p.compact()
}

func (p *Pool) compact() error {
	state, payloads := p.machine.Snapshot()
	records, err := record.Snapshot(state, payloads)
	if err != nil {
		return err
	}
	p.record.Rewrite(records)
	return nil
}

// apply carries a change out, as it is made and as it is replayed.
func (p *Pool) apply(c poolCommand, payload []byte) error {
	switch c.Op {
	case opPut:
		p.machine.Store(*c.Header, payload, c.Now)
	case opTake:
		_, err := p.machine.Take(*c.Query)
		return ignoreFields(err)
	case opNotified:
		p.machine.NoteNotified(c.ID)
	case opReject:
		p.machine.Reject(c.ID, c.Number)
	case opFloor:
		p.machine.SetFloor(c.ID, c.Number)
	case opReturned:
		p.machine.Returned(c.Number)
	case opAck:
		p.machine.Ack(c.ID)
	case opReleaseOf:
		p.machine.Release(c.ID)
	case opLock:
		p.machine.Lock(c.ID)
	case opUnlockModel:
		p.machine.Unlock(c.ID, c.Number, c.Now)
	case opFlush:
		p.machine.Flush(c.ID, c.Policy)
	case opRewindPool:
		p.machine.Rewind(c.Epoch)
	default:
		return fmt.Errorf("unknown change %q", c.Op)
	}
	return nil
}

// encode is the record of a change; nil without a journal. A change that no record can have is not to be carried out.
func (p *Pool) encode(c poolCommand, payload []byte) ([]byte, error) {
	if p.record.Journal == nil {
		return nil, nil
	}
	return record.Command(c, payload)
}

// append adds the record of a change that was carried out.
func (p *Pool) append(record []byte) (journal.Position, error) {
	if p.record.Journal == nil {
		return 0, nil
	}
	p.record.Add(record)
	if p.record.IsLong(p.machine.Bytes()) {
		if err := p.compact(); err != nil {
			return 0, err
		}
	}
	return p.record.Last, nil
}

// note carries a change out and records it. Trajectories that wait for room are tried again.
func (p *Pool) note(c poolCommand) (journal.Position, error) {
	record, err := p.encode(c, nil)
	if err != nil {
		return 0, err
	}
	if err := p.apply(c, nil); err != nil {
		return 0, err
	}
	p.roomier()
	if len(p.machine.Evicted()) > 0 {
		select {
		case p.evicted <- struct{}{}:
		default:
		}
	}
	return p.append(record)
}

// roomier has trajectories that wait for room tried again.
func (p *Pool) roomier() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// begin carries a change out and records it.
func (p *Pool) begin(c poolCommand) (journal.Position, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.note(c)
}

// change carries a change out, records it and waits until it is durable.
func (p *Pool) change(c poolCommand) error {
	at, err := p.begin(c)
	if err != nil {
		return err
	}
	return p.record.Wait(at)
}

// Ack forgets a batch that was given, and reports whether there was one of the ID.
func (p *Pool) Ack(batchID string) (bool, error) {
	p.mu.Lock()
	known, at := p.machine.Has(batchID), p.record.Last
	var err error
	if known {
		at, err = p.note(poolCommand{Op: opAck, ID: batchID})
	}
	p.mu.Unlock()
	if err != nil {
		return false, err
	}
	return known, p.record.Wait(at)
}

// ReleaseConsumer has the batches of a consumer that died given to another.
func (p *Pool) ReleaseConsumer(consumer string) error {
	return p.change(poolCommand{Op: opReleaseOf, ID: consumer})
}

// IsEmpty reports whether the pool has nothing of a model, or of any. Incomplete groups, and batches that are not
// acknowledged, count.
func (p *Pool) IsEmpty(options ...any) (bool, error) {
	tag, err := optional.Arguments(options).Text(0, "model_tag")
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.machine.IsEmpty(tag), nil
}

// Size is how many trajectories of a model, or of any, wait for a batch.
func (p *Pool) Size(options ...any) (int, error) {
	tag, err := optional.Arguments(options).Text(0, "model_tag")
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.machine.Status(tag).Samples, nil
}

// Status is how much of a model, or of any, the pool has.
func (p *Pool) Status(options ...any) (trajectory.Status, error) {
	tag, err := optional.Arguments(options).Text(0, "model_tag")
	if err != nil {
		return trajectory.Status{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.machine.Status(tag), nil
}

// GetModelTags are the models of which anything was stored.
func (p *Pool) GetModelTags() []rl.ModelTag {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.machine.ModelTags()
}

// NotifyWeightSyncStarting has trajectories of a model rolled out again until UnlockForWeightSync.
func (p *Pool) NotifyWeightSyncStarting(modelTag string) error {
	return p.change(poolCommand{Op: opLock, ID: modelTag})
}

// UnlockForWeightSync accepts trajectories of a model again. A version of weights may follow: trajectories of earlier ones
// are rolled out again.
func (p *Pool) UnlockForWeightSync(modelTag string, more ...any) error {
	floor, err := optional.Arguments(more).Number(0, "floor")
	if err != nil {
		return err
	}
	return p.change(poolCommand{Op: opUnlockModel, ID: modelTag, Number: int64(floor), Now: p.now()})
}

// Flush releases a model's incomplete groups as they are ("flush"), or drops them ("drop").
func (p *Pool) Flush(modelTag, policy string) error {
	parsed, err := rl.ParseIncompletePolicy(policy)
	if err != nil {
		return err
	}
	return p.change(poolCommand{Op: opFlush, ID: modelTag, Policy: parsed})
}

// Untrained are the tasks whose trajectories the pool has, for a checkpoint: a run that begins there rolls them out again.
func (p *Pool) Untrained() rl.Untrained {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.machine.Untrained()
}

// Rewind empties the pool as the run goes back to a checkpoint.
func (p *Pool) Rewind(epoch int) error { return p.change(poolCommand{Op: opRewindPool, Epoch: epoch}) }

// PoolOptions are how the actor is served.
func PoolOptions() host.Options {
	safe := host.MethodOptions{Idempotent: true}
	return host.Options{MaxConcurrency: concurrency, Methods: map[string]host.MethodOptions{
		"ack": safe, "release_consumer": safe, "is_empty": safe, "size": safe, "status": safe, "get_model_tags": safe, "untrained": safe,
		"notify_weight_sync_starting": safe, "unlock_for_weight_sync": safe, "flush": safe, "rewind": safe,
	}}
}
