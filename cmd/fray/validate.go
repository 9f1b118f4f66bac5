package main

import (
	"fmt"
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	langfiles "github.com/fray-ml/fray/lang/files"
	"github.com/fray-ml/fray/lang/load"
	"github.com/fray-ml/fray/lang/policyfile"
	"github.com/fray-ml/fray/policies"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/terminal"
)

func validateCommand(a *terminal.Terminal) *cobra.Command {
	var flags configuration.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "validate [DIR | FILE...]",
		Short: "Check the files without looking at state or world",
		Long: `Check the files without looking at state or world. Variables need no values for
that: what follows from one that has none is not known, and not judged.`,
		RunE: func(_ *cobra.Command, args []string) error {
			files, diags, text := validated(args, flags)
			if asJSON {
				return terminal.DiagnosticsInJSON(a, files, diags)
			}
			if err := a.Diagnostics(files, diags); err != nil {
				return err
			}
			fmt.Fprintln(a.Stdout, text)
			return nil
		},
	}
	register.Config(&flags, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON (docs/validate-json.md)")
	return cmd
}

// validated checks a configuration and the policies beside it, or a directory of policies
// alone. text is for people, if nothing is wrong.
func validated(args []string, flags configuration.Options) (files map[string]*hcl.File, diags hcl.Diagnostics, text string) {
	if len(args) <= 1 && onlyPolicies(directory(args)) {
		held, diags := policies.Read(directory(args), nil)
		if !diags.HasErrors() {
			diags = append(diags, held.Check()...)
		}
		return held.Files(), diags, fmt.Sprintf("Valid: %s.", terminal.Counted(len(held.Names()), "policy", "policies"))
	}
	l, diags := configuration.Judge(args, flags)
	files = map[string]*hcl.File{}
	maps.Copy(files, terminal.FilesOf(l.Source))
	n := 0
	if dir := l.Source.Dir(); dir != "" {
		held, more := policies.Read(dir, nil)
		if diags = append(diags, more...); !more.HasErrors() {
			diags = append(diags, held.Check()...)
		}
		maps.Copy(files, held.Files())
		n = len(held.Names())
	}
	if l.Config != nil {
		text = verdict(l.Config, n)
	}
	return files, diags, text
}

// onlyPolicies reports whether a directory has policies and no configuration.
func onlyPolicies(dir string) bool {
	configs, err := load.ConfigNames(langfiles.Disk{}, dir)
	has, hasErr := policyfile.Has(dir)
	return err == nil && hasErr == nil && has && len(configs) == 0
}

func verdict(cfg *schema.Config, policies int) string {
	if cfg.Partial {
		return "Valid, as far as is known without values for all variables."
	}
	d := &cfg.Desired
	text := fmt.Sprintf("Valid: %s, %s, %s, %s", terminal.Counted(len(d.Jobs), "job", "jobs"), terminal.Counted(len(d.Reservations), "reservation", "reservations"),
		terminal.Counted(len(d.Namespaces), "namespace", "namespaces"), terminal.Counted(len(cfg.Outputs), "output", "outputs"))
	if policies > 0 {
		text += ", " + terminal.Counted(policies, "policy", "policies")
	}
	return text + "."
}
