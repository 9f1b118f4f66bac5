package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/console"
	"github.com/fray-ml/fray/terminal"
)

func consoleCommand(a *terminal.Terminal) *cobra.Command {
	var flags configuration.Options
	cmd := &cobra.Command{
		Use:   "console [DIR | FILE...]",
		Short: "Try expressions over the configuration and the state",
		Long: `Evaluate expressions, one on a line, with the values of the configuration and
what the state knows: variables, locals, modules, data, outputs, jobs, functions.
An expression goes on over several lines while brackets are open. :type EXPR, or
type(EXPR), is the type of an expression; :help shows more; exit or Ctrl-D leaves.

From a pipe, the results are lines of standard output; console goes on after an
error, and exits with 1 at the end if there was one. Sensitive values are not
shown. console takes no lease and writes nothing. If the files have errors, it
prints them and knows what has a value in spite of them.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c := &console.Console{Terminal: a}
			if err := c.Open(cmd.Context(), args, flags); err != nil {
				return err
			}
			if keyboard, ok := a.Stdin.(*os.File); ok && terminal.IsTerminal(keyboard) {
				return c.Converse(keyboard)
			}
			return c.Read(a.Stdin)
		},
	}
	register.Config(&flags, cmd)
	return cmd
}
