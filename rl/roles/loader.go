package roles

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/host"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/rl/loader"
	"github.com/fray-ml/fray/rl/optional"
	"github.com/fray-ml/fray/rl/record"
	"github.com/fray-ml/fray/rl/source"
)

// LoaderConfig is of the actors data_loader and validate_dataloader.
type LoaderConfig struct {
	Loader  loader.Config // Length is the source's
	Source  source.Source
	Journal record.Journal // nil: nothing outlives the process
	Records [][]byte       // of the journal, as it was opened
	Now     func() time.Time
	Log     *slog.Logger
}

// Loader is the actor of a data loader. Its exported methods are what can be called.
type Loader struct {
	source source.Source
	now    func() time.Time
	log    *slog.Logger
	leased chan struct{} // has room for one: a lease may expire earlier than was known

	mu      sync.Mutex
	machine *loader.Loader
	record  record.Recorder
	// Callers wait for a task to be there, or for the loader to be quiet.
	available, quiet signal
}

// loaderCommand is a change of a loader, as its journal has it.
type loaderCommand struct {
	Op          loaderOp      `json:"op"`
	Worker      string        `json:"worker,omitempty"`
	Incarnation string        `json:"incarnation,omitempty"`
	IDs         []string      `json:"ids,omitempty"`
	ID          string        `json:"id,omitempty"` // of an item that is added
	N           int           `json:"n,omitempty"`  // batches, or an epoch
	State       *loader.State `json:"state,omitempty"`
	// Source is a pool that has Tasks rolled out again.
	Source string         `json:"source,omitempty"`
	Tasks  []rl.TaskAgain `json:"tasks,omitempty"`
	Held   []string       `json:"held,omitempty"` // leases that an exchange keeps; N is how many more it wants
	Now    time.Time      `json:"now,omitzero"`
}

// loaderOp is a kind of change.
type loaderOp string

const (
	opNext     loaderOp = "next"
	opExchange loaderOp = "exchange"
	opComplete loaderOp = "complete"
	opPutBack  loaderOp = "put_back"
	opRelease  loaderOp = "release"
	opAddFront loaderOp = "add_front"
	opAddBack  loaderOp = "add_back"
	opReset    loaderOp = "reset"
	opSkip     loaderOp = "skip"
	opUnlock   loaderOp = "unlock"
	opRewind   loaderOp = "rewind"
	opAgain    loaderOp = "again"
)

// NewLoader returns the actor, in the state that its journal has.
func NewLoader(cfg LoaderConfig) (*Loader, error) {
	cfg.Loader.Length = cfg.Source.Len()
	cfg.Loader.Instance = cmp.Or(cfg.Loader.Instance, rand.Text())
	machine, err := loader.New(cfg.Loader)
	if err != nil {
		return nil, err
	}
	l := &Loader{
		source: cfg.Source, now: cfg.Now, log: cfg.Log, leased: make(chan struct{}, 1), machine: machine, available: newSignal(), quiet: newSignal(),
		record: record.Recorder{Journal: cfg.Journal, Slack: 8 << 20},
	}
	restore := func(state loader.State, _ [][]byte) error { return l.machine.Restore(state) }
	if err := record.Replay(cfg.Records, restore, l.apply); err != nil {
		return nil, fmt.Errorf("data loader: %w", err)
	}
	l.machine.RenewAll(l.now()) // while there was no loader no worker could
	return l, l.compact()
}

// compact replaces the journal by a snapshot.
func (l *Loader) compact() error {
	records, err := record.Snapshot(l.machine.Snapshot(), nil)
	if err != nil {
		return err
	}
	l.record.Rewrite(records)
	return nil
}

// apply carries a change out, as it is made and as it is replayed.
func (l *Loader) apply(c loaderCommand, item []byte) error {
	switch c.Op {
	case opNext:
		l.machine.Next(c.Worker, c.Incarnation, c.Now)
	case opExchange:
		l.machine.Exchange(loader.Exchange{Worker: c.Worker, Incarnation: c.Incarnation, Done: c.IDs, Held: c.Held, Want: c.N}, c.Now)
	case opComplete:
		for _, id := range c.IDs {
			l.machine.Complete(id)
		}
	case opPutBack:
		l.machine.PutBackAll(c.IDs)
	case opRelease:
		l.machine.ReleaseWorker(c.Worker, c.Incarnation)
	case opAddFront, opAddBack:
		l.machine.AddOnce(c.ID, item, c.Op == opAddFront)
	case opReset:
		l.machine.Reset()
	case opSkip:
		_, err := l.machine.Skip(c.N)
		return err
	case opUnlock:
		l.machine.Unlock()
	case opRewind:
		return l.machine.Rewind(*c.State, c.N)
	case opAgain:
		l.machine.Again(c.Source, c.N, c.Tasks)
	default:
		return fmt.Errorf("unknown change %q", c.Op)
	}
	return nil
}

// note records a change that was carried out. Callers that wait for what it has led to check again.
func (l *Loader) note(c loaderCommand, item []byte) (journal.Position, error) {
	if status := l.machine.Status(); !status.Drained {
		l.available.notify()
	} else if status.Quiet() {
		l.quiet.notify()
	}
	if l.record.Journal == nil {
		return 0, nil
	}
	record, err := record.Command(c, item)
	if err != nil {
		return 0, err
	}
	l.record.Add(record)
	if l.record.IsLong(0) {
		if err := l.compact(); err != nil {
			return 0, err
		}
	}
	return l.record.Last, nil
}

// change carries a change out, records it and waits until it is durable.
func (l *Loader) change(c loaderCommand, item []byte) error {
	l.mu.Lock()
	err := l.apply(c, item)
	var at journal.Position
	if err == nil {
		at, err = l.note(c, item)
	}
	l.mu.Unlock()
	if err != nil {
		return err
	}
	return l.record.Wait(at)
}

// GetNextItem leases the next task to a worker; nil: there is none now. The lease is the worker's activity.
func (l *Loader) GetNextItem(worker, incarnation string) (*rl.Task, error) {
	if worker == "" {
		return nil, errors.New("get_next_item: worker is empty: want the name of the worker that leases the task")
	}
	grant, at, err := l.next(worker, incarnation)
	if err == nil {
		err = l.record.Wait(at)
	}
	if err != nil || grant == nil {
		return nil, err
	}
	item, err := l.item(grant.Entry)
	if err != nil {
		return nil, err
	}
	return &rl.Task{Item: item, Lease: grant.Lease}, nil
}

func (l *Loader) next(worker, incarnation string) (*loader.Grant, journal.Position, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	grants, changed := l.machine.Exchange(loader.Exchange{Worker: worker, Incarnation: incarnation, Want: 1}, now)
	at := l.record.Last
	var err error
	if changed {
		l.expectExpiry()
		at, err = l.note(loaderCommand{Op: opNext, Worker: worker, Incarnation: incarnation, Now: now}, nil)
	}
	if len(grants) == 0 {
		return nil, at, err
	}
	return &grants[0], at, err
}

// expectExpiry has the loader wait for the end of the first lease. With several another one is due earlier.
func (l *Loader) expectExpiry() {
	if l.machine.Status().Leased == 0 {
		return
	}
	select {
	case l.leased <- struct{}{}:
	default:
	}
}

// Complete ends a lease with its task, and reports whether the lease stood.
func (l *Loader) Complete(lease, outcome string) (bool, error) {
	if _, err := rl.ParseTaskOutcome(outcome); err != nil {
		return false, err
	}
	return l.changeIf(func() bool { return l.machine.Has(lease) }, loaderCommand{Op: opComplete, IDs: []string{lease}})
}

// PutBack ends a lease whose task is to be the next one, and reports whether the lease stood.
func (l *Loader) PutBack(lease string) (bool, error) {
	return l.changeIf(func() bool { return l.machine.Has(lease) }, loaderCommand{Op: opPutBack, IDs: []string{lease}})
}

// changeIf carries a change out if a condition holds, and reports whether it does. What it holds for is durable then.
func (l *Loader) changeIf(holds func() bool, c loaderCommand) (bool, error) {
	l.mu.Lock()
	ok := holds()
	at := l.record.Last
	var err error
	if ok {
		if err = l.apply(c, nil); err == nil {
			at, err = l.note(c, nil)
		}
	}
	l.mu.Unlock()
	if err != nil {
		return false, err
	}
	return ok, l.record.Wait(at)
}

// Renew keeps the leases of a worker, and returns how many it has: 0 if it has lost them.
func (l *Loader) Renew(worker, incarnation string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.machine.Renew(worker, incarnation, l.now())
}

// ReleaseWorker has the task of a worker that died given to another. Incarnation "" is any.
func (l *Loader) ReleaseWorker(worker, incarnation string) error {
	return l.change(loaderCommand{Op: opRelease, Worker: worker, Incarnation: incarnation}, nil)
}

// AddItem appends an item. An ID of the item may follow, by which it is added once however often that is asked.
func (l *Loader) AddItem(item rl.Item, more ...any) error { return l.add(item, opAddBack, more) }

// AddItemBack is AddItem.
func (l *Loader) AddItemBack(item rl.Item, more ...any) error { return l.add(item, opAddBack, more) }

// AddItemFront has an item come next; an ID may follow as for AddItem.
func (l *Loader) AddItemFront(item rl.Item, more ...any) error { return l.add(item, opAddFront, more) }

func (l *Loader) add(item rl.Item, op loaderOp, more optional.Arguments) error {
	id, err := more.Text(0, "id")
	if err != nil {
		return err
	}
	encoded, err := encodeItem(item)
	if err != nil {
		return err
	}
	return l.change(loaderCommand{Op: op, ID: id}, encoded)
}

// Size is how many tasks are left, those that are leased not among them.
func (l *Loader) Size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.machine.Len()
}

// GetItem is an item of the source.
func (l *Loader) GetItem(index int) (rl.Item, error) { return l.source.Item(index) }

// IsFinished reports whether no task is left.
func (l *Loader) IsFinished() bool { return l.Status().Finished }

// CanReturnItem reports whether a task can be had now.
func (l *Loader) CanReturnItem() bool { return !l.Status().Drained }

// Reset begins the data again.
func (l *Loader) Reset() error { return l.change(loaderCommand{Op: opReset}, nil) }

// SkipBatches leaves out batches before the first task, and returns how many there were to leave out.
func (l *Loader) SkipBatches(n int) (int, error) {
	l.mu.Lock()
	skipped, err := l.machine.Skip(n)
	var at journal.Position
	if err == nil {
		at, err = l.note(loaderCommand{Op: opSkip, N: skipped}, nil)
	}
	l.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if skipped < n {
		l.log.Warn("the data have fewer batches than are to be skipped: nothing is left to roll out", "skip", n, "batches", skipped)
	}
	return skipped, l.record.Wait(at)
}

// UnlockForNextBatch lets the next batch begin. A position may follow, that of the status in which the caller has seen the
// loader: if it has left that, as by a call whose answer was lost, nothing changes and the result is false.
func (l *Loader) UnlockForNextBatch(at ...rl.Position) (bool, error) {
	return l.changeIf(func() bool { return len(at) == 0 || at[0] == l.machine.Status().Position }, loaderCommand{Op: opUnlock})
}

// Status is one reading of the loader.
func (l *Loader) Status() rl.LoaderStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.machine.Status()
}

// Snapshot is the loader's state, for a checkpoint.
func (l *Loader) Snapshot() ([]byte, error) {
	l.mu.Lock()
	state, at := l.machine.Snapshot(), l.record.Last
	l.mu.Unlock()
	if err := l.record.Wait(at); err != nil {
		return nil, err
	}
	return json.Marshal(state)
}

// Restore makes the loader what it was at a snapshot. Its leases do not stand any more: their tasks come next. An epoch
// may follow, that of the run from now on.
func (l *Loader) Restore(snapshot []byte, more ...any) error {
	epoch, err := optional.Arguments(more).Number(0, "epoch")
	if err != nil {
		return err
	}
	var state loader.State
	if err := json.Unmarshal(snapshot, &state); err != nil {
		return fmt.Errorf("restore: read the snapshot: %w", err)
	}
	return l.change(loaderCommand{Op: opRewind, State: &state, N: epoch}, nil)
}

// LoaderOptions are how the actor is served.
func LoaderOptions() host.Options {
	return host.Options{MaxConcurrency: concurrency, Methods: map[string]host.MethodOptions{
		"get_next_item":   {Idempotent: true},                                   // while its lease stands a worker gets the same task
		"exchange_leases": {Idempotent: true}, "wait_quiet": {Idempotent: true}, // a lease that the worker does not know comes again
		"complete": {Idempotent: true}, "renew": {Idempotent: true}, "status": {Idempotent: true}, "size": {Idempotent: true},
		"is_finished": {Idempotent: true}, "can_return_item": {Idempotent: true}, "release_worker": {Idempotent: true},
		"get_item": {Idempotent: true}, "snapshot": {Idempotent: true}, "put_back": {Idempotent: true}, "health_check": {Idempotent: true},
		"roll_out_again": {Idempotent: true}, // their numbers tell which are had already
	}}
}

// TendLoader ends leases that are not renewed, until ctx ends.
func TendLoader(ctx context.Context, l *Loader) error {
	for {
		wait, err := l.expire()
		if err != nil {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-l.leased:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// idle is how long a loader without leases waits, unless one is given.
const idle = time.Hour

// expire ends the leases that are due, and returns how long it is until the next may be.
func (l *Loader) expire() (time.Duration, error) {
	l.mu.Lock()
	ids := l.machine.Expired(l.now())
	at := l.record.Last
	var err error
	if len(ids) > 0 {
		l.log.Warn("leases were not renewed: their tasks go to other workers", "leases", len(ids), "first", ids[0])
		l.machine.PutBackAll(ids)
		at, err = l.note(loaderCommand{Op: opPutBack, IDs: ids}, nil)
	}
	wait := idle
	if due, ok := l.machine.NextExpiry(); ok {
		wait = max(due.Sub(l.now()), time.Millisecond)
	}
	l.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return wait, l.record.Wait(at)
}
