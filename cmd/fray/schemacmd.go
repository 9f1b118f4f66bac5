package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lsp"
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

func lspCommand(a *terminal.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lsp",
		Short: "Serve editors: diagnostics, completion, hover texts, definitions",
		Long: `Serve an editor with the Language Server Protocol over standard input and output:
diagnostics as one types, those of fray validate; completion; hover texts;
definitions, through modules too; formatting as fray fmt does it; an outline.

Editors start it by themselves: docs/guides/editors.md has the lines for VS Code,
Neovim and Helix. It ends when the editor does.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if terminal.IsTerminal(a.Stdin) {
				return errors.New("standard input is a terminal, and an editor is expected there; docs/guides/editors.md tells how to set one up")
			}
			dir, err := os.Getwd()
			if err != nil {
				return fmt.Errorf("find the current directory: %w", err)
			}
			defer lsp.CollectLess()()
			return lsp.Serve(cmd.Context(), lsp.Options{In: a.Stdin, Out: a.Stdout, Dir: dir, Version: release.Version()})
		},
	}
	cmd.Flags().Bool("stdio", true, "over standard input and output, the only way")
	return cmd
}
