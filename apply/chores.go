package apply

import (
	"context"
	"fmt"
	"time"

	"github.com/fray-ml/fray/apply/requestlog"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// chores are writes to the store that no decision waits for: notices, events, requests and usage.
// Where a write takes a while they go on beside the steps, and each before the next one.
type chores struct {
	beside   bool      // they take a while
	notices  Notices   // nil: none are kept
	events   *Recorder // nil: they are not kept
	requests *requestlog.Log
	ledger   *ledger
	failed   func(error) // reports that a write failed

	running *chore // nil: none is
}

// chore is what is under way.
type chore struct {
	ended chan struct{} // closed once the following is known
	errs  []error
	usage *state.Metering // whose closed intervals are in the ledger; nil: none are
}

// choresOf is what chores are about.
type choresOf struct {
	saved, doc *state.Document // saved last, nil: none was; as of the step
	observed   *plan.Observed
	now        time.Time
}

// begin begins what is due, unless something is under way.
func (k *chores) begin(ctx context.Context, of choresOf) {
	if k.running != nil {
		return
	}
	due := k.due(of)
	if len(due) == 0 {
		return
	}
	c := &chore{ended: make(chan struct{})}
	k.running = c
	do := func() {
		defer close(c.ended)
		for _, each := range due {
			if err := each(ctx, c); err != nil && ctx.Err() == nil {
				c.errs = append(c.errs, err)
			}
		}
	}
	if k.beside {
		go do()
	} else {
		do()
	}
}

// due are the writes that are due, which use nothing that steps change.
func (k *chores) due(of choresOf) (due []func(context.Context, *chore) error) {
	if k.notices != nil {
		due = append(due, func(ctx context.Context, _ *chore) error { return keepNotices(ctx, k.notices) })
	}
	if k.events != nil && k.events.begin(of.now, false) {
		due = append(due, func(ctx context.Context, _ *chore) error {
			if err := k.events.write(ctx); err != nil {
				return fmt.Errorf("keep events: %w", err)
			}
			return nil
		})
	}
	if k.requests.Due(of.now) {
		due = append(due, func(ctx context.Context, _ *chore) error {
			return k.requests.Keep(ctx, of.doc, of.observed, of.now)
		})
	}
	if m := of.doc.Metering; of.saved != nil && of.saved.Metering == m && k.ledger.due(m, of.now) {
		due = append(due, func(ctx context.Context, c *chore) error {
			if err := k.ledger.write(ctx, m.Closed, of.now); err != nil {
				return err
			}
			c.usage = m
			return k.ledger.tidy(ctx, of.now)
		})
	}
	return due
}

// collect takes in what came of chores that have ended, and returns the metering whose closed
// intervals are in the ledger, nil for none.
func (k *chores) collect() *state.Metering {
	c := k.running
	if c == nil {
		return nil
	}
	select {
	case <-c.ended:
	default:
		return nil
	}
	k.running = nil
	for _, err := range c.errs {
		k.failed(err)
	}
	return c.usage
}

// await waits until no chores are under way.
func (k *chores) await(ctx context.Context) error {
	if k.running == nil {
		return nil
	}
	select {
	case <-k.running.ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// doChores writes what is due and what no decision waits for.
func (s *Stepper) doChores(ctx context.Context) {
	s.chores.begin(ctx, choresOf{s.saver.saved, s.doc, s.observed, s.cfg.Now()})
	s.collectChores()
}

// collectChores takes in what came of chores that have ended: intervals in the ledger leave the state. Where
// others were closed since, these stay until all are saved and written.
func (s *Stepper) collectChores() {
	m := s.chores.collect()
	if m == nil || s.doc.Metering != m {
		return
	}
	kept := *m
	kept.Closed = nil
	s.doc = s.planner.Metered(s.doc, &kept)
}

// failed reports that a write failed which holds up nothing.
func (s *Stepper) failed(err error) {
	if err != nil && s.cfg.OnError != nil {
		s.cfg.OnError(plan.Action{Slice: &schema.SliceSpec{}}, err)
	}
}

// keepNotices keeps what was decided to tell. A store that refuses it holds up nothing: it is
// kept with the next save.
func keepNotices(ctx context.Context, n Notices) error {
	if err := n.Save(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("keep notices: %w", err)
	}
	return nil
}

// KeepRequests records the requests to the store now: this process ends, or leads no more.
func (s *Stepper) KeepRequests(ctx context.Context) {
	if s.chores.await(ctx) != nil {
		return
	}
	err := s.chores.requests.Keep(ctx, s.doc, s.observed, s.cfg.Now())
	if ctx.Err() == nil {
		s.failed(err)
	}
}
