package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/depgraph"
	"github.com/fray-ml/fray/schema"
)

// listFormat is the version of the JSON of graph and workspace list; fields are only ever added to it.
const listFormat = "1.0"

// paint is the style of a node with something planned; all of it is repeated as
// text.
type paint struct{ fill, line string }

func paintOf(v plan.Verb) paint {
	switch v {
	case plan.VerbCreate:
		return paint{"#dcf5e3", "#1a7f37"}
	case plan.VerbUpdate, plan.VerbRestart:
		return paint{"#fff3c4", "#9a6700"}
	case plan.VerbReplace:
		return paint{"#ffe0cc", "#bc4c00"}
	case plan.VerbDelete:
		return paint{"#ffdcd9", "#cf222e"}
	case plan.VerbNone:
	}
	return paint{"#f6f8fa", "#57606a"}
}

// verbsByWeight are the verbs of changes, the one that costs most first.
func verbsByWeight() []plan.Verb {
	return []plan.Verb{plan.VerbDelete, plan.VerbReplace, plan.VerbRestart, plan.VerbUpdate, plan.VerbCreate}
}

// weightiest is the weightiest verb of what is planned for a node's instances.
func weightiest(n *depgraph.Node) plan.Verb {
	for _, v := range verbsByWeight() {
		if n.Verbs[v] > 0 {
			return v
		}
	}
	return plan.VerbNone
}

// labelOf are the lines of a node's label.
func labelOf(n *depgraph.Node, addr schema.Address) []string {
	lines := []string{addr.String()}
	if n.Instances > 1 {
		lines[0] += fmt.Sprintf(" ×%d", n.Instances)
	}
	var planned []string
	for _, v := range verbsByWeight() {
		switch count := n.Verbs[v]; {
		case count == 1 && n.Instances <= 1:
			planned = append(planned, string(v))
		case count > 0:
			planned = append(planned, fmt.Sprintf("%s %d", v, count))
		}
	}
	if len(planned) > 0 {
		lines = append(lines, strings.Join(planned, ", "))
	}
	return lines
}

// membersOf are the nodes of each job group and module, by its address, and those
// of none under "".
func membersOf(g *depgraph.Graph) (groups []string, nodes map[string][]schema.Address) {
	nodes = map[string][]schema.Address{}
	for _, addr := range g.Addresses() {
		group := addr.GroupAddress()
		if addr.Kind == schema.KindJobGroup {
			group = addr
		}
		name := group.String()
		if name == "" {
			name = addr.Module
		}
		if name != "" && nodes[name] == nil {
			groups = append(groups, name)
		}
		nodes[name] = append(nodes[name], addr)
	}
	return groups, nodes
}

// drawDOT writes the graph for Graphviz.
func drawDOT(w *bufio.Writer, g *depgraph.Graph) {
	fmt.Fprint(w, "digraph fray {\n  rankdir = \"RL\"\n  node [shape = \"box\", style = \"filled,rounded\", fontname = \"Helvetica\"]\n")
	groups, members := membersOf(g)
	for _, addr := range members[""] {
		drawNode(w, "  ", g.Nodes[addr], addr)
	}
	for _, group := range groups {
		fmt.Fprintf(w, "  subgraph %s {\n    label = %s\n", dotQuoted("cluster_"+group), dotQuoted(group))
		for _, addr := range members[group] {
			drawNode(w, "    ", g.Nodes[addr], addr)
		}
		fmt.Fprint(w, "  }\n")
	}
	for _, e := range g.SortedEdges() {
		style := ""
		switch e.Kind {
		case depgraph.Waits:
		case depgraph.Draws:
			style = ` [style = "dashed"]`
		case depgraph.Part:
			style = ` [style = "dotted"]`
		}
		fmt.Fprintf(w, "  %s -> %s%s\n", dotQuoted(e.From.String()), dotQuoted(e.To.String()), style)
	}
	fmt.Fprint(w, "}\n")
}

func drawNode(w *bufio.Writer, indent string, n *depgraph.Node, addr schema.Address) {
	colors := paintOf(weightiest(n))
	fmt.Fprintf(w, "%s%s [label = %s, fillcolor = %q, color = %q%s]\n", indent, dotQuoted(addr.String()),
		dotQuoted(strings.Join(labelOf(n, addr), "\n")), colors.fill, colors.line, dotShape(addr.Kind))
}

func dotShape(k schema.Kind) string {
	switch k {
	case schema.KindNamespace:
		return `, shape = "folder"`
	case schema.KindReservation:
		return `, shape = "cylinder"`
	case schema.KindActorService:
		return `, shape = "component"`
	case schema.KindJobGroup:
		return `, shape = "tab"`
	case schema.KindNotification:
		return `, shape = "note"`
	case schema.KindJob:
	}
	return ""
}

// dotQuoted is a string as DOT writes it.
func dotQuoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// drawMermaid writes the graph as a flowchart.
func drawMermaid(w *bufio.Writer, g *depgraph.Graph) {
	fmt.Fprint(w, "flowchart RL\n")
	ids := map[schema.Address]string{}
	for i, addr := range g.Addresses() {
		ids[addr] = fmt.Sprintf("n%d", i)
	}
	groups, members := membersOf(g)
	used := map[plan.Verb]bool{}
	node := func(indent string, addr schema.Address) {
		n := g.Nodes[addr]
		used[weightiest(n)] = true
		opening, closing := mermaidShape(addr.Kind)
		label := mermaidQuoted(strings.Join(labelOf(n, addr), "\n"))
		fmt.Fprintf(w, "%s%s%s%s%s:::%s\n", indent, ids[addr], opening, label, closing, mermaidClass(weightiest(n)))
	}
	for _, addr := range members[""] {
		node("  ", addr)
	}
	for i, group := range groups {
		fmt.Fprintf(w, "  subgraph g%d [%s]\n", i, mermaidQuoted(group))
		for _, addr := range members[group] {
			node("    ", addr)
		}
		fmt.Fprint(w, "  end\n")
	}
	for _, e := range g.SortedEdges() {
		arrow := "-->"
		switch e.Kind {
		case depgraph.Waits:
		case depgraph.Draws:
			arrow = "-. draws .->"
		case depgraph.Part:
			arrow = "-.->"
		}
		fmt.Fprintf(w, "  %s %s %s\n", ids[e.From], arrow, ids[e.To])
	}
	for _, v := range append(verbsByWeight(), plan.VerbNone) {
		if used[v] {
			colors := paintOf(v)
			fmt.Fprintf(w, "  classDef %s fill:%s,stroke:%s,color:#1f2328\n", mermaidClass(v), colors.fill, colors.line)
		}
	}
}

// mermaidClass is a verb as the name of a class.
func mermaidClass(v plan.Verb) string {
	if v == plan.VerbNone {
		return "kept"
	}
	return string(v) + "d" // "delete" is no good name there
}

func mermaidShape(k schema.Kind) (opening, closing string) {
	switch k {
	case schema.KindNamespace, schema.KindJobGroup:
		return "[[", "]]"
	case schema.KindReservation:
		return "[(", ")]"
	case schema.KindActorService:
		return "([", "])"
	case schema.KindJob, schema.KindNotification:
	}
	return "[", "]"
}

// mermaidQuoted is a string as Mermaid writes it.
func mermaidQuoted(s string) string {
	return `"` + strings.NewReplacer("#", "#35;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "\n", "<br>").Replace(s) + `"`
}

// graphJSON is what graph --json prints, as docs/graph-json.md describes it.
type graphJSON struct {
	FormatVersion string     `json:"format_version"`
	Nodes         []nodeJSON `json:"nodes"`
	Edges         []edgeJSON `json:"edges"`
}

type nodeJSON struct {
	Address   schema.Address    `json:"address"`
	Kind      schema.Kind       `json:"kind"`
	Instances int               `json:"instances"`
	Actions   map[plan.Verb]int `json:"actions,omitempty"`
}

type edgeJSON struct {
	From schema.Address `json:"from"`
	To   schema.Address `json:"to"`
	Kind string         `json:"kind"`
}

func graphDocument(g *depgraph.Graph) graphJSON {
	out := graphJSON{FormatVersion: listFormat, Nodes: []nodeJSON{}, Edges: []edgeJSON{}}
	for _, addr := range g.Addresses() {
		n := g.Nodes[addr]
		out.Nodes = append(out.Nodes, nodeJSON{Address: addr, Kind: addr.Kind, Instances: n.Instances, Actions: n.Verbs})
	}
	for _, e := range g.SortedEdges() {
		out.Edges = append(out.Edges, edgeJSON{From: e.From, To: e.To, Kind: edgeName(e.Kind)})
	}
	return out
}

// edgeName is a kind of edges in JSON.
func edgeName(k depgraph.EdgeKind) string {
	switch k {
	case depgraph.Draws:
		return "draws_from"
	case depgraph.Part:
		return "part_of"
	case depgraph.Waits:
	}
	return "waits_for"
}
