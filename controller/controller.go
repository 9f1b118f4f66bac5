// Package controller is `fray watch`: it holds the stack's lease whenever
// nobody else wants it, steps the loop until it is told to end, and serves what
// programs and users ask of the stack meanwhile: the cluster API, the registry
// of actors, metrics, traces, and, in package web, a page.
//
// It gives the lease to a `fray apply` that asks for it and takes it back
// afterwards; a lease lost otherwise (a suspended machine, another watch) is
// waited for again. What a step does is apply's and plan's business, and so is
// what a launch means. Services read the views that steps leave and hand the loop
// pure changes; they never act themselves.
//
// Start with [Run] and loop.go, then desk.go, between the loop and the services.
package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fray-ml/fray/apply"
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
	Command   string // shown to those who find the lease taken
	// Parallelism bounds concurrent operations; 0: 32.
	Parallelism int
	Log         *slog.Logger
	// UntilUndeclared ends Run once the accepted configuration declares no
	// controller and everything it asks for is done: for a controller that
	// an apply started and a destroy must end.
	UntilUndeclared bool
	// TTL is how long the lease outlives the controller; 0: 3.5 s.
	TTL time.Duration
	// Observe looks and shows, and changes nothing.
	Observe bool
	// Proposal is the newest configuration of files that are followed; it is
	// asked at every step. nil: what an apply accepted stands.
	Proposal func() *Proposal
	// Recorded opens the recorded configuration of a name (see
	// state.Document.Recorded) and returns what is as apply.Config.Refine for as
	// long as that stands; nil: values stay as they were accepted.
	Recorded func(ctx context.Context, name string) (func(doc *state.Document) (*schema.Desired, error), error)
	// Serving is told where the web page is, "" if it is not served; nil: nobody.
	Serving func(http string)
	// Leading is called with the lease before anything is done under it; nil:
	// nothing has to be done before.
	Leading func(ctx context.Context, lease *store.Held) error
	// Service is what is served to programs and users beside the loop.
	Service Service
	// Notify sees what changed, step by step; nil: nobody. Looked sees how long
	// the parts of each step took.
	Notify func(p *plan.Plan, before *state.Document)

	Looked func(apply.Timing)

	telemetry *telemetry // nil: nothing is counted or traced
}

// Times of the loop around the lease.
const (
	// defaultTTL leaves room for a takeover within five seconds of the leader's
	// death, and for the one write a second that a bucket takes of one object.
	defaultTTL = 3500 * time.Millisecond
	takeover   = 24 * time.Hour // how long one wait for the lease may take before it is begun again
	errorPause = time.Second    // after a step that failed as a whole
	yieldPause = 300 * time.Millisecond
)

// maxStoreBackoff is the longest wait before a store that failed is tried again:
// once it works, this controller leads within ten seconds, of which its own last
// lease may take the first.
const maxStoreBackoff = 3 * time.Second

// storeBackoff is the wait after the n-th failure of the store in a row.
func storeBackoff(n int) time.Duration { return min(plan.Backoff(n), maxStoreBackoff) }

// errDone ends Run without an error.
var errDone = errors.New("no controller is declared any more")

// Run steps the stack until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	l := newLoop()
	seen, err := newTelemetry(ctx, cfg.Version, l)
	if err != nil {
		return err
	}
	defer seen.close(ctx, cfg.Log)
	cfg = seen.instrument(cfg)
	served, err := serveAll(ctx, cfg, l)
	if err != nil {
		return err
	}
	defer served.stop()
	if cfg.Serving != nil {
		cfg.Serving(served.http)
	}
	led, failures := false, 0
	for ctx.Err() == nil {
		lease, err := acquire(ctx, cfg, served, led)
		if _, held := errors.AsType[*store.HeldError](err); held {
			continue
		}
		switch {
		case ctx.Err() != nil && lease == nil:
			return nil
		case errors.Is(err, apply.ErrStateLost):
			return err
		case err != nil:
			// A full disk or a store out of reach passes; until stopped means that.
			failures++
			cfg.Log.Warn("cannot lead", "error", err.Error(), "next try in", storeBackoff(failures).String())
			sleep.For(ctx, storeBackoff(failures))
			continue
		}
		led, failures = true, 0
		cfg.Log.Info("holding the lease", "epoch", lease.Epoch())
		seen.metrics.leases.Inc()
		l.begin()
		if cfg.Leading != nil {
			err = cfg.Leading(lease.Context(), lease)
		}
		if err == nil {
			served.lead(lease, l)
			go pruneKeys(lease.Context(), cfg, lease.Epoch())
			err = l.lead(lease.Context(), cfg, lease)
		}
		release(ctx, lease, cfg.Log)
		switch {
		case errors.Is(err, errDone):
			cfg.Log.Info("ending", "why", errDone.Error())
			return nil
		case ctx.Err() != nil:
			return nil
		case err != nil:
			cfg.Log.Warn("no longer leading", "why", err.Error())
			sleep.For(ctx, errorPause)
		default: // somebody asked for the lease
			sleep.For(ctx, yieldPause)
		}
	}
	return nil
}

// acquire waits for the lease. A controller that has led does not begin a new
// state where its own is gone.
func acquire(ctx context.Context, cfg Config, served *services, led bool) (*store.Held, error) {
	doc, generation, err := apply.LoadState(ctx, cfg.Store)
	if err != nil {
		return nil, err
	}
	if led && generation == store.Absent {
		return nil, fmt.Errorf("%w: %s was removed from %s", apply.ErrStateLost, store.StateKey, cfg.Store.Location())
	}
	// Epochs must not fall even if somebody removed the lease's object.
	return store.Acquire(ctx, cfg.Store, store.LeaseConfig{
		Command: cfg.Command, Yields: true, Wait: takeover, MinEpoch: doc.Epoch, TTL: cmp.Or(cfg.TTL, defaultTTL),
		ControllerAddress: served.address, ControllerFingerprint: served.fingerprint, ControllerHTTP: served.http,
		SigningKey: served.signingKey(),
	})
}

func release(ctx context.Context, lease *store.Held, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := lease.Release(ctx); err != nil {
		log.Warn("release lease", "error", err.Error())
	}
}

// tell names what the last step refused to destroy, each thing once.
func tell(last *plan.Plan, told map[schema.Address]bool, log *slog.Logger) {
	if last == nil {
		return
	}
	for _, r := range last.Blocked {
		if !told[r.Addr] {
			told[r.Addr] = true
			log.Warn("refused", "why", r.Detail)
		}
	}
}

// undeclared reports whether the controller is not asked for and nothing is
// left to do for it.
func undeclared(s *apply.Stepper) bool {
	last := s.Last()
	return last != nil && last.Next.Revision > 0 && last.Next.Desired.Controller == nil &&
		len(last.Actions) == 0 && len(last.Pending) == 0 && s.Idle()
}

// finish lets calls that are under way end and saves what they brought, unless
// the lease is lost: then others speak for the stack.
func finish(ctx context.Context, s *apply.Stepper, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	s.Drain(ctx)
	if err := s.Save(ctx); err != nil {
		log.Warn("save state", "error", err.Error())
	}
}
