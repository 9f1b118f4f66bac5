package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/rehearse"
	"github.com/fray-ml/fray/rehearse/history"
	"github.com/fray-ml/fray/rehearse/report"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/terminal"
)

// rehearseFlags are the flags of fray rehearse.
type rehearseFlags struct {
	configuration.Options
	scenario   string
	fromEvents bool
	save       string // a file for the scenario of events
	lasts      time.Duration
	lastsGiven bool
	pace       time.Duration
	seed       uint64
	json       bool
}

// The garbage of plans is collected less often: most of what lives is one state and one
// cloud, of some 100 MB for 1,000 jobs. Above the limit it is collected as often as it takes.
const (
	rehearsalGC     = 800
	rehearsalMemory = 400 << 20
)

func runRehearsal(ctx context.Context, a *terminal.Terminal, paths []string, flags rehearseFlags) error {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	scenario, err := flags.load(ctx, a, paths)
	if wrong, ok := errors.AsType[hcl.Diagnostics](err); ok {
		return a.Diagnostics(map[string]*hcl.File{scenario.Name: scenario.Source}, wrong)
	}
	if err != nil {
		return err
	}
	cfg, err := rehearsalConfig(ctx, a, paths, flags.Options)
	if err != nil {
		return err
	}
	cfg.JobEvents, cfg.Pace = scenario.JobEvents, flags.pace
	cfg.Scenario, cfg.Workloads, cfg.For, cfg.Seed = scenario.Cloud, scenario.Workloads, flags.lasts, flags.seedOf(scenario)
	soft, _, stop := a.Interruptible(ctx, func() string { return "Interrupted." }, "Interrupted.")
	defer stop()
	defer debug.SetGCPercent(debug.SetGCPercent(rehearsalGC))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(rehearsalMemory))
	began := time.Now()
	progress := rehearsalProgress{app: a, live: terminal.IsTerminal(a.Stderr) && !a.PlainProgress, shown: began}
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

// load returns the scenario that was asked for.
func (f *rehearseFlags) load(ctx context.Context, a *terminal.Terminal, paths []string) (rehearse.Scenario, error) {
	if !f.fromEvents {
		return rehearse.Load(f.scenario)
	}
	l, err := configuration.Locate(ctx, a, paths, f.Options)
	if err != nil {
		return rehearse.Scenario{}, err
	}
	events, err := (&store.EventReader{Store: l.Stack.Store}).Next(ctx)
	if err != nil {
		return rehearse.Scenario{}, err
	}
	h, err := history.Of(events)
	if err != nil {
		return rehearse.Scenario{}, fmt.Errorf("--from-events: %w: of %d events in %s, none is of a slice that a cloud made, or they are of an older fray", err, len(events), l.Stack.At)
	}
	text := h.Scenario()
	if f.save != "" {
		if err := isApart(f.save, paths); err != nil {
			return rehearse.Scenario{}, err
		}
		if err := durable.WriteFile(f.save, text, 0o644); err != nil {
			return rehearse.Scenario{}, fmt.Errorf("--save-scenario: %w", err)
		}
	}
	if !f.lastsGiven {
		f.lasts = max(h.Lasts().Round(time.Second), time.Hour)
	}
	fmt.Fprintf(a.Stderr, "From the events of %s to %s: %s.\n", h.From.Local().Format(eventDay), h.To.Local().Format(eventDay), h.Summary())
	return rehearse.Parse(text, "from events")
}

// isApart rejects a file that would become part of the configuration.
func isApart(file string, paths []string) error {
	if filepath.Ext(file) != ".hcl" {
		return nil
	}
	in, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return err
	}
	for _, path := range paths {
		if dir, err := filepath.Abs(path); err == nil && dir == in {
			return fmt.Errorf("--save-scenario=%s: files *.hcl in %s are part of the configuration; choose a directory of its own", file, path)
		}
	}
	return nil
}

// eventDay is how the ends of a history are shown.
const eventDay = "2006-01-02 15:04"

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

// rehearsalProgress writes how far a rehearsal is: the last line of a terminal, and
// elsewhere a line from time to time.
type rehearsalProgress struct {
	app   *terminal.Terminal
	live  bool
	shown time.Time
}

// How often the line of a terminal is written, and how often a line elsewhere.
const (
	progressEvery     = 100 * time.Millisecond
	progressLineEvery = 10 * time.Second
)

func (p *rehearsalProgress) report(now rehearse.Progress) {
	every := progressLineEvery
	if p.live {
		every = progressEvery
	}
	if time.Since(p.shown) < every {
		return
	}
	p.shown = time.Now()
	if !p.live {
		fmt.Fprintln(p.app.Stderr, progressLine(now))
		return
	}
	p.clear()
	fmt.Fprint(p.app.Stderr, "  "+progressLine(now))
}

// progressLine is how far a rehearsal is, in words.
func progressLine(now rehearse.Progress) string {
	text := fmt.Sprintf("hour %.0f of %.0f: %d of %d jobs run", math.Floor(now.Passed.Hours()), now.Of.Hours(), now.Running, now.Jobs)
	if now.Settling {
		text = fmt.Sprintf("%.0f hours rehearsed, now checking what remains without faults: %d of %d jobs run", now.Of.Hours(), now.Running, now.Jobs)
	}
	if now.Ended > 0 {
		text += fmt.Sprintf(", %d are done", now.Ended)
	}
	return text
}

func (p *rehearsalProgress) clear() {
	if p.live {
		fmt.Fprint(p.app.Stderr, "\r"+strings.Repeat(" ", p.app.Width(p.app.Stderr)-1)+"\r")
	}
}
