package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/modules"
	plancapacity "github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// cli is one command of package cmd/fray on a simulated world: the same calls in
// the same order, from the files to the state in its directory, without what
// only real agents need (keys, bundles, looking for programs) and without
// progress lines.
type cli struct {
	dir     string
	world   *world
	src     *lang.Source
	opts    eval.Options
	cfg     *schema.Config
	doc     *state.Document
	desired schema.Desired
	key     *state.Key
	steps   int
}

// verb is a command.
type verb string

// The verbs.
const (
	verbPlan    verb = "plan"
	verbApply   verb = "apply"
	verbAgain   verb = "plan again"
	verbDestroy verb = "destroy"
)

// runVerb runs one command on the configuration of a directory.
func runVerb(ctx context.Context, v verb, dir string, mail mailboxLocation) (result, error) {
	beneath, err := store.CreateDir(filepath.Join(dir, ".fray"))
	if err != nil {
		return result{}, err
	}
	c := &cli{dir: dir, opts: eval.Options{Environ: os.Environ()}}
	if c.world, err = openWorld(dir, mail, beneath); err != nil {
		return result{}, err
	}
	if c.doc, _, err = apply.LoadState(ctx, c.world); err != nil {
		return result{}, err
	}
	c.world.recall(c.doc)
	switch v {
	case verbPlan, verbAgain:
		err = c.plan(ctx, v)
	case verbApply:
		err = errors.Join(c.apply(ctx), c.world.keep())
	case verbDestroy:
		err = errors.Join(c.destroy(ctx), c.world.keep())
	}
	return result{
		World: c.world.spent(), Steps: c.steps, Saves: len(c.world.saves),
	}, err
}

func (c *cli) plan(ctx context.Context, v verb) error {
	if err := c.load(); err != nil {
		return err
	}
	observer := &apply.Observer{Store: c.world, Providers: c.providers()}
	obs, err := observer.Observe(ctx, c.doc.Stack())
	if err != nil {
		return err
	}
	doc := apply.Accept(c.doc, apply.Request{Desired: c.desired})
	p := reconcile.Diff(&doc.Desired, doc, obs, time.Now())
	if p.Empty() != (v == verbAgain) {
		return fmt.Errorf("%s: found %d actions, which is not what was to be measured", v, len(p.Actions))
	}
	return render.Text(io.Discard, p, render.Options{})
}

func (c *cli) apply(ctx context.Context) error {
	if err := c.load(); err != nil {
		return err
	}
	if err := c.carryOut(ctx, c.refine()); err != nil {
		return err
	}
	if ready := readyJobs(c.doc); ready != len(c.desired.Jobs) {
		return fmt.Errorf("apply: %d of %d jobs are ready", ready, len(c.desired.Jobs))
	}
	return nil
}

func (c *cli) destroy(ctx context.Context) error {
	if _, diags := c.parse(); diags.HasErrors() { // it says where the state is
		return diags
	}
	c.desired = schema.Desired{Providers: c.doc.Desired.Providers}
	if err := c.carryOut(ctx, nil); err != nil {
		return err
	}
	if left := len(c.doc.Jobs) + len(c.doc.Slices) + len(c.world.slices); left > 0 {
		return fmt.Errorf("destroy: %d jobs and slices are left", left)
	}
	return nil
}

func readyJobs(doc *state.Document) int {
	n := 0
	for _, j := range doc.Jobs {
		if j.Ready {
			n++
		}
	}
	return n
}

func (c *cli) providers() map[schema.ProviderName]providers.Provider {
	return map[schema.ProviderName]providers.Provider{schema.ProviderLocal: capacity{c.world}}
}

func (c *cli) parse() (*lang.Source, hcl.Diagnostics) {
	return lang.Parser{Modules: &modules.Installed{}}.Parse([]string{c.dir})
}

// load evaluates the files, twice if some values are known only after apply.
func (c *cli) load() error {
	src, diags := c.parse()
	if diags.HasErrors() {
		return diags
	}
	c.src = src
	if c.cfg, diags = src.Evaluate(c.opts); diags.HasErrors() {
		return diags
	}
	if problems := plancapacity.Check(&c.cfg.Desired); len(problems) > 0 {
		return fmt.Errorf("%s: %s", problems[0].Addr, problems[0].Summary)
	}
	var err error
	if c.key, err = store.NewKey(); err != nil {
		return err
	}
	if c.cfg.Waits() {
		if c.cfg, err = c.evaluate(c.doc); err != nil {
			return err
		}
	}
	c.desired, err = c.prepare(c.cfg)
	return err
}

func (c *cli) evaluate(doc *state.Document) (*schema.Config, error) {
	opts := c.opts
	opts.Computed = doc.Computed()
	cfg, diags := c.src.Evaluate(opts)
	if diags.HasErrors() {
		return nil, diags
	}
	return cfg, nil
}

// refine is what is desired with the values that have become known.
func (c *cli) refine() func(*state.Document) (*schema.Desired, error) {
	if !c.cfg.Waits() {
		return nil
	}
	r := &apply.Refiner{Source: c.src, Options: c.opts, Prepare: c.prepare, Sealer: c.key}
	return r.Refine
}

func (c *cli) prepare(cfg *schema.Config) (schema.Desired, error) { return cfg.Desired.Seal(c.key) }

// carryOut is apply and destroy under a lease.
func (c *cli) carryOut(ctx context.Context, refine func(*state.Document) (*schema.Desired, error)) error {
	lease, err := store.Acquire(ctx, c.world, store.LeaseConfig{Command: "bench", MinEpoch: c.doc.Epoch})
	if err != nil {
		return err
	}
	s, err := apply.New(ctx, apply.Config{
		Store: c.world, Providers: c.providers(), Epoch: lease.Epoch(), Valid: lease.Valid, Refine: refine,
	})
	if err != nil {
		return err
	}
	accepted := apply.Accept(s.Document(), apply.Request{Desired: c.desired})
	p, err := s.Preview(ctx, &accepted.Desired, accepted)
	if err != nil {
		return err
	}
	if err := render.Text(io.Discard, p, render.Options{}); err != nil {
		return err
	}
	scope := apply.ScopeOf(p)
	s.SetScope(scope)
	if err := s.Accept(ctx, accepted); err != nil {
		return err
	}
	defer apply.CollectLate()()
	if c.steps, err = settle(ctx, s, scope); err != nil {
		return err
	}
	s.Drain(ctx)
	if refine != nil { // outputs
		if _, err := c.evaluate(s.Document()); err != nil {
			return err
		}
	}
	c.doc = s.Document()
	return errors.Join(s.Save(ctx), lease.Release(ctx))
}

// settle steps until everything in a scope is as it should be, and returns how
// many steps that took.
func settle(ctx context.Context, s *apply.Stepper, scope apply.Scope) (int, error) {
	for steps := 1; ; steps++ {
		next, err := s.Step(ctx)
		if err != nil {
			return steps, err
		}
		if p := s.Last(); s.Idle() && len(p.Actions) == 0 && len(scope.Pending(p)) == 0 {
			return steps, nil
		}
		s.Wait(ctx, next)
		if err := ctx.Err(); err != nil {
			return steps, err
		}
	}
}
