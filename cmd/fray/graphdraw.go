package main

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

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

// verb is the weightiest of what is planned for a node's instances.
func (n *graphNode) verb() plan.Verb {
	for _, v := range verbsByWeight() {
		if n.verbs[v] > 0 {
			return v
		}
	}
	return plan.VerbNone
}

// lines are a node's label.
func (n *graphNode) lines(addr schema.Address) []string {
	lines := []string{addr.String()}
	if n.instances > 1 {
		lines[0] += fmt.Sprintf(" ×%d", n.instances)
	}
	var planned []string
	for _, v := range verbsByWeight() {
		switch count := n.verbs[v]; {
		case count == 1 && n.instances <= 1:
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

// members are the nodes of each job group and module, by its address, and those
// of none under "".
func (g *graph) members() (groups []string, nodes map[string][]schema.Address) {
	nodes = map[string][]schema.Address{}
	for _, addr := range g.addresses() {
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

// dot writes the graph for Graphviz.
func (g *graph) dot(w *bufio.Writer) {
	fmt.Fprint(w, "digraph fray {\n  rankdir = \"RL\"\n  node [shape = \"box\", style = \"filled,rounded\", fontname = \"Helvetica\"]\n")
	groups, members := g.members()
	for _, addr := range members[""] {
		g.dotNode(w, "  ", addr)
	}
	for _, group := range groups {
		fmt.Fprintf(w, "  subgraph %s {\n    label = %s\n", dotQuoted("cluster_"+group), dotQuoted(group))
		for _, addr := range members[group] {
			g.dotNode(w, "    ", addr)
		}
		fmt.Fprint(w, "  }\n")
	}
	for _, e := range g.sortedEdges() {
		style := ""
		switch e.kind {
		case edgeWaits:
		case edgeDraws:
			style = ` [style = "dashed"]`
		case edgePart:
			style = ` [style = "dotted"]`
		}
		fmt.Fprintf(w, "  %s -> %s%s\n", dotQuoted(e.from.String()), dotQuoted(e.to.String()), style)
	}
	fmt.Fprint(w, "}\n")
}

func (g *graph) dotNode(w *bufio.Writer, indent string, addr schema.Address) {
	n := g.nodes[addr]
	colors := paintOf(n.verb())
	fmt.Fprintf(w, "%s%s [label = %s, fillcolor = %q, color = %q%s]\n", indent, dotQuoted(addr.String()),
		dotQuoted(strings.Join(n.lines(addr), "\n")), colors.fill, colors.line, dotShape(addr.Kind))
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
	case schema.KindJob:
	}
	return ""
}

// dotQuoted is a string as DOT writes it.
func dotQuoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// mermaid writes the graph as a flowchart.
func (g *graph) mermaid(w *bufio.Writer) {
	fmt.Fprint(w, "flowchart RL\n")
	ids := map[schema.Address]string{}
	for i, addr := range g.addresses() {
		ids[addr] = fmt.Sprintf("n%d", i)
	}
	groups, members := g.members()
	used := map[plan.Verb]bool{}
	node := func(indent string, addr schema.Address) {
		n := g.nodes[addr]
		used[n.verb()] = true
		opening, closing := mermaidShape(addr.Kind)
		label := mermaidQuoted(strings.Join(n.lines(addr), "\n"))
		fmt.Fprintf(w, "%s%s%s%s%s:::%s\n", indent, ids[addr], opening, label, closing, mermaidClass(n.verb()))
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
	for _, e := range g.sortedEdges() {
		arrow := "-->"
		switch e.kind {
		case edgeWaits:
		case edgeDraws:
			arrow = "-. draws .->"
		case edgePart:
			arrow = "-.->"
		}
		fmt.Fprintf(w, "  %s %s %s\n", ids[e.from], arrow, ids[e.to])
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
	case schema.KindJob:
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

func (g *graph) asJSON() graphJSON {
	out := graphJSON{FormatVersion: listFormat, Nodes: []nodeJSON{}, Edges: []edgeJSON{}}
	for _, addr := range g.addresses() {
		n := g.nodes[addr]
		out.Nodes = append(out.Nodes, nodeJSON{Address: addr, Kind: addr.Kind, Instances: n.instances, Actions: n.verbs})
	}
	for _, e := range g.sortedEdges() {
		out.Edges = append(out.Edges, edgeJSON{From: e.from, To: e.to, Kind: e.kind.name()})
	}
	return out
}

// name is a kind of edges in JSON.
func (k edgeKind) name() string {
	switch k {
	case edgeDraws:
		return "draws_from"
	case edgePart:
		return "part_of"
	case edgeWaits:
	}
	return "waits_for"
}
