package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/terminal"
)

func schemaCommand(a *terminal.Terminal) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Describe the language for editors and other programs",
		Long: `Describe what may stand in a configuration: blocks, labels, attributes with their
types and defaults, what expressions may refer to, and functions. For people,
docs/language.md describes the same.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !asJSON {
				return errors.New("the description is JSON, and --json is asked for so that there may be others; run fray schema --json")
			}
			return a.PrintJSON(lang.Describe(release.Version()))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON (docs/schema-json.md)")
	return cmd
}
