package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/apply/mail"
	"github.com/fray-ml/fray/apply/requestlog"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/incremental"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/journal"
	"github.com/fray-ml/fray/state/store"
)

// Stepper repeats observe, diff, act on one stack, under a lease.
type Stepper struct {
	cfg           Config
	doc           *state.Document
	observer      *Observer
	exec          *executor
	saver         *saver
	chores        chores
	planner       incremental.Planner
	last          *plan.Plan
	outOfScope    []plan.Action  // of the last step, that the scope left out
	observed      *plan.Observed // by the last step
	desired       *schema.Desired
	sinceEvents   state.Edits // what has changed since events were noted
	sinceMetering state.Edits // and since the metering was brought up to date
	metered       accounting.Known
	lastStepTime  time.Duration // the last step
	called        time.Time     // when a call to a provider ended last
	calls         int           // to providers that the last step began
}

// New reads the state and returns a Stepper for it. Nothing is written until
// the first Accept or Step, which saves under the new epoch before any effect
// and so fences the former holder of the lease.
func New(ctx context.Context, cfg Config) (*Stepper, error) { return NewAfter(ctx, cfg, Known{}) }

// Known is what was read before the lease was held.
type Known struct {
	State *StateReader // nil: the state was not read
	Mail  *mail.Ahead  // nil: the assignments were not
}

// NewAfter is New at the cost of what has followed since something was read. What read it is not to
// be used any more.
func NewAfter(ctx context.Context, cfg Config, known Known) (*Stepper, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Parallelism == 0 {
		cfg.Parallelism = 32
	}
	if cfg.Patience == 0 {
		cfg.Patience = listPatience
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	writer, doc, err := openState(ctx, cfg.Store, journal.Stamp{Version: cfg.Version, Epoch: cfg.Epoch, Valid: cfg.Valid}, known.State)
	if err != nil {
		return nil, err
	}
	if doc.Epoch > cfg.Epoch { // the lease's object was removed while this one was waited for
		return nil, fmt.Errorf("%w: it has epoch %d, this lease only %d; try again", ErrStateMoved, doc.Epoch, cfg.Epoch)
	}
	if doc, err = restoreMetering(ctx, cfg.Store, doc, cfg.Now()); err != nil {
		return nil, err
	}
	var events *Recorder
	if cfg.Events {
		events = &Recorder{Store: cfg.Store, Epoch: cfg.Epoch, Valid: cfg.Valid}
	}
	records := &jobRecords{store: cfg.Store, epoch: cfg.Epoch, valid: cfg.Valid}
	if err := records.load(ctx); err != nil {
		return nil, err
	}
	s := &Stepper{
		cfg:      cfg,
		doc:      keepEnds(doc, records.known),
		observer: &Observer{Store: cfg.Store, Providers: cfg.Providers, Now: cfg.Now, Patience: cfg.Patience, HostReasons: cfg.HostReasons, Live: cfg.Live},
		exec: &executor{
			store: cfg.Store, providers: cfg.Providers, stack: doc.Stack(), epoch: cfg.Epoch, valid: cfg.Valid, certify: cfg.Certify, live: cfg.Live,
			slots:    make(chan struct{}, cfg.Parallelism),
			writes:   make(chan struct{}, cfg.Parallelism),
			results:  make(chan result),
			inFlight: map[string]plan.ActionVerb{}, failed: map[string]failedWrite{}, now: cfg.Now, abandoned: make(chan struct{}),
		},
	}
	s.observer.look.ahead = known.Mail
	if events != nil {
		s.sinceEvents.Begin(doc)
	}
	s.saver = &saver{
		store: cfg.Store, writer: writer, jobRecords: records, notices: cfg.Notices, valid: cfg.Valid, now: cfg.Now, failed: s.failed,
		journaled: writer.Journaled(),
	}
	s.planner.Edits = []*state.Edits{&s.sinceEvents, &s.sinceMetering, &s.saver.since}
	s.chores = chores{
		beside: s.saver.savesBeside(), notices: cfg.Notices, events: events, requests: requestlog.New(cfg.Store, cfg.Valid),
		ledger: &ledger{store: cfg.Store, epoch: cfg.Epoch, valid: cfg.Valid}, failed: s.failed,
	}
	return s, nil
}

// Document is the state as of the last step, the same until it changes. It is
// not to be changed, and no later step changes it.
func (s *Stepper) Document() *state.Document { return s.doc }

// Last is the plan of the last step, nil before the first.
func (s *Stepper) Last() *plan.Plan { return s.last }

// OutOfScope are the actions that were due in the last step and that the scope left out.
func (s *Stepper) OutOfScope() []plan.Action { return s.outOfScope }

// Observed is what the last step saw, nil before the first. It is not to be changed.
func (s *Stepper) Observed() *plan.Observed { return s.observed }

// DesiredWithLaunched is what the last step planned for: what is declared and what was launched;
// nil before the first.
func (s *Stepper) DesiredWithLaunched() *schema.Desired { return s.desired }

// Calls is how many calls to providers the last step began. That can be fewer than its
// plan has actions: one waits for those of its slice that are under way, and one that
// destroys evidence until that is saved.
func (s *Stepper) Calls() int { return s.calls }

// SetScope bounds what later steps may do.
func (s *Stepper) SetScope(scope Scope) { s.cfg.Scope = scope }

// Preview observes and returns the plan for desired, with what it costs, without
// carrying it out.
func (s *Stepper) Preview(ctx context.Context, desired *schema.Desired, doc *state.Document) (*plan.Plan, error) {
	p, obs, err := s.preview(ctx, desired, doc)
	if err != nil {
		return nil, err
	}
	p.Costs, p.MoneyBudgets = change.Costs(desired, p, obs), accounting.Outlook(desired, p, s.cfg.Now())
	p.Schedules = change.Schedules(desired, p, s.cfg.Now())
	return p, nil
}

// preview plans, and plans again once what that doubts was read directly: there is no
// later step that would.
func (s *Stepper) preview(ctx context.Context, desired *schema.Desired, doc *state.Document) (*plan.Plan, *plan.Observed, error) {
	for look := 0; ; look++ {
		obs, err := s.observer.Observe(ctx, s.doc.Stack())
		if err != nil {
			return nil, nil, err
		}
		p := reconcile.Diff(desired, doc, obs, s.cfg.Now())
		s.observer.Doubt(p.Doubts)
		if look > 0 || !slices.ContainsFunc(p.Doubts, func(d plan.Doubt) bool { return d.Open }) {
			return p, obs, nil
		}
	}
}

// Accept makes doc, made by [Accept] from Document, the state, and saves it.
func (s *Stepper) Accept(ctx context.Context, doc *state.Document) error {
	s.doc = doc
	return s.Save(ctx)
}

// Step observes once, starts the actions that follow and returns
// after what time to step again. It waits for no action; what an action
// brought is seen by a later step. The document is p.Next from then on; it is saved when
// a write is due.
func (s *Stepper) Step(ctx context.Context) (time.Duration, error) {
	if err := s.cfg.Valid(); err != nil {
		return 0, err
	}
	began := time.Now()
	defer func() { s.lastStepTime = time.Since(began) }()
	s.calls = 0
	s.foldResults()
	var timing Timing
	var err error
	if timing.Saved, err = s.saver.collect(); err != nil {
		return 0, err
	}
	s.collectChores()
	if err := s.refine(); err != nil {
		return 0, err
	}
	obs, err := s.observer.Observe(ctx, s.doc.Stack())
	if err != nil {
		return 0, err
	}
	looked := time.Now()
	timing.Observe = looked.Sub(began)
	before := s.doc
	p := s.planner.Diff(&s.doc.Desired, s.doc, obs, s.cfg.Now())
	s.observer.Doubt(p.Doubts)
	p.Actions, s.outOfScope = s.cfg.Scope.filter(p)
	s.doc, s.last, s.observed, s.desired = p.Next, p, obs, s.planner.Wanted()
	s.note(p)
	timing.Differing = s.reportDiffering()
	s.meterIfDue()
	planned := time.Now()
	timing.Plan, timing.Actions = planned.Sub(looked), len(p.Actions)
	if s.saver.dirty(s.doc) && s.saver.running == nil && s.untilSave(p) == 0 {
		if err := s.save(ctx, p.Actions, s.saver.mayGoOn()); err != nil {
			return 0, err
		}
		if s.saver.running == nil {
			timing.Save = time.Since(planned)
		}
	}
	s.startAll(ctx, p.Actions)
	s.doChores(ctx)
	if s.cfg.OnStep != nil {
		s.cfg.OnStep(p, before)
	}
	if s.cfg.OnLook != nil {
		s.cfg.OnLook(timing)
	}
	return s.pace(p), nil
}

// Look is a Step that changes nothing: it shows what a Step would do.
func (s *Stepper) Look(ctx context.Context) (time.Duration, error) {
	if err := s.cfg.Valid(); err != nil {
		return 0, err
	}
	s.foldResults()
	obs, err := s.observer.Observe(ctx, s.doc.Stack())
	if err != nil {
		return 0, err
	}
	var planner incremental.Planner // what it plans does not come about
	p := planner.Diff(&s.doc.Desired, s.doc, obs, s.cfg.Now())
	s.observer.Doubt(p.Doubts)
	s.last, s.observed, s.desired = p, obs, planner.Wanted()
	if s.cfg.Notices != nil {
		s.cfg.Notices.Note(p, s.doc, s.cfg.Now().UTC())
		s.failed(keepNotices(ctx, s.cfg.Notices))
	}
	if s.cfg.OnStep != nil {
		s.cfg.OnStep(p, s.doc)
	}
	return max(quietPace, s.cfg.Store.WriteInterval()), s.Save(ctx)
}

// untilSave is how long to wait before the state is saved.
func (s *Stepper) untilSave(p *plan.Plan) time.Duration {
	if s.cfg.Eager && slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.AfterSave }) {
		return s.saver.urgentWait()
	}
	return s.saver.wait()
}

func (s *Stepper) startAll(ctx context.Context, actions []plan.Action) {
	for _, a := range s.saver.release(s.doc, actions) {
		if s.exec.start(ctx, a, s.observer.hosts[a.Slice.Name]) && !writes(a.Verb) {
			s.calls++
		}
	}
}

func (s *Stepper) refine() error {
	if s.cfg.Refine == nil {
		return nil
	}
	desired, err := s.cfg.Refine(s.doc)
	if err != nil || desired == nil {
		return err
	}
	s.doc = s.planner.Refined(s.doc, desired)
	return nil
}

// foldResults folds finished actions into the state.
func (s *Stepper) foldResults() {
	for {
		select {
		case r := <-s.exec.results:
			s.fold(r)
		default:
			return
		}
	}
}

func (s *Stepper) fold(r result) {
	s.exec.ended(r.action, r.err)
	if errors.Is(r.err, errNotBegun) {
		return
	}
	s.observer.wrote(r.assigned)
	s.observer.forgot(r.forgotten())
	if !writes(r.action.Verb) {
		s.called = s.cfg.Now()
	}
	if s.cfg.OnAction != nil {
		s.cfg.OnAction(r.action, r.err)
	}
	if r.err != nil && s.cfg.OnError != nil && !errors.Is(r.err, store.ErrConflict) {
		s.cfg.OnError(r.action, r.err)
	}
	var failure *capacity.Failure
	if r.err != nil {
		failure = &capacity.Failure{Kind: providers.KindOf(r.err), Text: r.err.Error(), Brief: providers.BriefOf(r.err), After: providers.DelayOf(r.err)}
	}
	s.doc = s.planner.Folded(s.doc, r.action, failure, s.cfg.Now())
}

// SetRefine replaces Config.Refine.
func (s *Stepper) SetRefine(refine func(doc *state.Document) (*schema.Desired, error)) {
	s.cfg.Refine = refine
}

// Wait sleeps for d, or until an action is finished or ctx ends. Once one is
// finished it takes in those that follow closely, for about as long as a step
// takes, so that many small actions do not cost a step each.
func (s *Stepper) Wait(ctx context.Context, d time.Duration) { s.wait(ctx, d, s.cfg.Wake) }

func (s *Stepper) wait(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	lingering := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-wake:
			return
		case <-s.saver.ends():
			return // the next step goes on with what waited for it
		case r := <-s.exec.results:
			s.fold(r)
			if len(s.exec.inFlight) == 0 {
				return
			}
			if !lingering {
				lingering = true
				timer.Reset(min(d, max(s.lastStepTime, time.Millisecond)))
			}
		}
	}
}

// Drain waits until no action is under way or ctx ends, and until a snapshot of the state
// is written. What is queued is not begun, and nothing can be started afterwards.
func (s *Stepper) Drain(ctx context.Context) {
	s.drainActions(ctx)
	if s.saver.await(ctx) != nil || s.chores.await(ctx) != nil {
		return
	}
	_ = s.saver.writer.Flush(ctx) // what it is of is saved; the next leader writes another one
}

func (s *Stepper) drainActions(ctx context.Context) {
	if !s.exec.closed.Swap(true) {
		defer close(s.exec.abandoned) // a call that outlasts ctx ends unheard
	}
	for len(s.exec.inFlight) > 0 {
		select {
		case <-ctx.Done():
			return
		case r := <-s.exec.results:
			s.fold(r)
		}
	}
}

// Idle reports whether no action is under way.
func (s *Stepper) Idle() bool { return len(s.exec.inFlight) == 0 }

// Save writes the state if it changed, as soon as the store takes another write.
func (s *Stepper) Save(ctx context.Context) error {
	if err := s.saver.await(ctx); err != nil {
		return err
	}
	if events := s.chores.events; events != nil && s.chores.await(ctx) == nil {
		s.collectChores()
		_ = events.Save(ctx, s.cfg.Now(), true) // what happened is for people; the state is what counts
	}
	if !s.saver.dirty(s.doc) {
		return nil
	}
	if d := min(s.saver.wait(), s.cfg.Store.WriteInterval()); d > 0 {
		s.wait(ctx, d, nil) // who wakes it is heard afterwards
	}
	return s.save(ctx, nil, false)
}

// save saves the present state, with how much is used by now.
func (s *Stepper) save(ctx context.Context, actions []plan.Action, goOn bool) error {
	if err := s.cfg.Valid(); err != nil {
		return err
	}
	s.meter()
	return s.saver.save(ctx, s.doc, actions, goOn)
}
