package rehearse

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// steadyPoll is the longest time between two steps, on the virtual clock.
const steadyPoll = 10 * time.Minute

// endless is how long a step waits for what the gate answers at once: with less, a busy
// machine would make another report of the same seed.
const endless = 24 * time.Hour

// lineage is that of every rehearsal's state, so that slices have the same names
// each time.
const lineage = "rehearsalrehearsalrehearsa"

// rehearsal is one run.
type rehearsal struct {
	cfg      Config
	start    time.Time
	clock    *cloud.Virtual
	cloud    *cloud.Cloud
	emulator *emulator.Emulator
	store    *memory
	fleet    *fleet
	oracle   *oracle
	books    *accounts
	gate     *gate
	offers   []schema.Market

	epoch    uint64
	stepper  *apply.Stepper
	last     lastStep
	settling bool // the rehearsed time is over
	missed   int  // events for which there was no slice
	heard    int  // failures of actions so far
	steps    int
	longest  time.Duration // of a step, on the real clock
	spent    time.Duration // in steps, on the real clock
}

// lastStep is what the time of the next step depends on.
type lastStep struct {
	actions  []plan.Action
	restless bool // it was not like the one before it: another may follow from it
}

// lead begins to step as a new process does that remembers nothing.
func (r *rehearsal) lead(ctx context.Context) error {
	if err := r.hangUp(); err != nil {
		return fmt.Errorf("close the provider: %w", err)
	}
	p, err := r.cfg.connect(ctx, r)
	if err != nil {
		return fmt.Errorf("connect to the emulated cloud: %w", err)
	}
	r.gate = newGate(p, r.oracle, r.clock.Now)
	r.epoch++
	r.oracle.led = r.clock.Now()
	r.stepper, err = apply.New(ctx, apply.Config{
		Store: r.store, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderGCP: r.gate},
		Version: "rehearsal", Epoch: r.epoch, Valid: func() error { return nil },
		Parallelism: 1 << 20, // the gate has them take turns
		Patience:    endless,
		Now:         r.clock.Now, Scope: apply.Scope{All: true},
		OnStep:  r.stepped,
		Refine:  r.refined(),
		OnError: func(plan.Action, error) { r.heard++ },
	})
	return err
}

// refined evaluates again as long as a job waits for a value, as apply does. As
// watch does, it leaves the values that a job has once: those of others change when
// they move.
func (r *rehearsal) refined() func(*state.Document) (*schema.Desired, error) {
	if r.cfg.Refine == nil {
		return nil
	}
	refine := r.cfg.Refine(rehearsable)
	if refine == nil {
		return nil
	}
	return func(doc *state.Document) (*schema.Desired, error) {
		for i := range doc.Desired.Jobs {
			if doc.Desired.Jobs[i].HasUnknown() {
				return refine(doc)
			}
		}
		return nil, nil
	}
}

// stepped sees each plan once its actions are under way.
func (r *rehearsal) stepped(p *plan.Plan, before *state.Document) {
	if r.gate.doubt(p.Doubts) || !sameActions(p.Actions, r.last.actions) {
		r.last.restless = true
	}
	r.last.actions = p.Actions
	r.oracle.doc = func() *state.Document { return p.Next }
	r.oracle.stepped(before, p.Next)
}

// step is one step and the end of all calls that it began.
func (r *rehearsal) step(ctx context.Context) error {
	r.steps++
	r.last.restless = false
	before := r.stepper.Document()
	r.gate.list(ctx, r.fleet.stack, r.cloud.News().Changes)
	r.gate.read(ctx)
	began := time.Now()
	_, failed := r.stepper.Step(ctx)
	took := time.Since(began)
	r.spent += took
	r.longest = max(r.longest, took)
	if err := r.gate.pass(ctx, r.stepper.Calls(), func() { r.hear(ctx) }); err != nil {
		return err
	}
	for !r.stepper.Idle() && ctx.Err() == nil {
		r.stepper.Wait(ctx, time.Minute)
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	r.last.restless = r.last.restless || failed != nil || r.stepper.Document() != before
	r.books.observe(r.clock.Now(), r.stepper.Document())
	return nil
}

// sameActions reports whether two steps asked for the same of the same slices.
func sameActions(a, b []plan.Action) bool {
	return slices.EqualFunc(a, b, func(a, b plan.Action) bool { return a.Verb == b.Verb && a.Slice.Name == b.Slice.Name })
}

// hear waits until the stepper has heard of one more failure.
func (r *rehearsal) hear(ctx context.Context) {
	for heard := r.heard; r.heard == heard && ctx.Err() == nil; {
		r.stepper.Wait(ctx, time.Millisecond)
	}
}

// until steps until something is so, or the time has come.
func (r *rehearsal) until(ctx context.Context, end time.Time, done func() bool) error {
	for r.clock.Now().Before(end) && !done() {
		if err := r.step(ctx); err != nil {
			return err
		}
		r.reportProgress()
		r.sleep(end)
		if every := r.cfg.Restarts; every > 0 && r.clock.Now().Sub(r.oracle.led) >= every {
			if err := r.lead(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// sleep lets time pass until a step is due: at the next tick where the last step may have
// led to more, or when the plan or an event asks for one. Where no step is due, one would
// see and decide what the last one did.
func (r *rehearsal) sleep(end time.Time) {
	stepped := r.clock.Now()
	wake := earlier(r.deadline(), end)
	seen := r.newsSoFar()
	for {
		at, any := r.clock.Next()
		if !any || at.After(wake) {
			break
		}
		r.clock.AdvanceTo(at)
		is := r.newsSoFar()
		if is == seen {
			continue
		}
		wake = earlier(wake, r.tick(stepped, r.seenAt(seen, is)))
		seen = is
	}
	r.clock.AdvanceTo(wake)
}

// deadline is when the next step is due without any event.
func (r *rehearsal) deadline() time.Time {
	now := r.clock.Now()
	p := r.stepper.Last()
	if r.last.restless || p == nil {
		return r.tick(now, now)
	}
	wake := r.tick(now, now.Add(steadyPoll))
	if next, any := r.gate.nextRead(); any {
		wake = earlier(wake, r.tick(now, next))
	}
	if r.gate.open || r.cloud.News().Changes != r.gate.listed {
		wake = earlier(wake, r.tick(now, listedNext(r.gate.listedAt)))
	}
	if due := accounting.DueAt(r.stepper.Document(), now); !due.IsZero() {
		wake = earlier(wake, r.tick(now, due))
	}
	if !p.Wake.IsZero() {
		wake = earlier(wake, r.tick(now, p.Wake))
	}
	return wake
}

// news counts what has happened.
type news struct {
	cloud cloud.News
	hosts int64
}

func (r *rehearsal) newsSoFar() news { return news{cloud: r.cloud.News(), hosts: r.store.written()} }

// seenAt is when a step may see what has just happened: what hosts report and how
// operations end at once, the rest with the next list.
func (r *rehearsal) seenAt(was, is news) time.Time {
	now := r.clock.Now()
	if was.hosts != is.hosts || was.cloud.Ended != is.cloud.Ended {
		return now
	}
	return later(now, listedNext(r.gate.listedAt))
}

// tick is the first time from at on at which there may be a step after one.
func (r *rehearsal) tick(stepped, at time.Time) time.Time {
	pace := r.cfg.Pace
	next := stepped.Sub(r.start).Truncate(pace) + pace
	if first := (at.Sub(r.start) + pace - 1).Truncate(pace); first > next {
		next = first
	}
	return r.start.Add(next)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// done ends a job whose work is all done, unless it was interrupted before.
func (r *rehearsal) done(addr schema.Address, key gangKey) {
	r.fleet.succeed(key)
	if a := r.books.accounts[addr]; a != nil && a.complete() {
		a.end(r.clock.Now())
	}
}

// reportProgress reports progress.
func (r *rehearsal) reportProgress() {
	if r.cfg.Progress != nil {
		r.cfg.Progress(r.progress())
	}
}

// accept makes desired what is wanted.
func (r *rehearsal) accept(ctx context.Context, desired schema.Desired) error {
	doc := apply.Accept(r.stepper.Document(), apply.Request{Desired: desired})
	p, err := r.stepper.Preview(ctx, &doc.Desired, doc)
	if err != nil {
		return err
	}
	if len(p.Blocked) > 0 {
		return fmt.Errorf("the plan is refused: %s", p.Blocked[0].Addr)
	}
	return r.stepper.Accept(ctx, doc)
}
