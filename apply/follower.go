package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// followPace is how often a Follower reads.
const followPace = 200 * time.Millisecond

// orphanedAfter is how long the stack may be without a leader before a Follower gives up.
const orphanedAfter = 20 * time.Second

// ErrNoLeader is the error when the executor of a change is gone.
var ErrNoLeader = errors.New("no controller leads the stack any more")

// Follower observes the steps of another client: it reads the state and the
// providers and changes nothing. Its methods are those of a Stepper.
type Follower struct {
	Store     store.Store
	Providers map[schema.ProviderName]providers.Provider
	OnStep    func(p *plan.Plan, before *state.Document) // nil: not called

	observer *Observer
	doc      *state.Document
	reader   *StateReader
	last     *plan.Plan
	led      time.Time // when a leader was last seen
	renewal  string    // the nonce of the lease then
}

// Start reads the state for the first time.
func (f *Follower) Start(ctx context.Context) error {
	f.observer = &Observer{Store: f.Store, Providers: f.Providers, Patience: listPatience}
	f.led, f.reader = time.Now(), NewStateReader(f.Store)
	return f.read(ctx)
}

func (f *Follower) read(ctx context.Context) error {
	doc, changed, err := f.reader.Read(ctx)
	switch {
	case err != nil || !changed:
	case doc != nil:
		f.doc = doc
	case f.doc == nil:
		f.doc = &state.Document{FormatVersion: state.FormatVersion, Lineage: newLineage()}
	}
	return err
}

// Step looks once, and returns after what time to look again.
func (f *Follower) Step(ctx context.Context) (time.Duration, error) {
	before := f.doc
	obs, err := f.observer.Observe(ctx, f.doc.Stack())
	if err != nil {
		return 0, err
	}
	// The state after the world: what it does not know yet comes with the next look.
	if err := f.read(ctx); err != nil {
		return 0, err
	}
	if err := f.checkLeader(ctx); err != nil {
		return 0, err
	}
	f.last = reconcile.Diff(&f.doc.Desired, f.doc, obs, time.Now())
	f.observer.Doubt(f.last.Doubts)
	f.last.Pending = append(f.last.Pending, unrecorded(f.doc, f.last)...)
	f.last.Next = f.doc // what it would do is for others to do
	if f.OnStep != nil {
		f.OnStep(f.last, before)
	}
	return max(followPace, f.Store.WriteInterval()), nil
}

// unrecorded are the jobs that stand otherwise than the state says, which is
// written once a second: until it says so too, what became of them is not over.
func unrecorded(doc *state.Document, p *plan.Plan) []plan.Pending {
	waits := map[schema.Address]bool{}
	for i := range p.Pending {
		waits[p.Pending[i].Addr] = true
	}
	var out []plan.Pending
	late := func(addr schema.Address) {
		if !waits[addr] {
			out = append(out, plan.Pending{Addr: addr, Kind: plan.WaitUnderway, Reasons: []string{"the leader has not recorded its result yet"}, Underway: true})
		}
	}
	for addr, j := range p.Next.Jobs {
		if was := doc.Jobs[addr]; was != j && (was == nil || was.Status != j.Status || was.Ready != j.Ready) {
			late(addr)
		}
	}
	for addr := range doc.Jobs {
		if p.Next.Jobs[addr] == nil {
			late(addr)
		}
	}
	slices.SortFunc(out, func(a, b plan.Pending) int { return a.Addr.Compare(b.Addr) })
	return out
}

// checkLeader fails once the stack has been without a leader for a while.
func (f *Follower) checkLeader(ctx context.Context) error {
	lease, err := store.ReadLease(ctx, f.Store)
	if err != nil {
		return err
	}
	now := time.Now()
	if !lease.Released && lease.Nonce != f.renewal { // its times are by another clock
		f.led, f.renewal = now, lease.Nonce
	}
	if now.Sub(f.led) > orphanedAfter {
		return fmt.Errorf("%w: the lease of %s@%s (pid %d) has lapsed; what was accepted is kept, and the next fray watch or fray apply goes on with it",
			ErrNoLeader, lease.User, lease.Host, lease.PID)
	}
	return nil
}

// Wait sleeps for d, or until ctx ends.
func (f *Follower) Wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Document is the state as last read. It is not to be changed.
func (f *Follower) Document() *state.Document { return f.doc }

// Last is the plan of the last step, nil before the first.
func (f *Follower) Last() *plan.Plan { return f.last }

// Idle reports that the follower itself does nothing.
func (f *Follower) Idle() bool { return true }
