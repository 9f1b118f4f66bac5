package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/costreport"
	"github.com/fray-ml/fray/terminal"
)

func costCommand(a *terminal.Terminal) *cobra.Command {
	var flags configuration.Options
	var asked costreport.Flags
	var dir string
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "What was used and what it cost, from the recorded history",
		Long: `Print how many chip-hours, GPU-hours and core-hours the stack has used, what they
are estimated to have cost, and which part of that time was of use, from the history
that fray apply and fray watch record: of this calendar month, unless --since, --until
or --last ask for another time. All times are UTC.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			asked.HasNamespace = cmd.Flags().Changed("namespace")
			options, err := costreport.OptionsOf(&asked, time.Now())
			if err != nil {
				return err
			}
			l, err := configuration.Locate(cmd.Context(), a, []string{dir}, flags)
			if err != nil {
				return err
			}
			doc, _, err := l.Stack.Present(cmd.Context())
			if err != nil {
				return err
			}
			return costreport.Print(cmd.Context(), a, l.Stack.Store, doc, options)
		},
	}
	register.Config(&flags, cmd)
	f := cmd.Flags()
	f.StringSliceVar(&asked.By, "group-by", []string{"namespace", "job"}, "sum up by these `NAMES`: namespace, user, job, day, provider, type, zone; also several times")
	f.StringVar(&asked.Since, "since", "", "from this `TIME` on: a day (2026-11-01), a month or a moment (2026-11-01T12:00:00Z)")
	f.StringVar(&asked.Until, "until", "", "up to this `TIME`")
	f.StringVar(&asked.Last, "last", "", "of the last `SPAN`, such as 30d or 12h")
	f.StringVar(&asked.Namespace, "namespace", "", "only of this `NAMESPACE`; \"\" for what has none")
	f.BoolVar(&asked.CSV, "csv", false, "print comma-separated values, with a line of names")
	f.BoolVar(&asked.JSON, "json", false, "print JSON (docs/cost-json.md)")
	f.StringVarP(&dir, "chdir", "C", ".", "of the stack of `DIR` (or of one file)")
	return cmd
}
