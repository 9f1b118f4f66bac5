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

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/rehearse"
	"github.com/fray-ml/fray/rehearse/report"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// rehearseFlags are the flags of fray rehearse.
type rehearseFlags struct {
	configuration.Options
	scenario string
	lasts    time.Duration
	seed     uint64
	json     bool
}

func runRehearsal(ctx context.Context, a *terminal.Terminal, paths []string, flags rehearseFlags) error {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	scenario, err := rehearse.Load(flags.scenario)
	if wrong, ok := errors.AsType[hcl.Diagnostics](err); ok {
		return a.Diagnostics(map[string]*hcl.File{flags.scenario: scenario.Source}, wrong)
	}
	if err != nil {
		return err
	}
	cfg, err := rehearsalConfig(ctx, a, paths, flags.Options)
	if err != nil {
		return err
	}
	cfg.Scenario, cfg.Workloads, cfg.For, cfg.Seed = scenario.Cloud, scenario.Workloads, flags.lasts, flags.seedOf(scenario)
	soft, _, stop := a.Interruptible(ctx, func() string { return "Interrupted." }, "Interrupted.")
	defer stop()
	began := time.Now()
	progress := rehearsalProgress{app: a, live: terminal.IsTerminal(a.Stderr) && !a.PlainProgress}
	cfg.Progress = progress.report
	result, err := rehearse.Run(soft, cfg)
	progress.clear()
	if err != nil {
		if soft.Err() != nil {
			return &terminal.Exit{Code: terminal.ExitInterrupted, Msg: "interrupted"}
		}
		return err
	}
	result.Scenario = scenario.Name
	if flags.json {
		encoder := json.NewEncoder(a.Stdout)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(result); err != nil {
			return err
		}
	} else {
		report.Text{Out: a.Stdout}.Write(result, time.Since(began))
	}
	if n := len(result.Violations); n > 0 {
		return fmt.Errorf("fray broke %d of its own rules, which is a mistake in fray; please report it with the files, the scenario and --seed=%d: %s",
			n, result.Seed, result.Violations[0])
	}
	return nil
}

// seedOf is the seed that was asked for, or else that of the scenario.
func (f rehearseFlags) seedOf(s rehearse.Scenario) uint64 {
	return cmp.Or(f.seed, s.Cloud.Seed, 1)
}

// rehearsalConfig is what the files ask for, without reading their state or their cloud.
// Secrets are sealed with a key that is not kept.
func rehearsalConfig(ctx context.Context, a *terminal.Terminal, paths []string, flags configuration.Options) (rehearse.Config, error) {
	src, diags := configuration.Parse(paths)
	l := &configuration.Loaded{Source: src, Paths: paths}
	if diags.HasErrors() {
		return rehearse.Config{}, a.Diagnostics(terminal.FilesOf(src), diags)
	}
	var err error
	if l.Site, err = stack.SiteOf(src.Dir(), schema.Settings{}, flags.Workspace); err != nil {
		return rehearse.Config{}, err
	}
	l.Options = flags.InWorkspace(l.Site.Workspace)
	l.Options.Data = configuration.NewReader(ctx, src, l.Site, false)
	cfg, more, err := configuration.Evaluate(ctx, a, src, &l.Options, flags)
	if err != nil {
		return rehearse.Config{}, err
	}
	if diags = append(diags, more...); !diags.HasErrors() {
		l.Config = cfg
		diags = append(diags, l.Unfit()...)
	}
	if err := a.Diagnostics(src.Files(), configuration.Dedupe(diags)); err != nil {
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
		r := &apply.Refiner{Source: src, Options: l.Options, Prepare: prepare, Sealer: key, Target: target}
		return r.Refine
	}}, nil
}

// rehearsalProgress keeps the last line of a terminal while a rehearsal runs.
type rehearsalProgress struct {
	app   *terminal.Terminal
	live  bool
	shown time.Time
}

// progressEvery is how often the line is written.
const progressEvery = 100 * time.Millisecond

func (p *rehearsalProgress) report(now rehearse.Progress) {
	if !p.live || time.Since(p.shown) < progressEvery {
		return
	}
	p.shown = time.Now()
	p.clear()
	text := fmt.Sprintf("  hour %.0f of %.0f: %d of %d jobs run", now.Passed.Hours(), now.Of.Hours(), now.Running, now.Jobs)
	if now.Ended > 0 {
		text += fmt.Sprintf(", %d are done", now.Ended)
	}
	fmt.Fprint(p.app.Stderr, text)
}

func (p *rehearsalProgress) clear() {
	if p.live {
		fmt.Fprint(p.app.Stderr, "\r"+strings.Repeat(" ", p.app.Width(p.app.Stderr)-1)+"\r")
	}
}
