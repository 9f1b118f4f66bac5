package roles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/trajectory"
)

// LoaderStatus reads the data loader of which a pool's or a validator's trajectories come.
type LoaderStatus interface {
	Status(ctx context.Context) (rl.LoaderStatus, error)
}

// BatchNotifier tells the weight sync controller of a batch, before the batch is given. After a crash one may be
// reported again, under the same ID.
type BatchNotifier interface {
	BatchReady(ctx context.Context, tag rl.ModelTag, batchID string) error
}

// PoolConfig is of the actor trajectory_pool.
type PoolConfig struct {
	Pool    trajectory.Config
	Loader  LoaderStatus
	Weights BatchNotifier
	Journal Journal  // nil: nothing outlives the process
	Records [][]byte // of the journal, as it was opened
	Now     func() time.Time
	Log     *slog.Logger
}

// Pool is the actor of a trajectory pool. Its exported methods are what can be called.
type Pool struct {
	loader  LoaderStatus
	weights BatchNotifier
	now     func() time.Time
	log     *slog.Logger
	ready   rl.Readiness
	taking  chan struct{} // has room for the one who takes a batch

	mu      sync.Mutex
	machine *trajectory.Pool
	record  recorder
	puts    int           // trajectories that were stored
	changed chan struct{} // closed once a trajectory that waits should be tried again
}

// poolCommand is a change of a pool, as its journal has it.
type poolCommand struct {
	Op     poolOp              `json:"op"`
	Header *rl.Header          `json:"header,omitempty"`
	Query  *trajectory.Query   `json:"query,omitempty"`
	ID     string              `json:"id,omitempty"` // of a batch, a consumer or a model
	Policy rl.IncompletePolicy `json:"policy,omitempty"`
	Epoch  int                 `json:"epoch,omitempty"`
	Now    time.Time           `json:"now,omitzero"`
}

// poolOp is a kind of change.
type poolOp string

const (
	opPut         poolOp = "put"
	opTake        poolOp = "take"
	opNotified    poolOp = "notified"
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
		loader: cfg.Loader, weights: cfg.Weights, now: cfg.Now, log: cfg.Log, ready: cfg.Pool.Ready, taking: make(chan struct{}, 1),
		machine: machine, changed: make(chan struct{}), record: recorder{journal: cfg.Journal, slack: 128 << 20},
	}
	if err := replay(cfg.Records, p.machine.Restore, p.apply); err != nil {
		return nil, fmt.Errorf("trajectory pool: %w", err)
	}
	return p, p.compact()
}

func (p *Pool) compact() error {
	state, payloads := p.machine.Snapshot()
	records, err := snapshotRecords(state, payloads)
	if err != nil {
		return err
	}
	p.record.rewrite(records)
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
	case opAck:
		p.machine.Ack(c.ID)
	case opReleaseOf:
		p.machine.Release(c.ID)
	case opLock:
		p.machine.Lock(c.ID)
	case opUnlockModel:
		p.machine.Unlock(c.ID, c.Now)
	case opFlush:
		p.machine.Flush(c.ID, c.Policy)
	case opRewindPool:
		p.machine.Rewind(c.Epoch)
	default:
		return fmt.Errorf("unknown change %q", c.Op)
	}
	return nil
}

// note records a change that was carried out. Trajectories that wait are tried again.
func (p *Pool) note(c poolCommand, payload []byte) (journal.Position, error) {
	if c.Op != opPut {
		close(p.changed)
		p.changed = make(chan struct{})
	}
	if p.record.journal == nil {
		return 0, nil
	}
	record, err := commandRecord(c, payload)
	if err != nil {
		return 0, err
	}
	p.record.add(record)
	if p.record.isLong(p.machine.Bytes()) {
		if err := p.compact(); err != nil {
			return 0, err
		}
	}
	return p.record.last, nil
}

// change carries a change out, records it and waits until it is durable.
func (p *Pool) change(c poolCommand) error {
	p.mu.Lock()
	err := p.apply(c, nil)
	var at journal.Position
	if err == nil {
		at, err = p.note(c, nil)
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	return p.record.wait(at)
}

// PutTrajectory stores a trajectory. It waits while the pool is full, and answers once the trajectory is in the journal.
func (p *Pool) PutTrajectory(ctx context.Context, header rl.Header, payload []byte) (rl.Outcome, error) {
	for {
		done, err := p.put(header, payload)
		if err != nil {
			return "", err
		}
		if done.wait == nil {
			return done.outcome, p.record.wait(done.at)
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-done.wait:
		}
	}
}

// putResult is an outcome that stands once the journal is written so far, or what to wait for first.
type putResult struct {
	outcome rl.Outcome
	at      journal.Position
	wait    <-chan struct{}
}

func (p *Pool) put(header rl.Header, payload []byte) (putResult, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	verdict, err := p.machine.Admit(header, payload)
	switch {
	case err != nil:
		return putResult{}, err
	case verdict.Wait:
		return putResult{wait: p.changed}, nil
	case verdict.Outcome != "":
		if verdict.Outcome == rl.Fail {
			p.log.Warn("a trajectory is rejected", "task", header.TaskID, "reason", verdict.Reason)
		}
		return putResult{outcome: verdict.Outcome, at: p.record.last}, nil
	}
	now := p.now()
	p.machine.Store(header, payload, now)
	p.puts++
	at, err := p.note(poolCommand{Op: opPut, Header: &header, Now: now}, payload)
	return putResult{outcome: rl.Success, at: at}, err
}

// GetBatch gives a batch, or nil if none is ready. Its options are batch_size, model_tag and consumer, in this order.
// With a consumer the batch stays until Ack, and the same consumer gets it again until then.
func (p *Pool) GetBatch(ctx context.Context, options ...any) (*rl.Batch, error) {
	size, err := optional(options).number(0, "batch_size")
	if err != nil {
		return nil, err
	}
	tag, err := optional(options).text(1, "model_tag")
	if err != nil {
		return nil, err
	}
	consumer, err := optional(options).text(2, "consumer")
	if err != nil {
		return nil, err
	}
	return p.take(ctx, trajectory.Query{BatchSize: size, Tag: tag, Consumer: consumer})
}

// GetBatchAny is GetBatch of any model. Its options are batch_size and consumer.
func (p *Pool) GetBatchAny(ctx context.Context, options ...any) (*rl.Batch, error) {
	size, err := optional(options).number(0, "batch_size")
	if err != nil {
		return nil, err
	}
	consumer, err := optional(options).text(1, "consumer")
	if err != nil {
		return nil, err
	}
	return p.take(ctx, trajectory.Query{BatchSize: size, Consumer: consumer})
}

// take finds a batch, has the weight sync controller know of it, and gives it.
func (p *Pool) take(ctx context.Context, q trajectory.Query) (*rl.Batch, error) {
	select {
	case p.taking <- struct{}{}:
		defer func() { <-p.taking }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	acknowledged := q.Consumer == ""
	if acknowledged {
		q.Consumer = anonymous
	}
	answer, at, err := p.find(ctx, q)
	if err == nil {
		err = p.record.wait(at)
	}
	if err != nil || answer.Batch == nil {
		return nil, err
	}
	b := answer.Batch
	if !answer.Notified {
		tag, _ := b.Metadata["model_tag"].(string)
		if err := p.weights.BatchReady(ctx, tag, b.ID); err != nil {
			return nil, fmt.Errorf("notify weight_sync_controller of batch %s: %w", b.ID, err)
		}
	}
	settled := poolCommand{Op: opNotified, ID: b.ID}
	if acknowledged {
		settled.Op = opAck
	}
	if acknowledged || !answer.Notified {
		if err := p.change(settled); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// find takes a batch out of the machine. Whether the loader is quiet counts only if nothing was put while it was asked:
// then all that was loaded is here.
func (p *Pool) find(ctx context.Context, q trajectory.Query) (trajectory.Answer, journal.Position, error) {
	for {
		p.mu.Lock()
		answer, err := p.takeNow(q)
		puts, at := p.puts, p.record.last
		mayAsk := err == nil && answer.Batch == nil && p.machine.Status(q.Tag).Samples > 0
		p.mu.Unlock()
		if !mayAsk {
			return answer, at, err
		}
		status, err := p.loader.Status(ctx)
		if err != nil {
			return trajectory.Answer{}, 0, fmt.Errorf("read the data loader's status: %w", err)
		}
		if !status.Quiet() {
			return trajectory.Answer{}, at, nil
		}
		quiet := q
		quiet.Quiet, quiet.Finished = true, status.Finished
		p.mu.Lock()
		if p.puts != puts {
			p.mu.Unlock()
			continue
		}
		answer, err = p.takeNow(quiet)
		at = p.record.last
		p.mu.Unlock()
		return answer, at, err
	}
}

func (p *Pool) takeNow(q trajectory.Query) (trajectory.Answer, error) {
	q.Now = p.now()
	answer, err := p.machine.Take(q)
	if answer.Changed {
		if _, failed := p.note(poolCommand{Op: opTake, Query: &q}, nil); failed != nil {
			return answer, failed
		}
	}
	return answer, err
}

// ignoreFields drops a FieldsError, which the caller of the first Take got.
func ignoreFields(err error) error {
	if _, ok := errors.AsType[*trajectory.FieldsError](err); ok {
		return nil
	}
	return err
}

// Ack forgets a batch that was given, and reports whether there was one of the ID.
func (p *Pool) Ack(batchID string) (bool, error) {
	p.mu.Lock()
	known := p.machine.Ack(batchID)
	at := p.record.last
	var err error
	if known {
		at, err = p.note(poolCommand{Op: opAck, ID: batchID}, nil)
	}
	p.mu.Unlock()
	if err != nil {
		return false, err
	}
	return known, p.record.wait(at)
}

// ReleaseConsumer has the batches of a consumer that died given to another.
func (p *Pool) ReleaseConsumer(consumer string) error {
	return p.change(poolCommand{Op: opReleaseOf, ID: consumer})
}

// IsEmpty reports whether the pool has nothing of a model, or of any. Incomplete groups, and batches that are not
// acknowledged, count.
func (p *Pool) IsEmpty(options ...any) (bool, error) {
	tag, err := optional(options).text(0, "model_tag")
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.machine.IsEmpty(tag), nil
}

// Size is how many trajectories of a model, or of any, wait for a batch.
func (p *Pool) Size(options ...any) (int, error) {
	tag, err := optional(options).text(0, "model_tag")
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.machine.Status(tag).Samples, nil
}

// Status is how much of a model, or of any, the pool has.
func (p *Pool) Status(options ...any) (trajectory.Status, error) {
	tag, err := optional(options).text(0, "model_tag")
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

// UnlockForWeightSync accepts trajectories of a model again.
func (p *Pool) UnlockForWeightSync(modelTag string) error {
	return p.change(poolCommand{Op: opUnlockModel, ID: modelTag, Now: p.now()})
}

// Flush releases a model's incomplete groups as they are ("flush"), or drops them ("drop").
func (p *Pool) Flush(modelTag, policy string) error {
	parsed, err := rl.ParseIncompletePolicy(policy)
	if err != nil {
		return err
	}
	return p.change(poolCommand{Op: opFlush, ID: modelTag, Policy: parsed})
}

// Rewind empties the pool as the run goes back to a checkpoint.
func (p *Pool) Rewind(epoch int) error { return p.change(poolCommand{Op: opRewindPool, Epoch: epoch}) }

// PoolOptions are how the actor is served.
func PoolOptions() host.Options {
	safe := host.MethodOptions{Idempotent: true}
	return host.Options{MaxConcurrency: concurrency, Methods: map[string]host.MethodOptions{
		"ack": safe, "release_consumer": safe, "is_empty": safe, "size": safe, "status": safe, "get_model_tags": safe,
		"notify_weight_sync_starting": safe, "unlock_for_weight_sync": safe, "flush": safe, "rewind": safe,
	}}
}
