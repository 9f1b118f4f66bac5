package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/terminal"
	"github.com/fray-ml/fray/testruns"
)

func testCommand(a *terminal.Terminal) *cobra.Command {
	var flags testruns.Options
	cmd := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run the tests of a configuration on this machine",
		Long: `Run the *.fraytest.hcl files beside the configuration and in tests/. Each run block
plans, or applies with real processes, and its assert blocks state what must hold.

Everything is on this machine, as with --local, and in a state of its own: the
stack is not touched. What a file's runs started is taken down at its end, also
after failures and Ctrl-C; what a killed fray test left is removed by the next one.

Exit code 1 means that something failed. With --json, standard output has one JSON
object on a line for each event (docs/test-json.md).`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.Parallelism < 1 {
				return fmt.Errorf("--parallelism=%d: want at least 1", flags.Parallelism)
			}
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return testruns.Run(cmd.Context(), a, dir, flags)
		},
	}
	register.Config(&flags.Options, cmd)
	_ = cmd.Flags().MarkHidden("local") // it always is
	_ = cmd.Flags().MarkHidden("input") // tests ask no questions
	cmd.Flags().StringArrayVar(&flags.Filter, "filter", nil, "run only the tests of `FILE`; may be repeated")
	cmd.Flags().StringVar(&flags.Directory, "test-directory", "tests", "find tests in `DIR`, too")
	cmd.Flags().BoolVar(&flags.JSON, "json", false, "print JSON, an object on each line (docs/test-json.md)")
	cmd.Flags().BoolVar(&flags.Verbose, "verbose", false, "print the plan of each run, and what an apply does")
	cmd.Flags().IntVar(&flags.Parallelism, "parallelism", 1, "run the tests of `N` files at once")
	return cmd
}
