package apply

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// listPatience is [Config.Patience] by default.
const listPatience = 500 * time.Millisecond

// Config is what a Stepper works with. Zero values: Parallelism 32, Now
// time.Now, Scope nothing (see [Scope]), hooks none.
type Config struct {
	Store       store.Store
	Providers   map[schema.ProviderName]providers.Provider
	Version     string       // of fray, recorded in the state
	Epoch       uint64       // of the lease
	Valid       func() error // whether the lease still holds; called before every effect
	Parallelism int
	HostReasons HostReasons // the observer's
	// Patience is how long a step waits for a provider's list that was had before, and for
	// direct reads; 0: 500 ms, so that a slow cloud does not hold up the loop.
	Patience time.Duration
	Now      func() time.Time
	Scope    Scope
	// OnStep sees every plan after its actions were started; before is the
	// state before it. Neither is to be kept: later steps build on them.
	OnStep func(p *plan.Plan, before *state.Document)
	// OnError sees the errors of single actions, and of writes that no action made: then the action has no verb,
	// and its slice no name. The loop goes on.
	OnError func(a plan.Action, err error)
	// Eager saves sooner than once a second where something waits for it and the
	// store takes writes at any rate: for clients that launch one job after another.
	Eager bool
	// Events has what happens kept in the store.
	Events bool
	// Live are hosts that report by streams; nil: all report to the store alone.
	Live Live
	// Wake ends a Wait when something is received from it; nil: nothing does.
	Wake <-chan struct{}
	// OnAction sees how every single action ended, with its error or nil.
	OnAction func(a plan.Action, err error)
	// Notices are decided with each plan, and kept before the state is saved; nil: none are.
	Notices Notices
	// OnLook is called with how long the parts of each step took; nil: not called.
	OnLook func(Timing)
	// Certify puts into an assignment what its hosts, which have reported so, prove
	// their namespace with; nil: they prove none.
	Certify func(ctx context.Context, a *state.Assignment, hosts []state.HostReport) error
	// Refine returns what is desired now that more values are known; nil
	// where nothing in the desired configuration waits for values.
	Refine func(doc *state.Document) (*schema.Desired, error)
}

// Timing is how long the parts of a step took.
type Timing struct {
	Observe, Plan, Save time.Duration
	Saved               time.Duration // how long the save took that went on beside the steps and has ended; 0: none has
	Actions             int           // begun
	Differing           int           // jobs that a check of the planner found to be decided otherwise, see [incremental.Planner.Differing]
}

func (c *Config) validate() error {
	switch {
	case c.Store == nil:
		return errors.New("apply: no store")
	case c.Epoch == 0 || c.Valid == nil:
		return errors.New("apply: no lease")
	case c.Parallelism < 0:
		return fmt.Errorf("apply: parallelism %d is negative", c.Parallelism)
	}
	return nil
}
