package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/policies"
	"github.com/fray-ml/fray/proposal"
	"github.com/fray-ml/fray/terminal"
	"github.com/fray-ml/fray/testruns"
)

func policyCommand(a *terminal.Terminal) *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "List and test the policies that plans are held to"}
	cmd.AddCommand(policyListCommand(a), policyTestCommand(a), policyInputCommand(a))
	return cmd
}

func policyListCommand(a *terminal.Terminal) *cobra.Command {
	var flags policies.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [DIR]",
		Short: "List the policies that hold for the plans of a directory",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			held, err := policies.Load(a, directory(args), flags)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(held.Listed())
			}
			return held.Print(a)
		},
	}
	register.PolicyDirs(&flags, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: a list of objects with name, severity, description, source and overriders")
	return cmd
}

func policyTestCommand(a *terminal.Terminal) *cobra.Command {
	var flags testruns.Options
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run the cases of the policies of a directory",
		Long: `Run the *.policytest.hcl files beside the policies of a directory and in tests/.
Each case block has a plan and the policies that are expected to deny it or to warn.
Nothing is started, and no state is read.

Exit code 1 means that something failed. With --json, standard output has one JSON
object on a line for each event (docs/test-json.md), with the case as its run.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.Parallelism = 1
			return testruns.Policies(cmd.Context(), a, directory(args), flags)
		},
	}
	cmd.Flags().StringArrayVar(&flags.Filter, "filter", nil, "run only the cases of `FILE`; may be repeated")
	cmd.Flags().StringVar(&flags.Directory, "test-directory", "tests", "find cases in `DIR`, too")
	cmd.Flags().BoolVar(&flags.JSON, "json", false, "print JSON, an object on each line (docs/test-json.md)")
	cmd.Flags().BoolVar(&flags.Verbose, "verbose", false, "print what policies find in the plan of each case")
	return cmd
}

func policyInputCommand(a *terminal.Terminal) *cobra.Command {
	var flags proposal.ChangeOptions
	cmd := &cobra.Command{
		Use:   "input [DIR | FILE...]",
		Short: "Print the plan as policies see it",
		Long: `Print the plan as policies see it, as JSON (docs/policy-input.md): for writing rules,
and as the plan_file of a case. Secrets are left out.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			l, c, err := proposal.Read(cmd.Context(), a, args, &flags, false)
			if err != nil {
				return err
			}
			c.Policies = nil
			p, err := proposal.Preview(cmd.Context(), l, c)
			if err != nil {
				return err
			}
			data, err := policies.JSON(policies.Value(c.Input(l, p, l.Document)))
			if err != nil {
				return fmt.Errorf("encode plan: %w", err)
			}
			_, err = a.Stdout.Write(data)
			return err
		},
	}
	register.Change(&flags, cmd)
	_ = cmd.Flags().MarkHidden("json") // it always is
	return cmd
}

// directory is the only argument, or the current directory.
func directory(args []string) string {
	if len(args) == 1 {
		return args[0]
	}
	return "."
}
