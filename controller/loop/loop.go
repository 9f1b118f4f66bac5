// Package loop steps a stack for as long as this process holds its lease. Before
// each step it makes the changes that services handed in and takes over a newer
// configuration of followed files; after it, it publishes a view to the services.
// What a step does is apply's and plan's part, who holds the lease is package
// controller's.
//
// Start with [Run], then leader.go. proposal.go follows files, recorded.go the
// values of a recorded configuration.
package loop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/notices"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Config is what a loop works with.
type Config struct {
	Store       store.Store
	Providers   map[schema.ProviderName]providers.Provider
	Version     string
	Command     string // recorded with the lease
	Parallelism int    // of operations; 0: apply's default
	Log         *slog.Logger
	// UntilUndeclared ends Run with ErrUndeclared once the accepted configuration
	// declares no controller and everything it asks for is done.
	UntilUndeclared bool
	// Observe plans and shows, and changes nothing.
	Observe bool
	// Proposal is the newest configuration of followed files; it is called before
	// every step. nil: the configuration that an apply accepted stays.
	Proposal func() *Proposal
	// Recorded opens the recorded configuration of a name (see
	// state.Document.Recorded) and returns a function as apply.Config.Refine; nil:
	// values stay as they were accepted.
	Recorded func(ctx context.Context, name string) (func(doc *state.Document) (*schema.Desired, error), error)
	// Notices are what receivers are told with, but for what the lease says; nil: none are told.
	Notices *notices.Config
	// Live are hosts that report by streams; nil: all report to the store alone.
	Live apply.Live
	// Known is what was read before the lease was held.
	Known apply.Known
	// Notify is called with what each step changed, Looked with how long its parts
	// took, OnAction after each action; nil: not called.
	Notify   func(p *plan.Plan, before *state.Document)
	Looked   func(apply.Timing)
	OnAction func(plan.Action, error)
	// Measure runs a step; nil: steps are called directly.
	Measure func(ctx context.Context, step Step) (time.Duration, error)
}

// Step is a step of a stepper: it returns how long the loop may wait for the next.
type Step = func(context.Context) (time.Duration, error)

// ErrUndeclared ends Run where Config.UntilUndeclared asks for it.
var ErrUndeclared = errors.New("no controller is declared any more")

// ErrorPause is the pause after a step that failed as a whole.
const ErrorPause = time.Second

// Run steps until the lease is lost (an error), another client asks for it (nil),
// or ctx ends.
func Run(ctx context.Context, cfg Config, services *access.Serializer, lease *store.Held) error {
	keeper, stop := cfg.notices(ctx, lease)
	s, err := apply.NewAfter(ctx, apply.Config{
		Notices: keeper.decider(),
		Store:   cfg.Store, Providers: cfg.Providers, Version: cfg.Version,
		Epoch: lease.Epoch(), Valid: lease.Valid, Parallelism: cfg.Parallelism,
		Scope: apply.Scope{All: true}, Events: true, Eager: true, Wake: services.Wake(), Live: cfg.Live,
		HostReasons: apply.HostReasons{Ask: true, After: apply.BootPatience},
		Certify:     keys.NewIssuer(cfg.Store, lease.Epoch()).Certify,
		OnStep:      cfg.Notify, OnLook: cfg.Looked, OnAction: cfg.OnAction,
		OnError: func(a plan.Action, err error) {
			cfg.Log.Warn("action failed", "action", string(a.Verb), "slice", a.Slice.Name, "error", err.Error())
		},
	}, cfg.Known)
	if err != nil {
		stop()
		return err
	}
	l := newLeader(cfg, services, s, lease.Lease)
	l.notices = keeper
	defer finish(ctx, s, cfg.Log)
	defer stop()
	defer services.Stop()
	go wakeIfAsked(ctx, lease, services)
	at := lease.Lease()
	s.Tell(state.Event{At: at.AcquiredAt, Kind: state.EventLease, Text: fmt.Sprintf("%s on %s (pid %d) leads, epoch %d", cfg.Command, at.Host, at.PID, at.Epoch)})
	for {
		next, err := l.step(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, ErrUndeclared):
			return err
		case errors.Is(err, apply.ErrStateMoved) || err != nil && lease.Valid() != nil:
			return err
		case err != nil:
			cfg.Log.Warn("step failed", "error", err.Error())
			next = ErrorPause
		}
		wanted, err := lease.HandoverPending(ctx)
		if err == nil && wanted {
			cfg.Log.Info("giving the lease to another client that asked for it")
			return nil
		}
		s.Wait(ctx, next)
	}
}

// wakeIfAsked ends the wait for the next step when another process asks for the lease.
func wakeIfAsked(ctx context.Context, lease *store.Held, services *access.Serializer) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-lease.Asked():
		}
		select {
		case services.Wake() <- struct{}{}:
		default:
		}
	}
}

// undeclared reports whether the controller is not asked for and nothing is left to
// do for it.
func undeclared(s *apply.Stepper) bool {
	last := s.Last()
	return last != nil && last.Next.Revision > 0 && last.Next.Desired.Controller == nil &&
		len(last.Actions) == 0 && len(last.Pending) == 0 && s.Idle()
}

// finish waits for operations under way and saves their results, unless the lease
// is lost: then its next holder writes the state.
func finish(ctx context.Context, s *apply.Stepper, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	s.Drain(ctx)
	if err := s.Save(ctx); err != nil {
		log.Warn("save state", "error", err.Error())
	}
	s.KeepRequests(ctx)
}
