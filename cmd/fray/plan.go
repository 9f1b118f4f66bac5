package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/savedplan"
	"github.com/fray-ml/fray/terminal"
)

func planCommand(a *terminal.Terminal) *cobra.Command {
	var flags proposal.ChangeOptions
	var out string
	var detailed, verbose bool
	var review register.MarkdownOptions
	cmd := &cobra.Command{
		Use:   "plan [DIR | FILE...]",
		Short: "Show what apply would do",
		Long: `Show what apply would do, and nothing else: plan takes no lease and writes nothing
but the file that --out names.

Outputs are compared with those that the last apply recorded in the state. With
--detailed-exitcode, an output that gets another value is something to do (exit
code 2), also where nothing else changes.

--markdown writes the plan for a comment on a pull request or a summary of a CI run,
with what ends running work on top. fray show --markdown PLANFILE writes the same of
the plan that --out saved.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			garbage := proposal.BeginCollection()
			defer garbage.End()
			limit, err := review.Limit(cmd, flags.JSON)
			if err != nil {
				return err
			}
			flags.Input = flags.Input && !flags.JSON && !review.On
			flags.Expanded = garbage.Expect
			l, c, err := proposal.Read(ctx, a, args, &flags, out != "") // a saved plan needs a key that stays
			if err != nil {
				return err
			}
			p, err := proposal.Preview(ctx, l, c)
			if err != nil {
				return err
			}
			if review.On {
				err = proposal.ShowMarkdown(a, l, p, limit)
			} else {
				err = proposal.Show(a, l, p, flags.JSON, verbose)
			}
			if err != nil {
				return err
			}
			if err := proposal.ShowBlocked(a, l, p); err != nil {
				return err
			}
			if out != "" {
				if err := savedplan.Save(cmd.Context(), out, l, c, p); err != nil {
					return err
				}
				if !flags.JSON && !review.On {
					fmt.Fprintf(a.Stdout, "\nSaved to %s. To carry out exactly this plan:\n\n  fray apply %s\n", out, terminal.ShellQuote(out))
				}
			}
			if err := proposal.CheckPolicies(p); err != nil {
				return err
			}
			if detailed && !p.Empty() {
				return &terminal.Exit{Code: terminal.ExitChanges}
			}
			return nil
		},
	}
	register.Change(&flags, cmd)
	register.Markdown(&review, cmd)
	cmd.Flags().StringVarP(&out, "out", "o", "", "save the plan to `FILE` for fray apply FILE")
	cmd.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit 0 when there is nothing to do, 2 when there is, 1 on errors")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "show every instance and every unchanged attribute")
	return cmd
}
