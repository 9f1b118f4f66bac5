package main

import (
	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// listFormat is the version of what the verbs of this file print; fields are only ever
// added to it.
const listFormat = "1.0"

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

// stateListJSON is what state list --json prints, as docs/state-list-json.md describes it.
type stateListJSON struct {
	FormatVersion string          `json:"format_version"`
	Lineage       string          `json:"lineage"`
	Serial        uint64          `json:"serial"`
	Resources     []listedAddress `json:"resources"`
}

type listedAddress struct {
	Address  schema.Address   `json:"address"`
	Kind     schema.Kind      `json:"kind"`
	Status   schema.JobStatus `json:"status,omitempty"`
	Launched bool             `json:"launched,omitempty"`
}

func stateListAsJSON(doc *state.Document) stateListJSON {
	out := stateListJSON{FormatVersion: listFormat, Lineage: doc.Lineage, Serial: doc.Serial, Resources: []listedAddress{}}
	for _, addr := range recordedAddresses(doc) {
		listed := listedAddress{Address: addr, Kind: addr.Kind}
		if j := doc.Jobs[addr]; j != nil {
			listed.Status, listed.Launched = j.Status, j.Launch != nil
		} else {
			listed.Launched = doc.Resources[addr].Launch != nil
		}
		out.Resources = append(out.Resources, listed)
	}
	return out
}

// recordedAddresses are those that the state has records of, in order.
func recordedAddresses(doc *state.Document) []schema.Address {
	var recorded []schema.Address
	for _, addr := range configuration.AllAddresses(doc, nil) {
		_, job := doc.Jobs[addr]
		_, resource := doc.Resources[addr]
		if job || resource {
			recorded = append(recorded, addr)
		}
	}
	return recorded
}

// workspaceListJSON is what workspace list --json prints, as docs/workspace-list-json.md
// describes it.
type workspaceListJSON struct {
	FormatVersion string            `json:"format_version"`
	Current       string            `json:"current,omitempty"`
	Workspaces    []listedWorkspace `json:"workspaces"`
}

type listedWorkspace struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
}

// workspacesAsJSON are workspaces, of which current is the one that commands act in, ""
// where that is not known.
func workspacesAsJSON(names []string, current string) workspaceListJSON {
	out := workspaceListJSON{FormatVersion: listFormat, Current: current, Workspaces: []listedWorkspace{}}
	for _, name := range names {
		out.Workspaces = append(out.Workspaces, listedWorkspace{Name: name, Current: name == current})
	}
	return out
}
