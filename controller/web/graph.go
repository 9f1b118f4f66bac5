package web

import (
	"net/http"

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

func (s *Server) graph(w http.ResponseWriter, _ *http.Request) {
	f := s.current.Load()
	g := depgraph.New(&f.snap.Doc.Desired, nil)
	out := GraphAnswer{Version: f.version, Nodes: []GraphNode{}, Edges: []GraphEdge{}}
	at := map[schema.Address]int{}
	for _, addr := range g.Addresses() {
		at[addr] = len(out.Nodes)
		out.Nodes = append(out.Nodes, GraphNode{Address: addr, Kind: addr.Kind, Instances: g.Nodes[addr].Instances})
	}
	for _, e := range f.look().jobs {
		i, declared := at[e.addr.Base()]
		if e.past || !declared || e.job.Launch != nil {
			continue
		}
		n := &out.Nodes[i]
		if n.Jobs == nil {
			n.Jobs = map[schema.JobStatus]int{}
		}
		if n.Jobs[e.job.Status]++; n.Instances == 1 {
			n.ID = e.job.ID
		}
	}
	for _, e := range g.SortedEdges() {
		out.Edges = append(out.Edges, GraphEdge{From: e.From, To: e.To, Kind: edgeKind(e.Kind)})
	}
	answer(w, http.StatusOK, out)
}
