package main

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/schema"
)

func validateCommand(a *app) *cobra.Command {
	var flags configFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate [DIR | FILE...]",
		Short: "Check the files without looking at state or world",
		Long: `Check the files without looking at state or world. Variables need no values for
that: what follows from one that has none is not known, and not judged.`,
		RunE: func(_ *cobra.Command, args []string) error {
			l, diags := judge(args, flags)
			if asJSON {
				return a.diagnosticsInJSON(l.src, diags)
			}
			if err := a.diagnostics(filesOf(l.src), diags); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, verdict(l.cfg))
			return nil
		},
	}
	flags.register(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON (docs/validate-json.md)")
	return cmd
}

// judge evaluates the files alone, as far as that goes without values for all
// variables and without data. Without errors cfg is set.
func judge(paths []string, flags configFlags) (*loaded, hcl.Diagnostics) {
	src, diags := parse(paths)
	l := &loaded{src: src, paths: paths}
	if diags.HasErrors() {
		return l, diags
	}
	at, err := siteOf(src.Dir(), schema.Settings{}, flags.workspace)
	if err != nil {
		return l, append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Workspace cannot be used", Detail: sentence(err)})
	}
	l.opts = flags.options(at.workspace)
	l.opts.Partial = true
	cfg, more := src.Evaluate(l.opts)
	diags = append(diags, more...)
	if diags.HasErrors() {
		return l, diags
	}
	l.cfg = cfg
	if !cfg.Partial {
		diags = append(diags, l.unfit()...)
	}
	return l, dedupe(diags)
}

// unfit is what is wrong with a configuration as a whole.
func (l *loaded) unfit() hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, p := range plan.Check(&l.cfg.Desired) {
		diags = append(diags, l.diagnostic(p.Addr, p.Attribute, hcl.DiagError, p.Summary, p.Detail))
	}
	diags = append(diags, amend.Check(l.cfg)...)
	if d := l.unfitEncryption(); d != nil {
		diags = append(diags, d)
	}
	return diags
}

func verdict(cfg *schema.Config) string {
	if cfg.Partial {
		return "Valid, as far as can be told without values for all variables."
	}
	d := &cfg.Desired
	return fmt.Sprintf("Valid: %s, %s, %s, %s.", counted(len(d.Jobs), "job", "jobs"), counted(len(d.Reservations), "reservation", "reservations"),
		counted(len(d.Namespaces), "namespace", "namespaces"), counted(len(cfg.Outputs), "output", "outputs"))
}
