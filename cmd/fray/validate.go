package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
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
			l, diags := configuration.Judge(args, flags)
			if asJSON {
				return terminal.DiagnosticsInJSON(a, l.Source, diags)
			}
			if err := a.Diagnostics(terminal.FilesOf(l.Source), diags); err != nil {
				return err
			}
			fmt.Fprintln(a.Stdout, verdict(l.Config))
			return nil
		},
	}
	register.Config(&flags, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON (docs/validate-json.md)")
	return cmd
}

func verdict(cfg *schema.Config) string {
	if cfg.Partial {
		return "Valid, as far as is known without values for all variables."
	}
	d := &cfg.Desired
	return fmt.Sprintf("Valid: %s, %s, %s, %s.", terminal.Counted(len(d.Jobs), "job", "jobs"), terminal.Counted(len(d.Reservations), "reservation", "reservations"),
		terminal.Counted(len(d.Namespaces), "namespace", "namespaces"), terminal.Counted(len(cfg.Outputs), "output", "outputs"))
}
