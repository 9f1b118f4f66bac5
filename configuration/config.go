package configuration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	langrecorded "github.com/fray-ml/fray/lang/recorded"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/terminal"
)

// Options are the flags of every verb that evaluates the files, or finds
// the stack that belongs to them.
type Options struct {
	Given     []eval.Given
	Input     bool
	Local     bool
	Workspace string // "": the selected one
	// Changes is set by verbs that change the stack, and so are rejected where its state
	// is not in its place. The others warn.
	Changes bool
	// Isolated evaluates without the environment's variables, which may be secret.
	Isolated bool
	// Canceled ends an evaluation whose result has no use any more; nil: never.
	Canceled func() bool
	// Expanded is called with the number of instances that all blocks have so far; nil: it is not.
	Expanded func(instances int)
}

// InWorkspace are those of an evaluation in a workspace.
func (f Options) InWorkspace(workspace string) eval.Options {
	environ := os.Environ()
	if f.Isolated {
		environ = nil
	}
	return eval.Options{
		Given: f.Given, Environ: environ, Local: f.Local, Emulated: stack.Emulated(), Workspace: workspace, Version: release.Version(),
		Canceled: f.Canceled, Expanded: f.Expanded,
	}
}

// Loaded is an evaluated configuration with its stack: everything a plan needs.
type Loaded struct {
	Source   *lang.Source
	Options  eval.Options
	Config   *schema.Config
	Site     stack.Site
	Stack    *stack.Stack
	Document *state.Document
	Desired  schema.Desired // sealed, with bundle digests
	Sealer   schema.Sealer
	Bundles  map[string]string // directory by sha256
	Paths    []string

	Recorder *langrecorded.Recorder // records the files that Source was made of; nil: none are recorded

	Disposable bool // of a test, which takes down what it made

	Warnings hcl.Diagnostics // of the files, which have been printed
	Projects knownProjects
}

// knownProjects is what this process has found out about projects.
type knownProjects struct {
	measured map[string]bundle.Manifest              // of the bundles that were packed, by sha256
	Compared map[plan.BundleChange][]plan.FileChange // by the digests of both
}

// Load parses and evaluates paths (the current directory if none), opens the
// stack and prepares what is desired. Every mistake is printed; the error is
// then ErrReported. With create, the stack's directory and key are made.
func Load(ctx context.Context, a *terminal.Terminal, paths []string, flags Options, create bool) (*Loaded, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	recorder, src, diags := ParseRecorded(paths)
	l := &Loaded{Source: src, Recorder: recorder, Paths: paths, Bundles: map[string]string{}}
	if diags.HasErrors() {
		return nil, a.Diagnostics(terminal.FilesOf(src), diags)
	}
	var err error
	if l.Site, err = stack.SiteOf(src.Dir(), schema.Settings{}, flags.Workspace); err != nil {
		return nil, err
	}
	l.Options = flags.InWorkspace(l.Site.Workspace)
	l.Options.Moment.Planned = time.Now().UTC().Truncate(time.Second)
	l.Options.Data = NewReader(ctx, src, l.Site, flags.Local)
	cfg, more, err := Evaluate(ctx, a, src, &l.Options, flags)
	if err != nil {
		return nil, err
	}
	diags = append(diags, more...)
	if diags.HasErrors() {
		return nil, a.Diagnostics(src.Files(), diags)
	}
	l.Config, l.Site.Settings = cfg, cfg.Settings
	diags = append(diags, Preflight(ctx, a, l)...)
	if err := a.Diagnostics(src.Files(), diags); err != nil {
		return nil, err
	}
	l.Warnings = diags
	if create { // only now: a mistake leaves nothing behind
		if l.Stack, err = stack.Open(ctx, l.Site, true); err != nil {
			return nil, err
		}
	}
	if l.Document, err = l.Stack.Load(ctx); err != nil {
		return nil, err
	}
	if err := stack.NotePlace(a, l.Stack, flags.Changes); err != nil {
		return nil, err
	}
	if l.Sealer, err = l.Stack.Sealer(ctx, l.Document, create); err != nil {
		return nil, err
	}
	if note := l.Stack.Keys.Note; note != "" {
		fmt.Fprintln(a.Stderr, note)
	}
	if cfg.Waits() {
		l.Options.Computed = l.Moved(l.Document).Computed()
		if l.Config, diags = src.Evaluate(l.Options); diags.HasErrors() {
			return nil, a.Diagnostics(src.Files(), diags)
		}
	}
	l.Desired, err = l.Prepare(l.Config)
	return l, err
}

// Unreported leaves out warnings that have been printed.
func (l *Loaded) Unreported(diags hcl.Diagnostics) hcl.Diagnostics {
	reported := map[string]bool{}
	for _, d := range l.Warnings {
		reported[d.Error()] = true
	}
	return slices.DeleteFunc(slices.Clone(diags), func(d *hcl.Diagnostic) bool { return d.Severity == hcl.DiagWarning && reported[d.Error()] })
}

// Preflight finds what cannot work before anything is touched, as diagnostics
// on the lines that cause it. It also opens the stack, whose providers check.
func Preflight(ctx context.Context, a *terminal.Terminal, l *Loaded) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, p := range capacity.Check(&l.Config.Desired) {
		diags = append(diags, l.Diagnostic(p.Addr, p.Attribute, hcl.DiagError, p.Summary, p.Detail))
	}
	diags = append(diags, amend.Check(l.Config)...)
	if d := l.unfitEncryption(); d != nil {
		return append(diags, d)
	}
	var err error
	l.Stack, err = stack.Open(ctx, l.Site, false)
	if err != nil {
		return append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "State cannot be used", Detail: DetailOf(err)})
	}
	all, err := l.Stack.Providers(ctx, l.Config.Desired.Providers, nil)
	if err != nil {
		return append(diags, l.providerDiagnostic(schema.ProviderGCP, "", hcl.DiagError, "Provider cannot be set up", DetailOf(err)))
	}
	for name, p := range all {
		checker, ok := providers.AsChecker(p)
		if !ok {
			continue
		}
		for _, found := range checker.Check(ctx, l.Config.Desired) {
			severity := hcl.DiagError
			if found.Warning {
				severity = hcl.DiagWarning
			}
			if found.Addr.IsZero() {
				diags = append(diags, l.providerDiagnostic(name, found.Attribute, severity, found.Summary, found.Detail))
				continue
			}
			diags = append(diags, l.Diagnostic(found.Addr, found.Attribute, severity, found.Summary, found.Detail))
		}
	}
	return Dedupe(diags)
}

// unfitEncryption is what is wrong with the encryption block, nil if nothing is.
func (l *Loaded) unfitEncryption() *hcl.Diagnostic {
	err := stack.PolicyOf(l.Config.Settings.Encryption).Validate()
	if err == nil {
		return nil
	}
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Encryption cannot be used", Detail: DetailOf(err)}
	if r, ok := l.Config.Ranges["fray#encryption"]; ok {
		d.Subject = &r
	}
	for _, attribute := range []string{"recipients", "kms_key"} {
		if r, ok := l.Config.Ranges["fray#encryption."+attribute]; ok {
			d.Subject = &r
		}
	}
	return d
}

// DetailOf is an error as a diagnostic's detail.
func DetailOf(err error) string {
	first, size := utf8.DecodeRuneInString(err.Error())
	text := string(unicode.ToUpper(first)) + err.Error()[size:]
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// Dedupe drops diagnostics that are the same for all instances of a block.
func Dedupe(diags hcl.Diagnostics) hcl.Diagnostics {
	type key struct {
		where   hcl.Range
		summary string
	}
	seen := map[key]bool{}
	return slices.DeleteFunc(diags, func(d *hcl.Diagnostic) bool {
		if d.Subject == nil {
			return false
		}
		k := key{*d.Subject, d.Summary}
		dup := seen[k]
		seen[k] = true
		return dup
	})
}

// Diagnostic points at an attribute of an address, or at the nearest block
// around it that is in the files.
func (l *Loaded) Diagnostic(addr schema.Address, attribute string, severity hcl.DiagnosticSeverity, summary, detail string) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: detail}
	for _, base := range []schema.Address{addr, addr.Base()} {
		for _, key := range []string{base.String() + "#" + attribute, base.String()} {
			if r, ok := l.Config.Ranges[key]; ok {
				d.Subject = &r
				return d
			}
		}
	}
	return d
}

// providerDiagnostic points at an attribute of a provider block, or at the block.
func (l *Loaded) providerDiagnostic(name schema.ProviderName, attribute string, severity hcl.DiagnosticSeverity, summary, detail string) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: detail}
	for _, key := range []string{"provider." + string(name) + "#" + attribute, "provider." + string(name)} {
		if r, ok := l.Config.Ranges[key]; ok {
			d.Subject = &r
			return d
		}
	}
	return d
}

// Prepare turns an evaluated configuration into what is planned against:
// secrets sealed, projects known by content.
func (l *Loaded) Prepare(cfg *schema.Config) (schema.Desired, error) {
	desired, err := cfg.Desired.Seal(l.Sealer)
	if err != nil {
		return desired, err
	}
	if l.Disposable {
		desired = Unprotected(desired)
	}
	digests := map[string]string{}
	own := len(desired.Jobs) > 0 && &desired.Jobs[0] != &cfg.Desired.Jobs[0] // else they are those of cfg
	for i := range desired.Jobs {
		if desired.Jobs[i].Environment.Project == "" {
			continue
		}
		if !own {
			desired.Jobs, own = slices.Clone(desired.Jobs), true
		}
		env := &desired.Jobs[i].Environment
		sum, known := digests[env.Project]
		if !known {
			if sum, err = l.measure(env.Project); err != nil {
				return desired, fmt.Errorf("pack project of %s: %w", desired.Jobs[i].Addr, err)
			}
			digests[env.Project] = sum
		}
		env.Bundle = sum
		// Where the project lies is not part of what the job is.
		if rel, err := filepath.Rel(cfg.Dir, env.Project); err == nil {
			env.Project = rel
		}
	}
	return desired, nil
}

// Begin makes the values known that an apply chooses, such as its time, once: what is
// evaluated and recorded from now on has them.
func (l *Loaded) Begin() {
	if l.Options.Moment.Applied.IsZero() {
		l.Options.Moment = l.Options.Moment.Begun(time.Now())
	}
}

// Refine returns a function that evaluates again what reads values that became
// known, for apply.Config.Refine; nil when nothing waits for any. target is what is
// taken over of what is desired, nil for all.
func (l *Loaded) Refine(target func(schema.Desired) schema.Desired) func(*state.Document) (*schema.Desired, error) {
	if !l.Config.Waits() {
		return nil
	}
	l.Begin()
	r := &apply.Refiner{Source: l.Source, Options: l.Options, Prepare: l.Prepare, Sealer: l.Sealer, Target: target}
	return r.Refine
}

// ReadsComputed reports whether something of the configuration reads values that jobs
// get as they run. Those may change during an apply, also where all of them were known
// before it.
func (l *Loaded) ReadsComputed() bool { return l.Options.Computed != nil }

// Evaluate is the configuration with the values that doc knows, and with data
// read anew.
func (l *Loaded) Evaluate(ctx context.Context, doc *state.Document) (*schema.Config, hcl.Diagnostics) {
	opts := l.Options
	opts.Computed = doc.Computed()
	if reader, ok := opts.Data.(*StackReader); ok {
		opts.Data = reader.Anew(ctx)
	}
	return l.Source.Evaluate(opts)
}
