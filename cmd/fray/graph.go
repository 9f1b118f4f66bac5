package main

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/savedplan"
	"github.com/fray-ml/fray/schema"
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
				return a.PrintJSON(g.asJSON())
			}
			w := bufio.NewWriter(a.Stdout)
			switch graphFormat(format) {
			case graphDOT:
				g.dot(w)
			case graphMermaid:
				g.mermaid(w)
			}
			return w.Flush()
		},
	}
	registerConfig(&flags, cmd)
	cmd.Flags().StringVar(&format, "format", string(graphDOT), "dot or mermaid")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON (docs/graph-json.md)")
	cmd.Flags().StringVar(&planFile, "plan", "", "draw what the plan in `FILE` would do, rather than the files")
	return cmd
}

// readGraph is that of a saved plan, or else of the files.
func readGraph(a *terminal.Terminal, cmd *cobra.Command, args []string, flags configuration.Options, planFile string) (*graph, error) {
	if planFile != "" {
		if len(args) > 0 {
			return nil, errors.New("a saved plan knows its files; leave out either --plan or the others")
		}
		saved, err := savedplan.Read(cmd.Context(), planFile)
		if err != nil {
			return nil, err
		}
		return newGraph(&saved.Desired, saved.Changes), nil
	}
	l, diags := configuration.Judge(args, flags)
	if err := a.Diagnostics(terminal.FilesOf(l.Source), diags); err != nil {
		return nil, err
	}
	if l.Config.Partial {
		a.Warn("variables without a value decide how many instances there are; those blocks are not drawn. Give the values with --var.")
	}
	return newGraph(&l.Config.Desired, nil), nil
}

// graph is what is declared, one node for each block, and how it depends.
type graph struct {
	nodes map[schema.Address]*graphNode // by base address
	edges map[graphEdge]bool
}

type graphNode struct {
	instances int
	verbs     map[plan.Verb]int // of its instances, with a plan
}

type graphEdge struct {
	from, to schema.Address
	kind     edgeKind
}

// edgeKind is why one node depends on another.
type edgeKind uint8

const (
	edgeWaits edgeKind = iota // depends_on, or a value of the other
	edgeDraws                 // from a pool
	edgePart                  // of a namespace or a group
)

func newGraph(desired *schema.Desired, changes []plan.Change) *graph {
	g := &graph{nodes: map[schema.Address]*graphNode{}, edges: map[graphEdge]bool{}}
	for i := range desired.Namespaces {
		g.node(desired.Namespaces[i].Addr).instances++
	}
	for i := range desired.Reservations {
		g.node(desired.Reservations[i].Addr).instances++
	}
	for i := range desired.Groups {
		g.node(desired.Groups[i].Addr).instances++
	}
	for i := range desired.Jobs {
		g.node(desired.Jobs[i].Addr).instances++
	}
	for i := range changes {
		if c := &changes[i]; c.Verb != plan.VerbNone {
			g.node(c.Addr).verbs[c.Verb]++
		}
	}
	for i := range desired.Groups {
		group := &desired.Groups[i]
		g.edge(group.Addr, schema.ScopedAddress(schema.KindNamespace, group.Namespace), edgePart)
	}
	for i := range desired.Jobs {
		g.jobEdges(&desired.Jobs[i])
	}
	return g
}

func (g *graph) node(addr schema.Address) *graphNode {
	addr = addr.Base()
	n := g.nodes[addr]
	if n == nil {
		n = &graphNode{verbs: map[plan.Verb]int{}}
		g.nodes[addr] = n
	}
	return n
}

// edge adds an edge unless its end is not declared, or it would be a loop.
func (g *graph) edge(from, to schema.Address, kind edgeKind) {
	from, to = from.Base(), to.Base()
	if from != to && g.nodes[to] != nil {
		g.edges[graphEdge{from, to, kind}] = true
	}
}

func (g *graph) jobEdges(j *schema.Job) {
	group := j.Addr.GroupAddress()
	if g.nodes[group] != nil {
		g.edge(j.Addr, group, edgePart)
	} else {
		g.edge(j.Addr, schema.ScopedAddress(schema.KindNamespace, j.Namespace), edgePart)
	}
	if j.Resources.Reservation != "" {
		g.edge(j.Addr, schema.ScopedAddress(schema.KindReservation, j.Resources.Reservation), edgeDraws)
	}
	for _, on := range slices.Concat(j.DependsOn, j.Uses) {
		g.edge(j.Addr, on, edgeWaits)
	}
}

// addresses are those of the nodes, in order.
func (g *graph) addresses() []schema.Address {
	return slices.SortedFunc(maps.Keys(g.nodes), schema.Address.Compare)
}

func (g *graph) sortedEdges() []graphEdge {
	return slices.SortedFunc(maps.Keys(g.edges), func(a, b graphEdge) int {
		if c := a.from.Compare(b.from); c != 0 {
			return c
		}
		if c := a.to.Compare(b.to); c != 0 {
			return c
		}
		return int(a.kind) - int(b.kind)
	})
}
