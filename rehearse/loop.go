package rehearse

import (
	"context"
	"fmt"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Times of the loop, on the virtual clock.
const (
	// react is how soon a step follows something that happened, or an action.
	react = 3 * time.Second
	// waitingPoll is the time without a look while anything waits; it doubles
	// as long as looks bring nothing, up to waitingMost.
	waitingPoll = 45 * time.Second
	waitingMost = 3 * time.Minute
	// silenceLasts is for how long a host that has just died is watched closely:
	// its silence has to be seen a few times.
	silenceLasts = time.Minute
	// steadyPoll is the same while all is well.
	steadyPoll = 10 * time.Minute
)

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

	epoch   uint64
	stepper *apply.Stepper
	acted   bool // the last step did something
	heard   int  // failures of actions so far
	idle    int  // looks in a row at what waits, and nothing was to be done
	steps   int
	longest time.Duration // of a step, on the real clock
	spent   time.Duration // in steps, on the real clock
	failed  error         // the last step's
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
	r.acted = len(p.Actions) > 0
	r.oracle.doc = func() *state.Document { return p.Next }
	r.oracle.stepped(before, p.Next)
}

// step is one step and the end of all calls that it began.
func (r *rehearsal) step(ctx context.Context) error {
	r.steps++
	r.acted = false
	r.gate.list(ctx, r.fleet.stack)
	if last := r.stepper.Last(); last != nil {
		r.gate.read(ctx, last.Doubts)
	}
	began := time.Now()
	_, err := r.stepper.Step(ctx)
	took := time.Since(began)
	r.spent += took
	r.longest = max(r.longest, took)
	r.failed = err
	if err := r.gate.pass(ctx, r.stepper.Calls(), func() { r.hear(ctx) }); err != nil {
		return err
	}
	for !r.stepper.Idle() && ctx.Err() == nil {
		r.stepper.Wait(ctx, time.Minute)
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	r.books.observe(r.clock.Now(), r.stepper.Document())
	return nil
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

// sleep lets time pass until the next step: soon after an event or an action, and else
// until the time that the plan asks for.
func (r *rehearsal) sleep(end time.Time) {
	now := r.clock.Now()
	earliest := now.Add(r.cfg.Pace)
	wake := now.Add(r.patience())
	for {
		at, any := r.clock.Next()
		if !any || at.After(wake) {
			break
		}
		r.clock.AdvanceTo(at)
		if soon := at.Add(react); soon.Before(wake) {
			wake = soon
		}
		if wake.Before(earliest) {
			wake = earliest
		}
	}
	if wake.Before(earliest) {
		wake = earliest
	}
	if wake.After(end) {
		wake = end
	}
	r.clock.AdvanceTo(wake)
}

// patience is how long to wait while nothing happens.
func (r *rehearsal) patience() time.Duration {
	p, now := r.stepper.Last(), r.clock.Now()
	waits := p != nil && len(p.Pending) > 0
	if waits && !r.acted {
		r.idle++
	} else {
		r.idle = 0
	}
	switch {
	case r.failed != nil, r.acted, p == nil:
		return react
	case now.Sub(r.fleet.lastLoss()) < silenceLasts:
		return 2 * react
	case waits:
		look := min(waitingPoll<<min(r.idle/4, 2), waitingMost)
		if until := p.Wake.Sub(now); !p.Wake.IsZero() && until < waitingPoll {
			return max(until, time.Second)
		}
		return look
	}
	return steadyPoll
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
