package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/rehearse"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// rehearseFlags are the flags of fray rehearse.
type rehearseFlags struct {
	configFlags
	scenario string
	lasts    time.Duration
	seed     uint64
	json     bool
}

func rehearseCommand(a *app) *cobra.Command {
	var flags rehearseFlags
	cmd := &cobra.Command{
		Use:   "rehearse [DIR | FILE...]",
		Short: "See how a configuration would fare on Google Cloud",
		Long: `Apply the files to an emulated Google Cloud and keep them true for a week of its
weather: preemptions, stockouts, hosts that die, calls that fail. The clock jumps
from event to event, so that a week takes seconds. Nothing real is touched or run:
jobs are taken to work for the whole time, with a checkpoint every 30 minutes and 4
minutes to get going, unless the scenario's workload blocks say otherwise.

The report says for each job how much of its time was useful and what the rest went
into, what capacity was used and what that is estimated to cost, and what never ran
and why. The same seed gives the same report.

--scenario is calm, usual, stormy, or a file (docs/guides/rehearsal.md). With --json
the report is one JSON document (docs/rehearsal-json.md). Exit code 1 says that fray
itself did something that it never should.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.lasts <= 0 {
				return errors.New("--for must be above 0")
			}
			return a.rehearse(cmd.Context(), args, flags)
		},
	}
	flags.register(cmd)
	_ = cmd.Flags().MarkHidden("local") // it never is
	cmd.Flags().StringVar(&flags.scenario, "scenario", rehearse.ScenarioUsual, "the weather: calm, usual, stormy or a `FILE`")
	cmd.Flags().DurationVar(&flags.lasts, "for", 7*24*time.Hour, "rehearse so much `TIME`")
	cmd.Flags().Uint64Var(&flags.seed, "seed", 0, "draw the weather from `NUMBER`; 0: the scenario's own, or 1")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print JSON (docs/rehearsal-json.md)")
	return cmd
}

func (a *app) rehearse(ctx context.Context, paths []string, flags rehearseFlags) error {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	scenario, err := rehearse.Load(flags.scenario)
	if wrong, ok := errors.AsType[hcl.Diagnostics](err); ok {
		return a.diagnostics(map[string]*hcl.File{flags.scenario: scenario.Source}, wrong)
	}
	if err != nil {
		return err
	}
	cfg, err := a.rehearsed(ctx, paths, flags.configFlags)
	if err != nil {
		return err
	}
	cfg.Scenario, cfg.Workloads, cfg.For, cfg.Seed = scenario.Weather, scenario.Workloads, flags.lasts, flags.seedOf(scenario)
	soft, _, stop := a.interruptibleAs(ctx, func() string { return "Interrupted." }, "Interrupted.")
	defer stop()
	began := time.Now()
	progress := rehearsalProgress{app: a, live: isTerminal(a.stderr) && !a.plainProgress}
	cfg.Progress = progress.tell
	report, err := rehearse.Run(soft, cfg)
	progress.clear()
	if err != nil {
		if soft.Err() != nil {
			return &exit{code: exitInterrupted, msg: "interrupted"}
		}
		return err
	}
	report.Scenario = scenario.Name
	if flags.json {
		encoder := json.NewEncoder(a.stdout)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(report); err != nil {
			return err
		}
	} else {
		rehearsalText{out: a.stdout}.write(report, time.Since(began))
	}
	if n := len(report.Violations); n > 0 {
		return fmt.Errorf("fray broke %d of its own rules, which is a mistake in fray; please report it with the files, the scenario and --seed=%d: %s",
			n, report.Seed, report.Violations[0])
	}
	return nil
}

// seedOf is the seed that was asked for, or else that of the scenario.
func (f rehearseFlags) seedOf(s rehearse.Scenario) uint64 {
	return cmp.Or(f.seed, s.Weather.Seed, 1)
}

// rehearsed is what the files ask for, without looking at their state or their cloud.
// Secrets are sealed with a key that nobody keeps.
func (a *app) rehearsed(ctx context.Context, paths []string, flags configFlags) (rehearse.Config, error) {
	src, diags := parse(paths)
	l := &loaded{src: src, paths: paths}
	if diags.HasErrors() {
		return rehearse.Config{}, a.diagnostics(filesOf(src), diags)
	}
	var err error
	if l.where, err = siteOf(src.Dir(), schema.Settings{}, flags.workspace); err != nil {
		return rehearse.Config{}, err
	}
	l.opts = flags.options(l.where.workspace)
	l.opts.Data = data(ctx, src, l.where, false)
	cfg, more, err := a.evaluate(ctx, src, &l.opts, flags)
	if err != nil {
		return rehearse.Config{}, err
	}
	if diags = append(diags, more...); !diags.HasErrors() {
		l.cfg = cfg
		diags = append(diags, l.unfit()...)
	}
	if err := a.diagnostics(src.Files(), dedupe(diags)); err != nil {
		return rehearse.Config{}, err
	}
	secret := make([]byte, state.KeySize)
	rand.Read(secret) // never fails
	key, err := state.NewKey(secret)
	if err != nil {
		return rehearse.Config{}, err
	}
	prepare := func(cfg *schema.Config) (schema.Desired, error) { return cfg.Desired.Seal(key) }
	desired, err := prepare(cfg)
	if err != nil || !cfg.Waits() {
		return rehearse.Config{Desired: desired}, err
	}
	return rehearse.Config{Desired: desired, Refine: func(target func(schema.Desired) schema.Desired) func(*state.Document) (*schema.Desired, error) {
		r := &apply.Refiner{Source: src, Options: l.opts, Prepare: prepare, Sealer: key, Target: target}
		return r.Refine
	}}, nil
}

// rehearsalProgress keeps the last line of a terminal while a rehearsal runs.
type rehearsalProgress struct {
	app  *app
	live bool
	told time.Time
}

// progressEvery is how often the line is written.
const progressEvery = 100 * time.Millisecond

func (p *rehearsalProgress) tell(now rehearse.Progress) {
	if !p.live || time.Since(p.told) < progressEvery {
		return
	}
	p.told = time.Now()
	p.clear()
	text := fmt.Sprintf("  hour %.0f of %.0f: %d of %d jobs run", now.Passed.Hours(), now.Of.Hours(), now.Running, now.Jobs)
	if now.Ended > 0 {
		text += fmt.Sprintf(", %d are done", now.Ended)
	}
	fmt.Fprint(p.app.stderr, text)
}

func (p *rehearsalProgress) clear() {
	if p.live {
		fmt.Fprint(p.app.stderr, "\r"+strings.Repeat(" ", p.app.width(p.app.stderr)-1)+"\r")
	}
}
