package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/lsp"
	"github.com/fray-ml/fray/release"
	"github.com/fray-ml/fray/terminal"
)

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
			return lsp.Serve(cmd.Context(), lsp.Options{In: a.Stdin, Out: outOf(a), Dir: dir, Version: release.Version()})
		},
	}
	cmd.Flags().Bool("stdio", true, "over standard input and output, the only way")
	return cmd
}

// unclosed is a stream that stays open.
type unclosed struct{ io.Writer }

// Close implements [io.Closer].
func (unclosed) Close() error { return nil }

func outOf(a *terminal.Terminal) io.WriteCloser { return unclosed{a.Stdout} }
