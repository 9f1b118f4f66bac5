package notices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/notice"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Config is what a Keeper works with.
type Config struct {
	Store     store.Store
	Epoch     uint64
	Valid     func() error // whether the lease still holds; called before every write and delivery
	Workspace string
	Leader    notice.Leader
	// Reveal opens sensitive texts.
	Reveal func(schema.Text) (string, error)
	Log    *slog.Logger
	// Counted is called with each delivery that ended; nil: not called.
	Counted func(of schema.Address, to schema.Receiver, result Result)
	// Command bounds how long a command may take, HTTP an exchange; 0: 30 s and 15 s.
	Command, HTTP time.Duration
	// Backoff is the wait after a number of failures in a row; nil: plan.Backoff.
	Backoff func(failures int) time.Duration
}

// Result is a closed set of how a delivery ends.
type Result string

// The results.
const (
	ResultSent    Result = "sent"
	ResultFailed  Result = "failed"  // and is tried again
	ResultDropped Result = "dropped" // and is not
)

// Results are all of them.
func Results() []Result { return []Result{ResultSent, ResultFailed, ResultDropped} }

// Keeper decides and keeps notices under one lease. Its methods may be called concurrently.
type Keeper struct {
	cfg Config

	mu            sync.Mutex
	ledger        *notice.Ledger // as decided
	saved         *notice.Ledger // as the store has it; nil: that is not known
	savedAt       time.Time
	notifications map[schema.Address]*schema.Notification
	events        []state.Event // for the loop to keep

	saving     sync.Mutex // held while the ledger is written
	generation store.Generation
	changed    chan struct{} // for the deliveries: there may be more to do
}

// Open reads the ledger and writes it under the lease, so that a former leader writes it no more.
// A ledger that cannot be read is begun anew: notices are for people, and the stack goes on.
func Open(ctx context.Context, cfg Config) *Keeper {
	if cfg.Backoff == nil {
		cfg.Backoff = plan.Backoff
	}
	k := &Keeper{cfg: cfg, ledger: &notice.Ledger{}, generation: store.Absent, changed: make(chan struct{}, 1)}
	if err := k.load(ctx); err != nil {
		cfg.Log.Warn("what was notified cannot be read; it begins anew", "error", err.Error())
	}
	return k
}

// load takes over the ledger in the store.
func (k *Keeper) load(ctx context.Context) error {
	found, generation, err := read(ctx, k.cfg.Store)
	if generation != store.Absent {
		k.generation = generation
	}
	if err != nil {
		return err
	}
	if k.ledger, k.saved = found, found; generation != store.Absent && found.Epoch < k.cfg.Epoch {
		fenced := *found
		fenced.Epoch = k.cfg.Epoch
		k.ledger = &fenced
	}
	return k.Save(ctx)
}

// Read returns the ledger of a stack, an empty one where there is none.
func Read(ctx context.Context, s store.Store) (*notice.Ledger, error) {
	found, _, err := read(ctx, s)
	return found, err
}

func read(ctx context.Context, s store.Store) (*notice.Ledger, store.Generation, error) {
	object, err := s.Get(ctx, store.NoticesKey)
	if errors.Is(err, store.ErrNotFound) {
		return &notice.Ledger{}, store.Absent, nil
	}
	if err != nil {
		return nil, store.Absent, fmt.Errorf("read %s: %w", store.NoticesKey, err)
	}
	var l notice.Ledger
	if err := json.Unmarshal(object.Data, &l); err != nil {
		return nil, object.Generation, fmt.Errorf("read %s: it is damaged: %w", store.NoticesKey, err)
	}
	return &l, object.Generation, nil
}

// Note decides what a step is to be told of. It makes no calls.
func (k *Keeper) Note(p *plan.Plan, doc *state.Document, now time.Time) {
	in := &notice.Input{
		Now: now, Epoch: k.cfg.Epoch, Workspace: k.cfg.Workspace, Leader: k.cfg.Leader,
		Doc: doc, Budgets: notice.MoneyUses(doc, now), Drift: p.Drift, Pending: p.Pending, Expiries: p.Expiries,
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ledger = notice.Decide(k.ledger, in)
	if declared := notificationsOf(doc); !maps.Equal(declared, k.notifications) {
		k.notifications = declared
		k.wake()
	}
}

func notificationsOf(doc *state.Document) map[schema.Address]*schema.Notification {
	all := map[schema.Address]*schema.Notification{}
	for addr, r := range doc.Resources {
		if r.Notification != nil {
			all[addr] = r.Notification
		}
	}
	return all
}

// Events are what is to be kept of deliveries for fray events, each once.
func (k *Keeper) Events() []state.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	events := k.events
	k.events = nil
	return events
}

// Save writes the ledger if it changed. Only what is written is sent. The state is written
// after it: so what a state no longer shows as new has its notices.
func (k *Keeper) Save(ctx context.Context) error {
	k.saving.Lock()
	defer k.saving.Unlock()
	k.mu.Lock()
	next := k.ledger
	k.mu.Unlock()
	if next == k.saved || k.saved == nil && next.Number == 0 && next.Leader == nil {
		return nil
	}
	if err := k.write(ctx, next); err != nil {
		return err
	}
	k.mu.Lock()
	k.saved, k.savedAt = next, time.Now()
	k.mu.Unlock()
	k.wake()
	return nil
}

// write puts a ledger into the store. Where another version is there, that is a former leader's,
// or an own one whose reply was lost: the lease decides, and this one is written over it.
func (k *Keeper) write(ctx context.Context, l *notice.Ledger) error {
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write %s: %w", store.NoticesKey, err)
	}
	for try := 0; ; try++ {
		if err := k.cfg.Valid(); err != nil {
			return err
		}
		generation, err := k.cfg.Store.Put(ctx, store.NoticesKey, data, k.generation)
		if err == nil {
			k.generation = generation
			return nil
		}
		if !errors.Is(err, store.ErrConflict) || try == 2 {
			return fmt.Errorf("write %s: %w", store.NoticesKey, err)
		}
		there, generation, err := read(ctx, k.cfg.Store)
		if err == nil && there.Epoch > k.cfg.Epoch {
			return fmt.Errorf("write %s: another process leads, under epoch %d", store.NoticesKey, there.Epoch)
		}
		if k.generation = generation; err != nil && generation == store.Absent {
			return err
		}
	}
}

// wake has the deliveries looked at again.
func (k *Keeper) wake() {
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// settle changes the ledger by what became of a delivery.
func (k *Keeper) settle(change func(*notice.Ledger) *notice.Ledger, events ...state.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ledger = change(k.ledger)
	const mostEvents = 100 // the loop takes them with its next step
	if k.events = append(k.events, events...); len(k.events) > mostEvents {
		k.events = k.events[len(k.events)-mostEvents:]
	}
}
