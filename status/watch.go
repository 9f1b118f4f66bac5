package status

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
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	planchange "github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/progress"
	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/status/selection"
	"github.com/fray-ml/fray/terminal"
)

// Of a stack that is observed again and again.
const (
	observePace  = time.Second
	listPatience = 500 * time.Millisecond // for a provider's list; the last one stands meanwhile
	eventsShown  = 500
)

// Observer observes a stack again and again, and keeps what need not be read
// again.
type Observer struct {
	l        *configuration.Loaded
	Only     []schema.Address
	Select   selection.Selection
	Logs     Logs // for the view of a job; nil: it has none
	observer *apply.Observer
	leader   *attention         // nil: it is not asked for
	events   *store.EventReader // nil: they are not asked for

	reader *apply.StateReader
	recent []state.Event // the last ones, newest last
}

// NewObserver returns an observer of a stack and its providers.
func NewObserver(ctx context.Context, l *configuration.Loaded) (*Observer, error) {
	all, err := l.Stack.Providers(ctx, nil, l.Document)
	if err != nil {
		return nil, err
	}
	return &Observer{l: l, reader: apply.NewStateReader(l.Stack.Store), observer: &apply.Observer{Store: l.Stack.Store, Providers: all, HostReasons: apply.HostReasons{Ask: true}}, leader: newAttention(l.Stack)}, nil
}

// again observes anew: the state, if it changed, and what runs.
func (w *Observer) again(ctx context.Context) (*View, error) {
	if err := w.read(ctx); err != nil {
		return nil, err
	}
	if err := w.listen(ctx); err != nil {
		return nil, err
	}
	return w.Observe(ctx)
}

func (w *Observer) read(ctx context.Context) error {
	doc, changed, err := w.reader.Read(ctx)
	switch {
	case err != nil || !changed:
		return err
	case doc != nil:
		w.l.Document = doc
	case w.l.Document.Serial > 0: // else nothing was applied yet
		return fmt.Errorf("%w any more: %s was removed from %s", configuration.ErrNoState, store.StateKey, w.l.Stack.At)
	}
	return nil
}

// listen takes in the events since the last time.
func (w *Observer) listen(ctx context.Context) error {
	if w.events == nil {
		return nil
	}
	fresh, err := w.events.Next(ctx)
	w.recent = append(w.recent, fresh...)
	w.recent = w.recent[max(0, len(w.recent)-eventsShown):]
	return err
}

// Observe sees the world with the state as it was last read.
func (w *Observer) Observe(ctx context.Context) (*View, error) {
	obs, err := w.observer.Observe(ctx, w.l.Document.Stack())
	if err != nil {
		return nil, err
	}
	v := &View{
		now: time.Now(), workspace: w.l.Stack.Named(), place: w.l.Stack.Store.Location(), only: w.Only, Select: w.Select,
		pending: map[schema.Address][]string{}, events: w.recent,
	}
	v.plan = reconcile.Diff(&w.l.Document.Desired, w.l.Document, obs, v.now)
	w.observer.Doubt(v.plan.Doubts) // for the next observation, where there is one
	v.Doc = v.plan.Next
	v.recorded = w.l.Document.Conditions
	v.ledger = readNotices(ctx, w.l.Stack.Store, w.l.Document)
	v.cost = planchange.Total(planchange.Costs(&w.l.Document.Desired, v.plan, obs)).Before
	v.found = selection.Match(v.Doc, v.plan.Pending, v.Select.Terms)
	for _, p := range v.plan.Pending {
		v.pending[p.Addr] = append(v.pending[p.Addr], p.Reasons...)
	}
	if w.leader != nil {
		if v.presence, err = w.leader.observe(ctx); v.led {
			v.page = w.l.Stack.PageOf(v.lease)
		}
	}
	return v, err
}

// WatchStatus shows the stack until ctx ends: full-screen on a terminal, and
// else one picture after another.
func WatchStatus(ctx context.Context, a *terminal.Terminal, w *Observer, asJSON bool) error {
	ctx, stop := signal.NotifyContext(client.WithRetryNotice(ctx, nil), syscall.SIGINT, syscall.SIGTERM) // the screen is the view's
	defer stop()
	w.observer.Patience = listPatience
	w.events = &store.EventReader{Store: w.l.Stack.Store, Last: eventsShown}
	pace := max(observePace, w.l.Stack.Store.WriteInterval())
	switch {
	case asJSON:
		return statusLines(ctx, a, w, pace)
	case terminal.IsTerminal(a.Stdin) && terminal.IsTerminal(a.Stdout) && os.Getenv("TERM") != "dumb":
		return statusScreen(ctx, a, w, pace)
	}
	return statusPictures(ctx, a, w, pace)
}

// repeat calls show with a new observation each time that pace has passed, until ctx ends.
func (w *Observer) repeat(ctx context.Context, pace time.Duration, show func(*View) error) error {
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
func statusPictures(ctx context.Context, a *terminal.Terminal, w *Observer, pace time.Duration) error {
	return w.repeat(ctx, pace, func(v *View) error {
		if _, err := fmt.Fprintf(a.Stdout, "--- %s\n", v.now.UTC().Format(time.RFC3339)); err != nil {
			return err
		}
		return v.Text(a)
	})
}

// statusLines prints a line of JSON whenever something has changed.
func statusLines(ctx context.Context, a *terminal.Terminal, w *Observer, pace time.Duration) error {
	var last []byte
	return w.repeat(ctx, pace, func(v *View) error {
		now, err := json.Marshal(v.unhurried())
		if err != nil || bytes.Equal(now, last) {
			return err
		}
		last = now
		line, err := json.Marshal(v.Document())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Stdout, "%s\n", line)
		return err
	})
}

// unhurried is the document without what changes all the time and means nothing:
// the lease's renewals, and countdowns.
func (v *View) unhurried() *Document {
	out := v.Document()
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
		out[i] = progress.Steady(r)
	}
	return out
}

// statusScreen shows the stack on the whole terminal, until a key or ctx ends it.
func statusScreen(ctx context.Context, a *terminal.Terminal, w *Observer, pace time.Duration) error {
	s := newFullScreen(func() (*board, error) {
		v, err := w.again(ctx)
		if err != nil {
			return nil, err
		}
		return newBoard(v), nil
	})
	s.pace, s.color, s.logs = pace, a.Color(a.Stdout), w.Logs
	s.ctx = ctx
	defer s.close()
	_, err := tea.NewProgram(s, tea.WithContext(ctx), tea.WithInput(a.Stdin), tea.WithOutput(a.Stdout), tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil {
		return nil
	}
	return cmp.Or(err, s.fatal)
}
