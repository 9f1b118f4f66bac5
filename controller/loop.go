package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// errNotLeading answers changes that nobody here may make. It may be tried
// again with whoever leads.
var errNotLeading = errors.New("this controller does not lead")

// errObserves answers changes to a controller that makes none.
var errObserves = errors.New("this controller only looks on (fray watch --observe) and changes nothing")

// loop is the desk: what services see of the loop, whether or not it leads.
type loop struct {
	mu      sync.Mutex
	view    *View
	changed chan struct{} // closed when there is another view
	queue   []*request
	wake    chan struct{} // holds one token while the queue is not empty
	leading bool
}

var _ desk = (*loop)(nil)

// request is a change that waits for the loop. done is buffered.
type request struct {
	change Change
	done   chan error
}

func newLoop() *loop {
	return &loop{
		view:    &View{Doc: &state.Document{}, Wanted: &schema.Desired{}, Plan: &plan.Plan{}},
		changed: make(chan struct{}), wake: make(chan struct{}, 1),
	}
}

// View is what the last step left; of a loop that has not led yet, nothing.
func (l *loop) View() *View {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.view
}

func (l *loop) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// report is what a host reported last, as the loop has seen it.
func (l *loop) report(slice string, host int) (state.HostReport, bool) {
	hosts := l.View().Hosts[slice]
	for i := range hosts {
		if hosts[i].Host == host {
			return hosts[i].HostReport, true
		}
	}
	return state.HostReport{}, false
}

func (l *loop) Leading() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leading
}

func (l *loop) Do(ctx context.Context, change Change) error {
	r := &request{change: change, done: make(chan error, 1)}
	l.mu.Lock()
	if !l.leading {
		l.mu.Unlock()
		return errNotLeading
	}
	l.queue = append(l.queue, r)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err() // the change may still be made
	}
}

// begin forgets what was seen when this controller led before: until it has
// looked anew nobody is told anything.
func (l *loop) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.view = newLoop().view
}

// publish makes a view the one that services see.
func (l *loop) publish(v *View) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.view
	l.view, l.leading = v, true
	if old.Doc != v.Doc || old.Lease.Epoch != v.Lease.Epoch || !slices.EqualFunc(old.Plan.Pending, v.Plan.Pending, samePending) {
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

func samePending(a, b plan.Pending) bool {
	return a.Addr == b.Addr && slices.Equal(a.Reasons, b.Reasons)
}

// taken are the changes that wait.
func (l *loop) taken() []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queue
	l.queue = nil
	return queue
}

// stop ends leading: what waits is refused, and whoever watches looks again.
func (l *loop) stop() {
	l.mu.Lock()
	l.leading = false
	queue := l.queue
	l.queue = nil
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	for _, r := range queue {
		r.done <- errNotLeading
	}
}

// leader is the loop while it leads.
type leader struct {
	*loop

	cfg     Config
	lease   *store.Held
	stepper *apply.Stepper
	refused map[schema.Address]bool // what was told already

	proposed *Proposal // the last one that was looked at
	deferred bool      // that was while the stack was paused
	stands   *uint64   // the revision whose values are followed; nil: none was looked at
}

// lead steps until the lease is lost (an error), wanted by somebody else (nil),
// or ctx ends.
func (l *loop) lead(ctx context.Context, cfg Config, lease *store.Held) error {
	s, err := apply.New(ctx, apply.Config{
		Store: cfg.Store, Providers: cfg.Providers, Version: cfg.Version,
		Epoch: lease.Epoch(), Valid: lease.Valid, Parallelism: cfg.Parallelism,
		Scope: apply.Scope{All: true}, Events: true, Eager: true, Wake: l.wake,
		Certify: keys.NewIssuer(cfg.Store, lease.Epoch()).Certify,
		OnStep:  cfg.Notify, OnLook: cfg.Looked, OnAction: cfg.telemetry.acted,
		OnError: func(a plan.Action, err error) {
			cfg.Log.Warn("action failed", "action", string(a.Verb), "slice", a.Slice.Name, "error", err.Error())
		},
	})
	if err != nil {
		return err
	}
	lead := &leader{loop: l, cfg: cfg, lease: lease, stepper: s, refused: map[schema.Address]bool{}}
	defer finish(ctx, s, cfg.Log)
	defer l.stop()
	at := lease.Lease()
	s.Tell(state.Event{At: at.AcquiredAt, Kind: state.EventLease, Text: fmt.Sprintf("%s on %s (pid %d) leads, epoch %d", cfg.Command, at.Host, at.PID, at.Epoch)})
	for {
		next, err := lead.step(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, errDone):
			return err
		case errors.Is(err, apply.ErrStateMoved) || err != nil && lease.Valid() != nil:
			return err
		case err != nil:
			cfg.Log.Warn("step failed", "error", err.Error())
			next = errorPause
		}
		wanted, err := store.PendingHandover(ctx, cfg.Store)
		if err == nil && wanted {
			cfg.Log.Info("giving the lease to somebody who asked for it")
			return nil
		}
		s.Wait(ctx, next)
	}
}

// step makes the changes that wait, then looks, and acts unless it is paused.
func (l *leader) step(ctx context.Context) (time.Duration, error) {
	if err := l.change(ctx); err != nil {
		return 0, err
	}
	if err := l.follow(ctx); err != nil {
		return 0, err
	}
	l.stand(ctx)
	began := time.Now()
	step := l.stepper.Step
	if l.cfg.Observe || l.stepper.Document().Paused != nil {
		step = l.stepper.Look
	}
	next, err := l.cfg.telemetry.step(ctx, step)
	if err != nil {
		return next, err
	}
	tell(l.stepper.Last(), l.refused, l.cfg.Log)
	l.show(time.Since(began))
	if l.cfg.UntilUndeclared && undeclared(l.stepper) {
		return 0, errDone
	}
	return next, nil
}

// show publishes what the step left. The plan's lists are used again by later
// steps, so that they are copied.
func (l *leader) show(took time.Duration) {
	last := l.stepper.Last()
	p := &plan.Plan{
		Pending: slices.Clone(last.Pending), Drift: slices.Clone(last.Drift), Blocked: last.Blocked,
		Capacity: slices.Clone(last.Capacity), Wake: last.Wake,
	}
	for i := range last.Changes {
		if last.Changes[i].Verb != plan.VerbNone {
			p.Changes = append(p.Changes, last.Changes[i])
		}
	}
	seen := l.stepper.Observed()
	l.publish(&View{
		Doc: l.stepper.Document(), Wanted: l.stepper.Wanted(), Plan: p,
		Hosts: seen.Hosts, Attended: seen.Monitored, Inventories: seen.Inventories, Unreachable: seen.Unreachable,
		Lease: l.lease.Lease(), At: time.Now(), Took: took,
	})
}

// change makes all changes that wait, in one write of the state.
func (l *leader) change(ctx context.Context) error {
	queue := l.taken()
	if len(queue) == 0 {
		return nil
	}
	if l.cfg.Observe {
		for _, r := range queue {
			r.done <- errObserves
		}
		return nil
	}
	before, now := l.stepper.Document(), time.Now()
	doc, made := before, queue[:0:0]
	for _, r := range queue {
		next, err := l.make(r.change, doc, now)
		if err != nil {
			r.done <- err
			continue
		}
		doc = next
		made = append(made, r)
	}
	if doc != before {
		l.standsOn(before, doc)
	}
	// Also a change that changes nothing: what it rests on may be one that an earlier
	// caller was told could not be saved.
	var err error
	if len(made) > 0 {
		err = l.stepper.Accept(ctx, doc)
	}
	if err != nil {
		err = fmt.Errorf("save state: %w", err)
	}
	for _, r := range made {
		r.done <- err
	}
	return err
}

// make makes one change. A mistake in it is its caller's to hear of, and no reason
// for nobody to lead any more.
func (l *leader) make(change Change, doc *state.Document, now time.Time) (next *state.Document, err error) {
	defer func() {
		if r := recover(); r != nil {
			l.cfg.Log.Error("a change failed by a mistake in fray", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			next, err = nil, errors.New("the controller failed at this change by a mistake in fray; its log says where")
		}
	}()
	return change(doc, now)
}
