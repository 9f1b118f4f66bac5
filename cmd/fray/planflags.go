package main

import (
	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/proposal"
)

func registerChange(f *proposal.ChangeOptions, cmd *cobra.Command) {
	registerConfig(&f.Options, cmd)
	cmd.Flags().StringArrayVar(&f.Targets, "target", nil, "only `ADDR` and what it depends on; may be repeated")
	cmd.Flags().StringArrayVar(&f.Replace, "replace", nil, "give `ADDR` new slices and a fresh start; may be repeated")
	cmd.Flags().BoolVar(&f.Destroy, "destroy", false, "take down everything, or what --target names and what depends on it, as fray destroy does")
	cmd.Flags().BoolVar(&f.RefreshOnly, "refresh-only", false, "only compare the state with what is observed, and record the differences")
	cmd.Flags().BoolVar(&f.JSON, "json", false, "print JSON (docs/plan-json.md)")
}
