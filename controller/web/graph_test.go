package web

import (
	"slices"
	"testing"

	"github.com/fray-ml/fray/schema"
)

// declared is a running stack with a dependency of each kind.
func declared() *Snapshot {
	snap := running()
	addr := func(kind schema.Kind, name string) schema.Address { return schema.Address{Kind: kind, Name: name} }
	root, solo := localJob("root", nil), localJob("solo", nil)
	root.DependsOn, root.Namespace, root.Resources.Reservation = []schema.Address{solo.Addr}, "lab", "pool"
	snap.Doc.Desired = schema.Desired{
		Jobs:         []schema.Job{root, solo},
		Namespaces:   []schema.Namespace{{Addr: addr(schema.KindNamespace, "lab")}},
		Reservations: []schema.Reservation{{Addr: addr(schema.KindReservation, "pool")}},
	}
	for i := range 2 {
		replica := localJob("server", nil)
		replica.Addr = schema.Address{Kind: schema.KindActorService, Name: "server", Key: schema.IntKey(i)}
		snap.Doc.Desired.Jobs = append(snap.Doc.Desired.Jobs, replica)
	}
	return snap
}

func TestGraph(t *testing.T) {
	got := decode[GraphAnswer](t, pageOf(t, declared(), nil), "/api/v1/graph")
	var edges []string
	for _, e := range got.Edges {
		edges = append(edges, e.From.String()+" "+string(e.Kind)+" "+e.To.String())
	}
	if want := []string{"job.root part namespace.lab", "job.root draws reservation.pool", "job.root waits job.solo", "job.solo part namespace.lab", "actor_service.server part namespace.lab"}; !slices.Equal(edges, want) {
		t.Errorf("got edges %q, want %q", edges, want)
	}
	nodes := map[string]GraphNode{}
	for _, n := range got.Nodes {
		nodes[n.Address.String()] = n
	}
	if len(nodes) != 5 || nodes["job.root"].ID != "id-root" || nodes["job.root"].Jobs[schema.JobRunning] != 1 || nodes["actor_service.server"].Instances != 2 {
		t.Errorf("got nodes %+v", nodes)
	}
}
