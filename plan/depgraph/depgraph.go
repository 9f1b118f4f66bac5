// Package depgraph is what is declared, one node for each block, and how it depends. It
// leaves out how that is drawn. Start with [New].
package depgraph

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// Graph is what is declared, one node for each block, and how it depends.
type Graph struct {
	Nodes map[schema.Address]*Node // by base address
	Edges map[Edge]bool
}

// Node is a block.
type Node struct {
	Instances int
	Verbs     map[plan.Verb]int // of its instances, with a plan
}

// Edge goes from what depends to what it depends on.
type Edge struct {
	From, To schema.Address
	Kind     EdgeKind
}

// EdgeKind is why one node depends on another.
type EdgeKind uint8

// The kinds of edges.
const (
	Waits EdgeKind = iota // depends_on, or a value of the other
	Draws                 // from a pool
	Part                  // of a namespace or a group
)

// New is the graph of what is declared, with what is planned for it.
func New(desired *schema.Desired, changes []plan.Change) *Graph {
	g := &Graph{Nodes: map[schema.Address]*Node{}, Edges: map[Edge]bool{}}
	for i := range desired.Namespaces {
		g.node(desired.Namespaces[i].Addr).Instances++
	}
	for i := range desired.Reservations {
		g.node(desired.Reservations[i].Addr).Instances++
	}
	for i := range desired.Groups {
		g.node(desired.Groups[i].Addr).Instances++
	}
	for i := range desired.Jobs {
		g.node(desired.Jobs[i].Addr).Instances++
	}
	for i := range desired.Notifications {
		g.node(desired.Notifications[i].Addr).Instances++
	}
	for i := range changes {
		if c := &changes[i]; c.Verb != plan.VerbNone {
			g.node(c.Addr).Verbs[c.Verb]++
		}
	}
	for i := range desired.Groups {
		group := &desired.Groups[i]
		g.edge(group.Addr, schema.ScopedAddress(schema.KindNamespace, group.Namespace), Part)
	}
	for i := range desired.Reservations {
		if pool := desired.Reservations[i].Addr; g.Nodes[pool.GroupAddress()] != nil {
			g.edge(pool, pool.GroupAddress(), Part)
		}
	}
	for i := range desired.Jobs {
		g.jobEdges(&desired.Jobs[i])
	}
	return g
}

func (g *Graph) node(addr schema.Address) *Node {
	addr = addr.Base()
	n := g.Nodes[addr]
	if n == nil {
		n = &Node{Verbs: map[plan.Verb]int{}}
		g.Nodes[addr] = n
	}
	return n
}

// edge adds an edge unless its end is not declared, or it would be a loop.
func (g *Graph) edge(from, to schema.Address, kind EdgeKind) {
	from, to = from.Base(), to.Base()
	if from != to && g.Nodes[to] != nil {
		g.Edges[Edge{from, to, kind}] = true
	}
}

func (g *Graph) jobEdges(j *schema.Job) {
	group := j.Addr.GroupAddress()
	if g.Nodes[group] != nil {
		g.edge(j.Addr, group, Part)
	} else {
		g.edge(j.Addr, schema.ScopedAddress(schema.KindNamespace, j.Namespace), Part)
	}
	if j.Resources.Reservation != "" {
		g.edge(j.Addr, schema.ScopedAddress(schema.KindReservation, j.Resources.Reservation), Draws)
	}
	for _, on := range slices.Concat(j.DependsOn, j.Uses) {
		g.edge(j.Addr, on, Waits)
	}
}

// Addresses are those of the nodes, in order.
func (g *Graph) Addresses() []schema.Address {
	return slices.SortedFunc(maps.Keys(g.Nodes), schema.Address.Compare)
}

// SortedEdges are the edges in order.
func (g *Graph) SortedEdges() []Edge {
	return slices.SortedFunc(maps.Keys(g.Edges), func(a, b Edge) int {
		if c := a.From.Compare(b.From); c != 0 {
			return c
		}
		if c := a.To.Compare(b.To); c != 0 {
			return c
		}
		return int(a.Kind) - int(b.Kind)
	})
}
