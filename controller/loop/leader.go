package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// leader is the loop under one lease.
type leader struct {
	cfg      Config
	services *access.Serializer
	stepper  *apply.Stepper
	lease    func() store.Lease
	notices  notifier
	logged   map[schema.Address]bool // objects whose rejected changes were logged

	proposed *Proposal // the last one that was considered
	deferred bool      // that was while the stack was paused
	underway *underway // the proposal that was accepted last, until it is known what became of it
	followed *uint64   // the revision whose values are followed; nil: none yet
	idle     time.Time // since when no controller is declared and nothing is left to do
}

// outputPatience is how long a controller that is declared no more stays for the
// client that carried this out: that records the outputs last.
const outputPatience = 10 * time.Second

func newLeader(cfg Config, services *access.Serializer, s *apply.Stepper, lease func() store.Lease) *leader {
	return &leader{cfg: cfg, services: services, stepper: s, lease: lease, logged: map[schema.Address]bool{}}
}

// step makes the changes that wait, then observes and plans, and acts unless the
// stack is paused.
func (l *leader) step(ctx context.Context) (time.Duration, error) {
	if err := l.change(ctx); err != nil {
		return 0, err
	}
	if err := l.followFiles(ctx); err != nil {
		return 0, err
	}
	l.followRecorded(ctx)
	began := time.Now()
	step := l.stepper.Step
	if l.cfg.Observe || l.stepper.Document().Paused != nil {
		step = l.stepper.Look
	}
	next, err := l.measured(ctx, step)
	if err != nil {
		return next, err
	}
	for _, e := range l.notices.events() {
		l.stepper.Tell(e)
	}
	l.logRejections(l.stepper.Last())
	l.judgeUnderway(l.stepper.Last())
	l.publish(time.Since(began))
	if !l.cfg.UntilUndeclared {
		return next, nil
	}
	return l.parting(next, time.Now())
}

// parting is next, or ErrUndeclared once this controller is to end.
func (l *leader) parting(next time.Duration, now time.Time) (time.Duration, error) {
	if !undeclared(l.stepper) {
		l.idle = time.Time{}
		return next, nil
	}
	if l.idle.IsZero() {
		l.idle = now
	}
	left := outputPatience - now.Sub(l.idle)
	if len(l.stepper.Document().Outputs) == 0 || left <= 0 {
		return 0, ErrUndeclared
	}
	return min(next, left), nil
}

func (l *leader) measured(ctx context.Context, step Step) (time.Duration, error) {
	if l.cfg.Measure == nil {
		return step(ctx)
	}
	return l.cfg.Measure(ctx, step)
}

// logRejections logs what the last step would not destroy, once for each object.
func (l *leader) logRejections(last *plan.Plan) {
	if last == nil {
		return
	}
	for _, r := range last.Blocked {
		if !l.logged[r.Addr] {
			l.logged[r.Addr] = true
			l.cfg.Log.Warn("blocked", "why", r.Detail)
		}
	}
}

// publish shows the services what the step left. Later steps reuse the lists of the
// plan, so that they are copied.
func (l *leader) publish(took time.Duration) {
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
	l.services.Publish(&access.View{
		Doc: l.stepper.Document(), Wanted: l.stepper.DesiredWithLaunched(), Plan: p,
		Hosts: seen.Hosts, Attended: seen.Monitored, Inventories: seen.Inventories, Unreachable: seen.Unreachable,
		Lease: l.lease(), At: time.Now(), Took: took,
	})
}

// change makes all changes that wait, in one write of the state.
func (l *leader) change(ctx context.Context) error {
	queue := l.services.Take()
	if len(queue) == 0 {
		return nil
	}
	if l.cfg.Observe {
		for _, r := range queue {
			r.Answer(access.ErrObserves)
		}
		return nil
	}
	before, now := l.stepper.Document(), time.Now()
	doc, made := before, queue[:0:0]
	for _, r := range queue {
		next, err := l.make(r.Change, doc, now)
		if err != nil {
			r.Answer(err)
			continue
		}
		doc = next
		made = append(made, r)
	}
	if doc != before {
		l.keepFollowing(before, doc)
	}
	// Also a change that changes nothing: it may rest on an earlier one whose caller
	// was answered that it could not be saved.
	var err error
	if len(made) > 0 {
		err = l.stepper.Accept(ctx, doc)
	}
	if err != nil {
		err = fmt.Errorf("save state: %w", err)
	}
	for _, r := range made {
		r.Answer(err)
	}
	return err
}

// make makes one change. A panic in it fails that change alone, and does not end
// leading.
func (l *leader) make(change access.Change, doc *state.Document, now time.Time) (next *state.Document, err error) {
	defer func() {
		if r := recover(); r != nil {
			l.cfg.Log.Error("a change failed by a mistake in fray", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			next, err = nil, errors.New("the controller failed at this change by a mistake in fray; its log has the details")
		}
	}()
	return change(doc, now)
}
