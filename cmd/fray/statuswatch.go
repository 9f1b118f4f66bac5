package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// Of a stack that is looked at again and again.
const (
	lookPace     = time.Second
	lookPatience = 500 * time.Millisecond // for a provider's list; the last one stands meanwhile
	eventsShown  = 500
)

// looker looks at a stack again and again, and remembers what need not be read
// again.
type looker struct {
	l        *loaded
	only     []schema.Address
	observer *apply.Observer
	leader   *attention         // nil: it is not asked for
	events   *store.EventReader // nil: they are not asked for

	state  store.Generation // that l.doc was read at; "": not known
	recent []store.Event    // the last ones, newest last
}

func (l *loaded) looker(ctx context.Context) (*looker, error) {
	all, err := l.stack.providers(ctx, nil, l.doc)
	if err != nil {
		return nil, err
	}
	return &looker{l: l, observer: &apply.Observer{Store: l.stack.store, Providers: all}, leader: l.stack.attention()}, nil
}

// again looks anew: at the state, if it changed, and at the world.
func (w *looker) again(ctx context.Context) (*view, error) {
	if err := w.read(ctx); err != nil {
		return nil, err
	}
	if err := w.listen(ctx); err != nil {
		return nil, err
	}
	return w.look(ctx)
}

func (w *looker) read(ctx context.Context) error {
	listed, err := w.l.stack.store.List(ctx, store.StateKey)
	if err != nil {
		return fmt.Errorf("look for the state: %w", err)
	}
	if len(listed) == 1 && listed[0].Generation == w.state {
		return nil
	}
	doc, generation, err := apply.LoadState(ctx, w.l.stack.store)
	if err == nil && generation == store.Absent {
		err = fmt.Errorf("%w any more: %s was removed from %s", errNoState, store.StateKey, w.l.stack.at)
	}
	if err != nil {
		return err
	}
	w.l.doc, w.state = doc, generation
	return nil
}

// listen takes in the events since the last time.
func (w *looker) listen(ctx context.Context) error {
	if w.events == nil {
		return nil
	}
	fresh, err := w.events.Next(ctx)
	w.recent = append(w.recent, fresh...)
	w.recent = w.recent[max(0, len(w.recent)-eventsShown):]
	return err
}

// look sees the world with the state as it was last read.
func (w *looker) look(ctx context.Context) (*view, error) {
	obs, err := w.observer.Observe(ctx, w.l.doc.Stack())
	if err != nil {
		return nil, err
	}
	v := &view{
		now: time.Now(), workspace: w.l.stack.named(), place: w.l.stack.store.Location(), only: w.only,
		pending: map[schema.Address][]string{}, events: w.recent,
	}
	v.plan = plan.Diff(&w.l.doc.Desired, w.l.doc, obs, v.now)
	w.observer.Doubt(v.plan.Doubts) // for the next look, where there is one
	v.doc = v.plan.Next
	v.recorded = w.l.doc.Conditions
	v.cost = plan.Total(plan.Costs(&w.l.doc.Desired, v.plan, obs)).Before
	for _, p := range v.plan.Pending {
		v.pending[p.Addr] = append(v.pending[p.Addr], p.Reasons...)
	}
	if w.leader != nil {
		v.presence, err = w.leader.look(ctx)
	}
	return v, err
}

// watchStatus shows the stack until ctx ends: full-screen on a terminal, and
// else one picture after another.
func (a *app) watchStatus(ctx context.Context, w *looker, asJSON bool) error {
	ctx, stop := signal.NotifyContext(gcp.WithTrouble(ctx, nil), syscall.SIGINT, syscall.SIGTERM) // the screen is the view's
	defer stop()
	w.observer.Patience = lookPatience
	w.events = &store.EventReader{Store: w.l.stack.store, Last: eventsShown}
	pace := max(lookPace, w.l.stack.store.WriteInterval())
	switch {
	case asJSON:
		return a.statusLines(ctx, w, pace)
	case isTerminal(a.stdin) && isTerminal(a.stdout) && os.Getenv("TERM") != "dumb":
		return a.statusScreen(ctx, w, pace)
	}
	return a.statusPictures(ctx, w, pace)
}

// repeat calls show with a new look each time that pace has passed, until ctx ends.
func (w *looker) repeat(ctx context.Context, pace time.Duration, show func(*view) error) error {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for {
		v, err := w.again(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := show(v); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// statusPictures prints status again and again, for logs.
func (a *app) statusPictures(ctx context.Context, w *looker, pace time.Duration) error {
	return w.repeat(ctx, pace, func(v *view) error {
		if _, err := fmt.Fprintf(a.stdout, "--- %s\n", v.now.UTC().Format(time.RFC3339)); err != nil {
			return err
		}
		return v.text(a)
	})
}

// statusLines prints a line of JSON whenever something has changed.
func (a *app) statusLines(ctx context.Context, w *looker, pace time.Duration) error {
	var last []byte
	return w.repeat(ctx, pace, func(v *view) error {
		now, err := json.Marshal(v.unhurried())
		if err != nil || bytes.Equal(now, last) {
			return err
		}
		last = now
		line, err := json.Marshal(v.document())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.stdout, "%s\n", line)
		return err
	})
}

// unhurried is the document without what changes all the time and says nothing:
// the lease's renewals, and countdowns.
func (v *view) unhurried() *statusJSON {
	out := v.document()
	if out.Lease != nil {
		lease := *out.Lease
		lease.RenewedAt, lease.ExpiresAt, lease.Nonce = time.Time{}, time.Time{}, ""
		out.Lease = &lease
	}
	for i := range out.Jobs {
		out.Jobs[i].Reasons = steadies(out.Jobs[i].Reasons)
	}
	pending := make([]plan.Pending, len(out.Pending))
	for i, p := range out.Pending {
		p.Reasons = steadies(p.Reasons)
		pending[i] = p
	}
	out.Pending, out.Serial = pending, 0
	return out
}

func steadies(reasons []string) []string {
	out := make([]string, len(reasons))
	for i, r := range reasons {
		out[i] = steady(r)
	}
	return out
}

// statusScreen shows the stack on the whole terminal, until a key or ctx ends it.
func (a *app) statusScreen(ctx context.Context, w *looker, pace time.Duration) error {
	s := newFullScreen(func() (*board, error) {
		v, err := w.again(ctx)
		if err != nil {
			return nil, err
		}
		return newBoard(v), nil
	})
	s.pace, s.ink = pace, ink(a.color(a.stdout))
	_, err := tea.NewProgram(s, tea.WithContext(ctx), tea.WithInput(a.stdin), tea.WithOutput(a.stdout), tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil {
		return nil
	}
	return cmp.Or(err, s.fatal)
}
