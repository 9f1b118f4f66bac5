package web

import (
	"github.com/fray-ml/fray/plan/depgraph"
	"github.com/fray-ml/fray/schema"
)

// GraphAnswer is the answer of /api/v1/graph: what is declared, as `fray graph` draws it.
type GraphAnswer struct {
	Version uint64      `json:"version"`
	Nodes   []GraphNode `json:"nodes"` // one for each block, in order of their addresses
	Edges   []GraphEdge `json:"edges"`
}

// GraphNode is one block.
type GraphNode struct {
	Address   schema.Address `json:"address"`
	Kind      schema.Kind    `json:"kind"`
	Instances int            `json:"instances"`
	// Jobs are its instances by status, of a job or a service.
	Jobs map[schema.JobStatus]int `json:"jobs,omitempty"`
	// ID is that of the only job of a node.
	ID string `json:"id,omitempty"`
}

// GraphEdge goes from what depends to what it depends on.
type GraphEdge struct {
	From schema.Address `json:"from"`
	To   schema.Address `json:"to"`
	Kind EdgeKind       `json:"kind"`
}

// EdgeKind is why one block depends on another, of a closed set.
type EdgeKind string

// The kinds of edges.
const (
	EdgeWaits EdgeKind = "waits" // for its end, its readiness or a value of it
	EdgeDraws EdgeKind = "draws" // slices from a reservation
	EdgePart  EdgeKind = "part"  // of a namespace or a group
)

func edgeKind(k depgraph.EdgeKind) EdgeKind {
	switch k {
	case depgraph.Draws:
		return EdgeDraws
	case depgraph.Part:
		return EdgePart
	case depgraph.Waits:
	}
	return EdgeWaits
}

// graphJob is a declared job with its status.
type graphJob struct {
	addr   schema.Address
	id     string
	status schema.JobStatus
}

// graphOf is the graph of what is declared, with the status of its jobs.
func graphOf(desired *schema.Desired, jobs []graphJob) GraphAnswer {
	g := depgraph.New(desired, nil)
	out := GraphAnswer{Nodes: []GraphNode{}, Edges: []GraphEdge{}}
	at := map[schema.Address]int{}
	for _, addr := range g.Addresses() {
		at[addr] = len(out.Nodes)
		out.Nodes = append(out.Nodes, GraphNode{Address: addr, Kind: addr.Kind, Instances: g.Nodes[addr].Instances})
	}
	for _, j := range jobs {
		i, declared := at[j.addr.Base()]
		if !declared {
			continue
		}
		n := &out.Nodes[i]
		if n.Jobs == nil {
			n.Jobs = map[schema.JobStatus]int{}
		}
		if n.Jobs[j.status]++; n.Instances == 1 {
			n.ID = j.id
		}
	}
	for _, e := range g.SortedEdges() {
		out.Edges = append(out.Edges, GraphEdge{From: e.From, To: e.To, Kind: edgeKind(e.Kind)})
	}
	return out
}
