package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/schema/recorded"
	"github.com/fray-ml/fray/state"
)

// configFlags are the flags of every verb that evaluates the files, or finds
// the stack that belongs to them.
type configFlags struct {
	given     []schema.Given
	input     bool
	local     bool
	workspace string // "": the selected one
}

func (f *configFlags) register(cmd *cobra.Command) {
	cmd.Flags().Var(givenFlag{schema.GivenVar, &f.given}, "var", "set a variable, `NAME=VALUE`; may be repeated")
	cmd.Flags().Var(givenFlag{schema.GivenVarFile, &f.given}, "var-file", "read variables from `FILE`; may be repeated")
	cmd.Flags().BoolVar(&f.input, "input", true, "ask on a terminal for variables that have no value")
	f.registerPlace(cmd)
}

// registerPlace registers the flags that say where the stack is.
func (f *configFlags) registerPlace(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.local, "local", false, "map every provider and the state onto this machine")
	cmd.Flags().StringVar(&f.workspace, "workspace", "", "act in workspace `NAME` instead of the selected one")
}

// givenFlag appends to a list that several flags share, so that their order on
// the command line counts.
type givenFlag struct {
	kind schema.GivenKind
	list *[]schema.Given
}

func (f givenFlag) Set(text string) error {
	*f.list = append(*f.list, schema.Given{Kind: f.kind, Text: text})
	return nil
}

func (f givenFlag) String() string { return "" }

func (f givenFlag) Type() string { return "text" }

// options are those of an evaluation in a workspace.
func (f configFlags) options(workspace string) schema.Options {
	return schema.Options{
		Given: f.given, Environ: os.Environ(), Local: f.local, Workspace: workspace, Version: toolVersion(),
	}
}

// loaded is an evaluated configuration with its stack: everything a plan needs.
type loaded struct {
	src     *schema.Source
	opts    schema.Options
	cfg     *schema.Config
	where   site
	stack   *stack
	doc     *state.Document
	desired schema.Desired // sealed, with bundle digests
	sealer  schema.Sealer
	bundles map[string]string // directory by sha256
	paths   []string

	recorder *recorded.Recorder // records the files that src was made of; nil: none are recorded

	disposable bool // of a test, which takes down what it made

	told     map[string]bool // warnings, by their text
	projects knownProjects
}

// knownProjects is what this process has found out about projects.
type knownProjects struct {
	measured map[string]bundle.Manifest              // of the bundles that were packed, by sha256
	compared map[plan.BundleChange][]plan.FileChange // by the digests of both
}

// load parses and evaluates paths (the current directory if none), opens the
// stack and prepares what is desired. Every mistake is printed; the error is
// then errReported. With create, the stack's directory and key are made.
func (a *app) load(ctx context.Context, paths []string, flags configFlags, create bool) (*loaded, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	recorder, src, diags := parseRecorded(paths)
	l := &loaded{src: src, recorder: recorder, paths: paths, bundles: map[string]string{}}
	if diags.HasErrors() {
		return nil, a.diagnostics(filesOf(src), diags)
	}
	var err error
	if l.where, err = siteOf(src.Dir(), schema.Settings{}, flags.workspace); err != nil {
		return nil, err
	}
	l.opts = flags.options(l.where.workspace)
	l.opts.Data = data(ctx, src, l.where, flags.local)
	cfg, more, err := a.evaluate(ctx, src, &l.opts, flags)
	if err != nil {
		return nil, err
	}
	diags = append(diags, more...)
	if diags.HasErrors() {
		return nil, a.diagnostics(src.Files(), diags)
	}
	l.cfg, l.where.settings = cfg, cfg.Settings
	diags = append(diags, a.preflight(ctx, l)...)
	if err := a.diagnostics(src.Files(), diags); err != nil {
		return nil, err
	}
	l.tell(diags)
	if create { // only now: a mistake leaves nothing behind
		if l.stack, err = openStack(ctx, l.where, true); err != nil {
			return nil, err
		}
	}
	if l.doc, err = l.stack.load(ctx); err != nil {
		return nil, err
	}
	a.notePlace(l.stack)
	if l.sealer, err = l.stack.sealer(ctx, l.doc, create); err != nil {
		return nil, err
	}
	if note := l.stack.keys.note; note != "" {
		fmt.Fprintln(a.stderr, note)
	}
	if cfg.Waits() {
		l.opts.Computed = l.moved(l.doc).Computed()
		if l.cfg, diags = src.Evaluate(l.opts); diags.HasErrors() {
			return nil, a.diagnostics(src.Files(), diags)
		}
	}
	l.desired, err = l.prepare(l.cfg)
	return l, err
}

// tell notes what has been printed.
func (l *loaded) tell(diags hcl.Diagnostics) {
	l.told = map[string]bool{}
	for _, d := range diags {
		l.told[d.Error()] = true
	}
}

// untold leaves out warnings that have been printed.
func (l *loaded) untold(diags hcl.Diagnostics) hcl.Diagnostics {
	return slices.DeleteFunc(slices.Clone(diags), func(d *hcl.Diagnostic) bool { return d.Severity == hcl.DiagWarning && l.told[d.Error()] })
}

func filesOf(src *schema.Source) map[string]*hcl.File {
	if src == nil {
		return nil
	}
	return src.Files()
}

// preflight finds what cannot work before anything is touched, as diagnostics
// on the lines that cause it. It also opens the stack, whose providers look.
func (a *app) preflight(ctx context.Context, l *loaded) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, p := range plan.Check(&l.cfg.Desired) {
		diags = append(diags, l.diagnostic(p.Addr, p.Attribute, hcl.DiagError, p.Summary, p.Detail))
	}
	diags = append(diags, amend.Check(l.cfg)...)
	if d := l.unfitEncryption(); d != nil {
		return append(diags, d)
	}
	var err error
	l.stack, err = openStack(ctx, l.where, false)
	if err != nil {
		return append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "State cannot be used", Detail: sentence(err)})
	}
	all, err := l.stack.providers(ctx, l.cfg.Desired.Providers, nil)
	if err != nil {
		return append(diags, l.providerDiagnostic(schema.ProviderGCP, "", hcl.DiagError, "Provider cannot be set up", sentence(err)))
	}
	for name, p := range all {
		checker, ok := providers.AsChecker(p)
		if !ok {
			continue
		}
		for _, found := range checker.Check(ctx, l.cfg.Desired) {
			severity := hcl.DiagError
			if found.Warning {
				severity = hcl.DiagWarning
			}
			if found.Addr.IsZero() {
				diags = append(diags, l.providerDiagnostic(name, found.Attribute, severity, found.Summary, found.Detail))
				continue
			}
			diags = append(diags, l.diagnostic(found.Addr, found.Attribute, severity, found.Summary, found.Detail))
		}
	}
	return dedupe(diags)
}

// unfitEncryption is what is wrong with the encryption block, nil if nothing is.
func (l *loaded) unfitEncryption() *hcl.Diagnostic {
	err := policyOf(l.cfg.Settings.Encryption).Validate()
	if err == nil {
		return nil
	}
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Encryption cannot be used", Detail: sentence(err)}
	if r, ok := l.cfg.Ranges["fray#encryption"]; ok {
		d.Subject = &r
	}
	for _, attribute := range []string{"recipients", "kms_key"} {
		if r, ok := l.cfg.Ranges["fray#encryption."+attribute]; ok {
			d.Subject = &r
		}
	}
	return d
}

// sentence is an error as a diagnostic's detail.
func sentence(err error) string {
	first, size := utf8.DecodeRuneInString(err.Error())
	text := string(unicode.ToUpper(first)) + err.Error()[size:]
	if strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// dedupe drops what instances of one block all say.
func dedupe(diags hcl.Diagnostics) hcl.Diagnostics {
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

// diagnostic points at an attribute of an address, or at the nearest thing
// around it that was written down.
func (l *loaded) diagnostic(addr schema.Address, attribute string, severity hcl.DiagnosticSeverity, summary, detail string) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: detail}
	for _, base := range []schema.Address{addr, addr.Base()} {
		for _, key := range []string{base.String() + "#" + attribute, base.String()} {
			if r, ok := l.cfg.Ranges[key]; ok {
				d.Subject = &r
				return d
			}
		}
	}
	return d
}

// providerDiagnostic points at an attribute of a provider block, or at the block.
func (l *loaded) providerDiagnostic(name schema.ProviderName, attribute string, severity hcl.DiagnosticSeverity, summary, detail string) *hcl.Diagnostic {
	d := &hcl.Diagnostic{Severity: severity, Summary: summary, Detail: detail}
	for _, key := range []string{"provider." + string(name) + "#" + attribute, "provider." + string(name)} {
		if r, ok := l.cfg.Ranges[key]; ok {
			d.Subject = &r
			return d
		}
	}
	return d
}

// prepare turns an evaluated configuration into what is planned against:
// secrets sealed, projects known by content.
func (l *loaded) prepare(cfg *schema.Config) (schema.Desired, error) {
	desired, err := cfg.Desired.Seal(l.sealer)
	if err != nil {
		return desired, err
	}
	if l.disposable {
		desired = unprotected(desired)
	}
	digests := map[string]string{}
	for i := range desired.Jobs {
		env := &desired.Jobs[i].Environment
		if env.Project == "" {
			continue
		}
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

// refine returns a function that evaluates again what reads values that became
// known, for apply.Config.Refine; nil when nothing waits for any. target is what is
// taken over of what is desired, nil for all.
func (l *loaded) refine(target func(schema.Desired) schema.Desired) func(*state.Document) (*schema.Desired, error) {
	if !l.cfg.Waits() {
		return nil
	}
	r := &apply.Refiner{Source: l.src, Options: l.opts, Prepare: l.prepare, Sealer: l.sealer, Target: target}
	return r.Refine
}

// readsComputed reports whether something of the configuration reads values that jobs
// get as they run. Those may change during an apply, also where all of them were known
// before it.
func (l *loaded) readsComputed() bool { return l.opts.Computed != nil }

// evaluate is the configuration with the values that doc knows, and with data
// read anew.
func (l *loaded) evaluate(ctx context.Context, doc *state.Document) (*schema.Config, hcl.Diagnostics) {
	opts := l.opts
	opts.Computed = doc.Computed()
	if reader, ok := opts.Data.(*dataReader); ok {
		opts.Data = reader.anew(ctx)
	}
	return l.src.Evaluate(opts)
}
