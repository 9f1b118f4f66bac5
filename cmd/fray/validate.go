package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func validateCommand(a *app) *cobra.Command {
	var flags configFlags
	cmd := &cobra.Command{
		Use:   "validate [DIR | FILE...]",
		Short: "Check the files without looking at state or world",
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.load(cmd.Context(), args, flags, false)
			if err != nil {
				return err
			}
			d := &l.desired
			fmt.Fprintf(a.stdout, "Valid: %d jobs, %d reservations, %d namespaces, %d outputs.\n",
				len(d.Jobs), len(d.Reservations), len(d.Namespaces), len(l.cfg.Outputs))
			return nil
		},
	}
	flags.register(cmd)
	return cmd
}
