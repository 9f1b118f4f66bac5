// Package controller is `fray watch`: it holds the stack's lease while no other
// client asks for it, runs the loop under that lease, and serves the cluster API,
// the registry of actors, metrics and the web page for as long as its process lives.
//
// It gives the lease to a `fray apply` that asks for it and takes it back
// afterwards; it waits again for a lease lost otherwise (a suspended machine,
// another watch). The parts have packages of their own, which import only packages
// above them in this list:
//
//	caller, access       who calls; how services read and change the state
//	jobs, badrequest     jobs by name; statuses of requests with mistakes
//	registry             endpoints of actors by name
//	describe, admission  the state as messages; requests as changes of the state
//	metadata, cluster, admin, joblogs, actors, pause      the services
//	hosts                what hosts report by streams
//	apiserver            connections, tokens, leases
//	web, telemetry       the page; metrics and traces
//	loop                 steps under a lease
//
// Start with [Run], then services.go.
package controller

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/admin"
	"github.com/fray-ml/fray/controller/loop"
	"github.com/fray-ml/fray/controller/telemetry"
	"github.com/fray-ml/fray/controller/web"
	"github.com/fray-ml/fray/notices"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Config is what a controller works with.
type Config struct {
	Store     store.Store
	Providers map[schema.ProviderName]providers.Provider
	Version   string
	Command   string // shown to clients that find the lease taken
	// Parallelism bounds concurrent operations; 0: 32.
	Parallelism int
	Log         *slog.Logger
	// UntilUndeclared ends Run once the accepted configuration declares no
	// controller and everything it asks for is done: for a controller that
	// an apply started and a destroy must end.
	UntilUndeclared bool
	// TTL is how long the lease outlives the controller; 0: 3.5 s.
	TTL time.Duration
	// Observe plans and shows, and changes nothing.
	Observe bool
	// Proposal is the newest configuration of followed files; it is called before
	// every step. nil: the configuration that an apply accepted stays.
	Proposal func() *loop.Proposal
	// Recorded opens the recorded configuration of a name (see
	// state.Document.Recorded) and returns a function as apply.Config.Refine; nil:
	// values stay as they were accepted.
	Recorded func(ctx context.Context, name string) (func(doc *state.Document) (*schema.Desired, error), error)
	// Hold is as in admin.Server.
	Hold admin.Hold
	// Serving is called with the address of the web page, "" if it is not served;
	// nil: not called.
	Serving func(http string)
	// Leading is called with the lease before anything is done under it; nil:
	// nothing has to be done before.
	Leading func(ctx context.Context, lease *store.Held) error
	// Service is what is served to programs and users beside the loop.
	Service Service
	// Notices are what receivers of notifications are told with, but for what a lease says; nil:
	// none are told.
	Notices *notices.Config
	// Notify is called with what each step changed, Looked with how long its parts
	// took; nil: not called.
	Notify func(p *plan.Plan, before *state.Document)
	Looked func(apply.Timing)
}

// Times of the loop around the lease.
const (
	// defaultTTL leaves room for a takeover within five seconds of the leader's
	// death, and for the one write a second that a bucket takes of one object.
	defaultTTL = 3500 * time.Millisecond
	takeover   = 24 * time.Hour // how long one wait for the lease may take before it is begun again
	yieldPause = 300 * time.Millisecond
)

// Run steps the stack until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	stack := access.NewSerializer()
	seen, err := telemetry.New(ctx, cfg.Version, web.Stack{State: stack})
	if err != nil {
		return err
	}
	defer seen.Close(ctx, cfg.Log)
	seen.Store(cfg.Store)
	served, err := serveAll(ctx, cfg, stack, seen)
	if err != nil {
		return err
	}
	defer served.stop()
	if cfg.Serving != nil {
		cfg.Serving(served.http)
	}
	led, failures := false, 0
	for ctx.Err() == nil {
		lease, known, err := acquire(ctx, cfg, served, led)
		if _, held := errors.AsType[*store.HeldError](err); held {
			continue
		}
		switch {
		case ctx.Err() != nil && lease == nil:
			return nil
		case errors.Is(err, apply.ErrStateLost):
			return err
		case err != nil:
			// A full disk, or a store that cannot be reached, may recover.
			failures++
			cfg.Log.Warn("cannot lead", "error", err.Error(), "next try in", access.StoreBackoff(failures).String())
			sleep.For(ctx, access.StoreBackoff(failures))
			continue
		}
		led, failures = true, 0
		cfg.Log.Info("holding the lease", "epoch", lease.Epoch())
		seen.Led()
		stack.Begin()
		if cfg.Leading != nil {
			err = cfg.Leading(lease.Context(), lease)
		}
		if err == nil {
			live := served.lead(lease, stack, cfg.Store)
			go pruneKeys(lease.Context(), cfg, lease.Epoch())
			go served.sessions.Reap(lease.Context(), stack, cfg.Log)
			err = loop.Run(lease.Context(), cfg.loop(seen, live, known), stack, lease)
		}
		release(ctx, lease, cfg.Log)
		switch {
		case errors.Is(err, loop.ErrUndeclared):
			cfg.Log.Info("ending", "why", loop.ErrUndeclared.Error())
			return nil
		case ctx.Err() != nil:
			return nil
		case err != nil:
			cfg.Log.Warn("no longer leading", "why", err.Error())
			sleep.For(ctx, loop.ErrorPause)
		default: // another client asked for the lease
			sleep.For(ctx, yieldPause)
		}
	}
	return nil
}

func release(ctx context.Context, lease *store.Held, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := lease.Release(ctx); err != nil {
		log.Warn("release lease", "error", err.Error())
	}
}

// loop is what the loop works with; seen counts and traces what it does.
func (cfg Config) loop(seen *telemetry.Telemetry, live apply.Live, known apply.Known) loop.Config {
	looked := func(t apply.Timing) {
		seen.Looked(t)
		if cfg.Looked != nil {
			cfg.Looked(t)
		}
	}
	told := cfg.Notices
	if told != nil {
		counted := *told
		counted.Counted = func(of schema.Address, to schema.Receiver, result notices.Result) {
			seen.Notified(of, to, string(result))
		}
		told = &counted
	}
	return loop.Config{
		Notices: told, Live: live, Known: known,
		Store: cfg.Store, Providers: seen.Providers(cfg.Providers), Version: cfg.Version, Command: cfg.Command,
		Parallelism: cfg.Parallelism, Log: cfg.Log, UntilUndeclared: cfg.UntilUndeclared, Observe: cfg.Observe,
		Proposal: cfg.Proposal, Recorded: cfg.Recorded,
		Notify: cfg.Notify, Looked: looked, OnAction: seen.Acted, Measure: seen.Step,
	}
}
