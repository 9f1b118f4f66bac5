package roles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/optional"
	"github.com/fray-ml/fray/rl/record"
	"github.com/fray-ml/fray/rl/trainbatch"
)

// TrainBatchesConfig is of the actor train_batch_pool.
type TrainBatchesConfig struct {
	Pool    trainbatch.Config
	Journal record.Journal // nil: nothing outlives the process
	Records [][]byte       // of the journal, as it was opened
	Log     *slog.Logger
}

// TrainBatches is the actor of a train batch pool. Its exported methods are what can be called.
type TrainBatches struct {
	mu      sync.Mutex
	machine *trainbatch.Pool
	record  record.Recorder
	rewound int           // how often the pool was emptied
	changed chan struct{} // closed once a batch that waits should be tried again
	// A batch may be had that could not be before.
	available signal
	log       *slog.Logger
	warned    bool // that consumers have much that they do not acknowledge
}

// trainCommand is a change of a train batch pool, as its journal has it.
type trainCommand struct {
	Op       trainOp         `json:"op"`
	Header   *rl.TrainHeader `json:"header,omitempty"`
	Model    rl.ModelTag     `json:"model,omitempty"`
	Consumer string          `json:"consumer,omitempty"`
	ID       string          `json:"id,omitempty"`
}

// trainOp is a kind of change.
type trainOp string

const (
	trainPut     trainOp = "put"
	trainGet     trainOp = "get"
	trainAck     trainOp = "ack"
	trainRelease trainOp = "release"
	trainClear   trainOp = "clear"
)

// NewTrainBatches returns the actor, in the state that its journal has.
func NewTrainBatches(cfg TrainBatchesConfig) (*TrainBatches, error) {
	machine, err := trainbatch.New(cfg.Pool)
	if err != nil {
		return nil, err
	}
	t := &TrainBatches{
		machine: machine, changed: make(chan struct{}), available: newSignal(), record: record.Recorder{Journal: cfg.Journal, Slack: 128 << 20}, log: cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)),
	}
	if err := record.Replay(cfg.Records, t.machine.Restore, t.apply); err != nil {
		return nil, fmt.Errorf("train batch pool: %w", err)
	}
	return t, t.compact()
}

func (t *TrainBatches) compact() error {
	state, payloads := t.machine.Snapshot()
	records, err := record.Snapshot(state, payloads)
	if err != nil {
		return err
	}
	t.record.Rewrite(records)
	return nil
}

// apply carries a change out, as it is made and as it is replayed.
func (t *TrainBatches) apply(c trainCommand, payload []byte) error {
	switch c.Op {
	case trainPut:
		t.machine.Put(*c.Header, payload)
	case trainGet:
		t.machine.Get(c.Model, c.Consumer)
	case trainAck:
		t.machine.Ack(c.ID)
	case trainRelease:
		t.machine.Release(c.Consumer)
	case trainClear:
		t.machine.Clear()
		t.rewound++
	default:
		return fmt.Errorf("unknown change %q", c.Op)
	}
	return nil
}

// note records a change that was carried out. Batches that wait are tried again.
func (t *TrainBatches) note(c trainCommand, payload []byte) (journal.Position, error) {
	if c.Op != trainPut {
		close(t.changed)
		t.changed = make(chan struct{})
	}
	if c.Op != trainGet {
		t.available.notify()
	}
	if t.record.Journal == nil {
		return 0, nil
	}
	record, err := record.Command(c, payload)
	if err != nil {
		return 0, err
	}
	t.record.Add(record)
	if t.record.IsLong(t.machine.Bytes()) {
		if err := t.compact(); err != nil {
			return 0, err
		}
	}
	return t.record.Last, nil
}

func (t *TrainBatches) change(c trainCommand) error {
	t.mu.Lock()
	err := t.apply(c, nil)
	var at journal.Position
	if err == nil {
		at, err = t.note(c, nil)
	}
	t.mu.Unlock()
	if err != nil {
		return err
	}
	return t.record.Wait(at)
}

// PutBatch stores a batch: true, also for an ID that was stored before. It waits while the pool is full. If the run goes back
// to a checkpoint meanwhile the batch is one of what is given up: false.
func (t *TrainBatches) PutBatch(ctx context.Context, header rl.TrainHeader, payload []byte) (bool, error) {
	if header.ID == "" {
		return false, errors.New("put_batch: the header has no id: want one of its own for each batch, so that it is stored once however often it is put")
	}
	t.mu.Lock()
	rewound := t.rewound
	t.mu.Unlock()
	for {
		at, wait, err := t.put(header, payload, rewound)
		if errors.Is(err, errRewound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if wait == nil {
			return true, t.record.Wait(at)
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-wait:
		}
	}
}

// errRewound is that the pool was emptied while a batch waited.
var errRewound = errors.New("the run has gone back to a checkpoint")

func (t *TrainBatches) put(header rl.TrainHeader, payload []byte, rewound int) (journal.Position, <-chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rewound != rewound {
		return 0, nil, errRewound
	}
	if t.machine.Seen(header.ID) {
		return t.record.Last, nil, nil
	}
	if !t.machine.Fits(payload) {
		return 0, t.changed, nil
	}
	t.machine.Put(header, payload)
	at, err := t.note(trainCommand{Op: trainPut, Header: &header}, payload)
	return at, nil, err
}

// GetBatch gives the oldest batch of a model, or nil. Its options are model ("default" if it is missing), consumer and wait. With
// a consumer the batch stays until Ack, and the same consumer gets it again until then. Wait is for how many seconds to wait for a
// batch.
func (t *TrainBatches) GetBatch(ctx context.Context, options ...any) (*rl.TrainBatch, error) {
	model, err := optional.Arguments(options).Text(0, "model")
	if err != nil {
		return nil, err
	}
	consumer, err := optional.Arguments(options).Text(1, "consumer")
	if err != nil {
		return nil, err
	}
	seconds, err := optional.Arguments(options).Seconds(2, "wait")
	if err != nil {
		return nil, err
	}
	ctx, cancel := within(ctx, seconds)
	defer cancel()
	for {
		batch, at, put, err := t.get(model, consumer)
		if err != nil {
			return nil, err
		}
		if batch != nil || seconds <= 0 {
			return batch, t.record.Wait(at)
		}
		select {
		case <-put:
		case <-ctx.Done():
			return nil, t.record.Wait(at)
		}
	}
}

// get gives a batch, and returns what to wait for where there is none.
func (t *TrainBatches) get(model rl.ModelTag, consumer string) (*rl.TrainBatch, journal.Position, <-chan struct{}, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	batch, changed := t.machine.Get(model, consumer)
	at := t.record.Last
	var err error
	if changed {
		at, err = t.note(trainCommand{Op: trainGet, Model: model, Consumer: consumer}, nil)
		t.warn()
	}
	return batch, at, t.available.changed, err
}

// warn notes once that consumers have more than the pool may hold beside it.
func (t *TrainBatches) warn() {
	if over := t.machine.Overhang(); over > 0 && !t.warned {
		t.warned = true
		t.log.Warn("train workers hold many batches until their next checkpoint: lower train_worker.save_freq to have them take less memory",
			"bytes", t.machine.Bytes(), "batches", t.machine.Sizes())
	}
}

// Ack forgets a batch that was given, and reports whether there was one of the ID.
func (t *TrainBatches) Ack(id string) (bool, error) {
	t.mu.Lock()
	known := t.machine.Ack(id)
	at := t.record.Last
	var err error
	if known {
		at, err = t.note(trainCommand{Op: trainAck, ID: id}, nil)
	}
	t.mu.Unlock()
	if err != nil {
		return false, err
	}
	return known, t.record.Wait(at)
}

// ReleaseConsumer has the batches of a consumer that died given to another.
func (t *TrainBatches) ReleaseConsumer(consumer string) error {
	return t.change(trainCommand{Op: trainRelease, Consumer: consumer})
}

// Untrained are the tasks of the batches that no train worker has, and of those that one has or had.
func (t *TrainBatches) Untrained() rl.Untrained {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Untrained()
}

// Rewind empties the pool as the run goes back to a checkpoint.
func (t *TrainBatches) Rewind(_ int) error { return t.change(trainCommand{Op: trainClear}) }

// IsEmpty reports whether every batch of every model was acknowledged.
func (t *TrainBatches) IsEmpty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.IsEmpty()
}

// Sizes are how many batches each model has.
func (t *TrainBatches) Sizes() map[rl.ModelTag]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.machine.Sizes()
}

// TrainBatchesOptions are how the actor is served.
func TrainBatchesOptions() host.Options {
	safe := host.MethodOptions{Idempotent: true}
	return host.Options{MaxConcurrency: concurrency, Methods: map[string]host.MethodOptions{
		"ack": safe, "release_consumer": safe, "is_empty": safe, "sizes": safe, "rewind": safe, "untrained": safe,
	}}
}
