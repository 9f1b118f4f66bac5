package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/durable"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/terminal"
)

const starter = `# A first fray configuration: two jobs, one after the other.
#
#   fray plan      shows what would be done
#   fray apply     does it
#   fray status    shows what runs
#   fray destroy   takes it down again

variable "name" {
  type    = string
  default = "world"
}

job "hello" {
  command = ["sh", "-c", "echo hello, ${var.name}; sleep 2"]
}

job "after" {
  command    = ["sh", "-c", "echo the first job has succeeded"]
  depends_on = [job.hello]
}
`

func initCommand(a *terminal.Terminal) *cobra.Command {
	var workspace string
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Make a directory ready: a first fray.hcl and a place for the state",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return initialize(cmd.Context(), a, dir, workspace)
		},
	}
	cmd.Flags().StringVar(&workspace, "workspace", "", "make workspace `NAME` ready instead of the selected one")
	return cmd
}

func initialize(ctx context.Context, a *terminal.Terminal, dir, workspace string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.hcl"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		path := filepath.Join(dir, "fray.hcl")
		if err := durable.Replace(path, []byte(starter), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(a.Stdout, "Wrote %s, a first configuration to change.\n", path)
	}
	src, diags := configuration.Parse([]string{dir})
	if err := a.Diagnostics(terminal.FilesOf(src), diags); err != nil {
		return err
	}
	settings, diags := src.Settings(false)
	if err := a.Diagnostics(src.Files(), diags); err != nil {
		return err
	}
	where, err := stack.SiteOf(src.Dir(), settings, workspace)
	if err != nil {
		return err
	}
	st, err := stack.Open(ctx, where, true)
	if err != nil {
		return err
	}
	doc, err := st.Load(ctx)
	if err != nil {
		return err
	}
	if _, err := st.Sealer(ctx, doc, true); err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "The state is kept in %s.\nNext: fray plan, then fray apply.\n", st.At)
	return nil
}
