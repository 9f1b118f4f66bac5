package rehearse

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Config is what is rehearsed.
type Config struct {
	// Desired is the configuration, of which the jobs of provider gcp are
	// rehearsed. Nothing in it is run, so that secrets may stay sealed.
	Desired schema.Desired
	// Refine makes what evaluates the configuration again as values become known,
	// for one controller that takes over what target leaves of it; see
	// [apply.Config]. nil: nothing waits for values.
	Refine func(target func(schema.Desired) schema.Desired) func(*state.Document) (*schema.Desired, error)
	// Scenario is how the cloud behaves; its seed is set to Seed.
	Scenario cloud.Scenario
	// JobEvents happen to slices of jobs.
	JobEvents []JobEvent
	// Workloads state what jobs do; jobs that are not named have DefaultWorkload.
	Workloads []Workload
	For       time.Duration // how long; 0: a week
	Seed      uint64
	// Pace is the least time between two steps, on the virtual clock; 0: 1 s, or of 200
	// slices or more a second for each 40.
	Pace time.Duration
	// Restarts is how often the controller dies and another one, which remembers
	// nothing, takes over; 0: never.
	Restarts time.Duration
	// CreatesPerMinute is the provider's limit; 0: 60.
	CreatesPerMinute int
	// Progress is called after every step with how far it is; nil: it is not.
	Progress func(Progress)

	// connect makes the provider; nil: a real one, over a real connection.
	connect func(ctx context.Context, r *rehearsal) (providers.Provider, error)
}

// week is how long a rehearsal is by default.
const week = 7 * 24 * time.Hour

func (c Config) withDefaults() (Config, error) {
	if c.For < 0 || c.Pace < 0 || c.CreatesPerMinute < 0 {
		return c, errors.New("rehearse: the time, the pace and the limit of creations must not be negative")
	}
	if c.For == 0 {
		c.For = week
	}
	if c.CreatesPerMinute == 0 {
		c.CreatesPerMinute = 60
	}
	c.Scenario.Seed = c.Seed
	if c.Desired = rehearsable(c.Desired); len(c.Desired.Jobs) == 0 {
		return c, errors.New(`there is nothing to rehearse: no job is on provider "gcp"`)
	}
	if c.Pace == 0 {
		c.Pace = paceOf(&c.Desired)
	}
	return c, nil
}

// slicesPerSecond is how many slices have a second of pace: of so many, something happens
// in each.
const slicesPerSecond = 40

// paceOf is the least time between two steps for so many slices: a second, or of many as
// much as lets a step find what some dozen events have left.
func paceOf(d *schema.Desired) time.Duration {
	slices := 0
	for i := range d.Jobs {
		slices += d.Jobs[i].Resources.Slices
	}
	pace := time.Duration(slices/slicesPerSecond) * time.Second
	return max(time.Second, pace.Truncate(listEvery))
}

// rehearsable is the part of a configuration that is on Google Cloud.
func rehearsable(d schema.Desired) schema.Desired {
	var kept []schema.Job
	for i := range d.Jobs {
		if d.Jobs[i].Resources.Provider == schema.ProviderGCP {
			kept = append(kept, d.Jobs[i])
		}
	}
	d.Jobs = kept
	d.Controller = nil
	return d
}

// Progress is how far a rehearsal is.
type Progress struct {
	Passed  time.Duration // of the virtual time
	Of      time.Duration
	Steps   int
	Running int // jobs whose tasks all run
	Ended   int // jobs that are done
	Jobs    int
	// Settling: the time is over, and the oracle checks that all comes to run without
	// faults, and that nothing is left after a destroy.
	Settling bool
}

func (r *rehearsal) progress() Progress {
	p := Progress{
		Passed: r.clock.Now().Sub(r.start), Of: r.cfg.For, Steps: r.steps,
		Running: len(r.oracle.running), Jobs: len(r.books.accounts), Settling: r.settling,
	}
	for _, a := range r.books.accounts {
		if a.ended && !r.settling { // which closes all accounts
			p.Ended++
		}
	}
	return p
}

// began is when every rehearsal begins, a Monday.
func began() time.Time { return time.Date(2026, time.June, 1, 8, 0, 0, 0, time.UTC) }

// Run rehearses. The error says that it could not be done; what was violated is
// in the report.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	r, err := open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	report, err := r.run(ctx)
	if err := errors.Join(err, r.close()); err != nil {
		return nil, err
	}
	return report, nil
}

// run is the whole of a rehearsal.
func (r *rehearsal) run(ctx context.Context) (*Report, error) {
	if err := r.accept(ctx, r.cfg.Desired); err != nil {
		return nil, err
	}
	if err := r.until(ctx, r.start.Add(r.cfg.For), r.allEnded); err != nil {
		return nil, err
	}
	r.books.close(r.clock.Now())
	report := r.report()
	if err := r.settle(ctx); err != nil {
		return nil, err
	}
	report.Violations, report.Steps = append(report.Violations, r.oracle.found...), r.steps
	return report, nil
}

// open sets a world up in which nothing has been asked for yet.
func open(ctx context.Context, cfg Config) (*rehearsal, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &rehearsal{cfg: cfg, start: began(), clock: cloud.NewVirtual(began())}
	if r.cfg.connect == nil {
		r.cfg.connect = connect
	}
	r.store = newMemory(r.clock.Now)
	doc := state.Document{FormatVersion: state.FormatVersion, Lineage: lineage, Serial: 1}
	r.fleet = newFleet(r.clock, doc.Stack(), r.store)
	r.oracle = newOracle(r.fleet, &cfg.Desired)
	r.books = newBooks(r, &cfg.Desired, cfg.Workloads)
	r.oracle.wanted = r.books.wanted
	r.fleet.watch = r.books
	for i := range cfg.Desired.Providers {
		if p := &cfg.Desired.Providers[i]; p.Name == schema.ProviderGCP {
			r.offers = p.Offers
		}
	}
	data, err := state.Encode(doc)
	if err != nil {
		return nil, fmt.Errorf("rehearse: %w", err)
	}
	if _, err := r.store.put("state.json", data, 0); err != nil {
		return nil, fmt.Errorf("rehearse: %w", err)
	}
	r.emulate()
	r.schedule()
	if err := r.lead(ctx); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// allEnded reports whether every job is done.
func (r *rehearsal) allEnded() bool {
	for _, a := range r.books.accounts {
		if !a.ended {
			return false
		}
	}
	return true
}
