package main

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/cmd/fray/register"
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan/depgraph"
	"github.com/fray-ml/fray/savedplan"
	"github.com/fray-ml/fray/terminal"
)

// graphFormat is a way to write a graph.
type graphFormat string

const (
	graphDOT     graphFormat = "dot"
	graphMermaid graphFormat = "mermaid"
)

func graphCommand(a *terminal.Terminal) *cobra.Command {
	var flags configuration.Options
	var format, planFile string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "graph [DIR | FILE...]",
		Short: "Draw what depends on what",
		Long: `Draw what depends on what, as DOT for Graphviz or as a Mermaid flowchart. An arrow
goes from what depends to what it depends on: solid for what it waits for, dashed
for the pool it draws from, dotted for the namespace or job group it is part of.
Instances of one block are one node. With --plan the nodes have the colours of
what a saved plan would do.

  fray graph | dot -Tsvg > graph.svg`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON && cmd.Flags().Changed("format") {
				return errors.New("--json and --format both say how to write the graph; leave one out")
			}
			if f := graphFormat(format); f != graphDOT && f != graphMermaid {
				return fmt.Errorf("there is no format %q; use --format=dot or --format=mermaid", format)
			}
			g, err := readGraph(a, cmd, args, flags, planFile)
			if err != nil {
				return err
			}
			if asJSON {
				return a.PrintJSON(graphDocument(g))
			}
			w := bufio.NewWriter(a.Stdout)
			switch graphFormat(format) {
			case graphDOT:
				drawDOT(w, g)
			case graphMermaid:
				drawMermaid(w, g)
			}
			return w.Flush()
		},
	}
	register.Config(&flags, cmd)
	cmd.Flags().StringVar(&format, "format", string(graphDOT), "dot or mermaid")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON (docs/graph-json.md)")
	cmd.Flags().StringVar(&planFile, "plan", "", "draw what the plan in `FILE` would do, rather than the files")
	return cmd
}

// readGraph is that of a saved plan, or else of the files.
func readGraph(a *terminal.Terminal, cmd *cobra.Command, args []string, flags configuration.Options, planFile string) (*depgraph.Graph, error) {
	if planFile != "" {
		if len(args) > 0 {
			return nil, errors.New("a saved plan knows its files; leave out either --plan or the others")
		}
		saved, err := savedplan.Read(cmd.Context(), planFile)
		if err != nil {
			return nil, err
		}
		return depgraph.New(&saved.Desired, saved.Changes), nil
	}
	l, diags := configuration.Judge(args, flags)
	if err := a.Diagnostics(terminal.FilesOf(l.Source), diags); err != nil {
		return nil, err
	}
	if l.Config.Partial {
		a.Warn("variables without a value decide how many instances there are; those blocks are not drawn. Give the values with --var.")
	}
	return depgraph.New(&l.Config.Desired, nil), nil
}
