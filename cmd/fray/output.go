package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/terminal"
)

func outputCommand(a *terminal.Terminal) *cobra.Command {
	var config configuration.Options
	var asJSON, raw bool
	var dir string
	cmd := &cobra.Command{
		Use:   "output [NAME]",
		Short: "Print the outputs of the last apply",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := configuration.Locate(cmd.Context(), a, []string{dir}, config)
			if err != nil {
				return err
			}
			outputs := l.Document.Outputs
			if len(args) == 0 {
				if raw {
					return fmt.Errorf("--raw wants the NAME of one output")
				}
				if asJSON {
					return configuration.PrintOutputsJSON(a, outputs, l.Sealer)
				}
				if len(outputs) == 0 {
					fmt.Fprintln(a.Stdout, "No outputs. Declare output blocks and run fray apply.")
					return nil
				}
				return configuration.OutputLines(a, outputs)
			}
			o, ok := outputs[args[0]]
			if !ok {
				hint := ""
				if near := schema.Nearest(args[0], stack.SortedKeys(outputs)); near != "" {
					hint = "; did you mean " + near + "?"
				}
				return fmt.Errorf("there is no output %q in the state%s", args[0], hint)
			}
			return configuration.PrintOutput(a, o, l.Sealer, raw)
		},
	}
	register.Config(&config, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, sensitive values in clear")
	cmd.Flags().BoolVar(&raw, "raw", false, "print a string as it is, for scripts")
	cmd.Flags().StringVarP(&dir, "chdir", "C", ".", "use the stack of `DIR` (or of one file)")
	return cmd
}
