package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/terminal"
)

func versionCommand(a *terminal.Terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.PrintJSON(map[string]string{
					"version": release.Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			fmt.Fprintf(a.Stdout, "fray %s %s/%s\n", release.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
