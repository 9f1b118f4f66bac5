package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// configFlags are the flags of every verb that evaluates the files.
type configFlags struct {
	vars, varFiles []string
	local          bool
}

func (f *configFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.vars, "var", nil, "set a variable, `NAME=VALUE`; may be repeated")
	cmd.Flags().StringArrayVar(&f.varFiles, "var-file", nil, "read variables from `FILE`; may be repeated")
	cmd.Flags().BoolVar(&f.local, "local", false, "map every provider and the state onto this machine")
}

// loaded is an evaluated configuration with its stack: everything a plan needs.
type loaded struct {
	src     *schema.Source
	opts    schema.Options
	cfg     *schema.Config
	stack   *stack
	doc     *state.Document
	desired schema.Desired // sealed, with bundle digests
	sealer  schema.Sealer
	bundles map[string]string // directory by sha256
	paths   []string

	measured map[string]bundle.Manifest // of the bundles that this process has packed, by sha256
}

// load parses and evaluates paths (the current directory if none), opens the
// stack and prepares what is desired. Every mistake is printed; the error is
// then errReported. With create, the stack's directory and key are made.
func (a *app) load(ctx context.Context, paths []string, flags configFlags, create bool) (*loaded, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	src, diags := schema.Parse(paths)
	l := &loaded{src: src, paths: paths, bundles: map[string]string{}}
	if diags.HasErrors() {
		return nil, a.diagnostics(filesOf(src), diags)
	}
	l.opts = schema.Options{
		Vars: flags.vars, VarFiles: flags.varFiles, Environ: os.Environ(), Local: flags.local, Version: toolVersion(),
	}
	cfg, more := src.Evaluate(l.opts)
	diags = append(diags, more...)
	if diags.HasErrors() {
		return nil, a.diagnostics(src.Files(), diags)
	}
	l.cfg = cfg
	problems := a.preflight(ctx, l)
	if err := a.diagnostics(src.Files(), append(diags, problems...)); err != nil {
		return nil, err
	}
	var err error
	if create { // only now: a mistake leaves nothing behind
		if l.stack, err = openStack(ctx, src.Dir(), cfg.Settings, true); err != nil {
			return nil, err
		}
	}
	if l.doc, err = l.stack.load(ctx); err != nil {
		return nil, err
	}
	if l.sealer, err = l.stack.sealer(ctx, l.doc, create); err != nil {
		return nil, err
	}
	if note := l.stack.keys.note; note != "" {
		fmt.Fprintln(a.stderr, note)
	}
	if waitsForValues(cfg) {
		l.opts.Computed = l.doc.Computed()
		if l.cfg, diags = src.Evaluate(l.opts); diags.HasErrors() {
			return nil, a.diagnostics(src.Files(), diags)
		}
	}
	l.desired, err = l.prepare(l.cfg)
	return l, err
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
	if d := l.unfitEncryption(); d != nil {
		return append(diags, d)
	}
	var err error
	l.stack, err = openStack(ctx, l.src.Dir(), l.cfg.Settings, false)
	if err != nil {
		return append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "State cannot be used", Detail: err.Error() + "."})
	}
	all, err := l.stack.providers(nil)
	if err != nil {
		return append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Provider cannot be set up", Detail: err.Error() + "."})
	}
	for _, p := range all {
		checker, ok := asChecker(p)
		if !ok {
			continue
		}
		for _, found := range checker.Check(ctx, l.cfg.Desired) {
			severity := hcl.DiagError
			if found.Warning {
				severity = hcl.DiagWarning
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
	d := &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Encryption for nobody that is known", Detail: sentence(err)}
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
	return string(unicode.ToUpper(first)) + err.Error()[size:] + "."
}

func asChecker(p providers.Provider) (providers.Checker, bool) {
	for {
		if c, ok := p.(providers.Checker); ok {
			return c, true
		}
		wrapper, ok := p.(interface{ Unwrap() providers.Provider })
		if !ok {
			return nil, false
		}
		p = wrapper.Unwrap()
	}
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

// prepare turns an evaluated configuration into what is planned against:
// secrets sealed, projects known by content.
func (l *loaded) prepare(cfg *schema.Config) (schema.Desired, error) {
	desired, err := cfg.Desired.Seal(l.sealer)
	if err != nil {
		return desired, err
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

// waitsForValues reports whether anything in a configuration is known only
// after apply.
func waitsForValues(cfg *schema.Config) bool {
	for _, o := range cfg.Outputs {
		if o.Unknown {
			return true
		}
	}
	return slices.ContainsFunc(cfg.Desired.Jobs, func(j schema.Job) bool { return len(j.Uses) > 0 })
}

// refine returns a function that evaluates again what reads values that became
// known, for apply.Config.Refine; nil when no job reads any. target is what is
// taken over of what is desired, nil for all.
func (l *loaded) refine(target func(schema.Desired) schema.Desired) func(*state.Document) (*schema.Desired, error) {
	if !slices.ContainsFunc(l.cfg.Desired.Jobs, func(j schema.Job) bool { return len(j.Uses) > 0 }) {
		return nil
	}
	r := &apply.Refiner{Source: l.src, Options: l.opts, Prepare: l.prepare, Sealer: l.sealer, Target: target}
	return r.Refine
}

// evaluate is the configuration with the values that doc knows.
func (l *loaded) evaluate(doc *state.Document) (*schema.Config, error) {
	opts := l.opts
	opts.Computed = doc.Computed()
	cfg, diags := l.src.Evaluate(opts)
	if diags.HasErrors() {
		return nil, fmt.Errorf("evaluate the configuration again with the values now known: %w", errors.Join(diags.Errs()...))
	}
	return cfg, nil
}
