package tpu

import (
	"fmt"
	"testing"

	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// Where the service hands out the same messages until they change, a slice is read again
// when its message is another one, and forgotten when it is gone, for another stack too.
func TestListsReadWhatChanged(t *testing.T) {
	node := func(name string, state tpuapi.Node_State) *tpuapi.Node {
		spec := schema.SliceSpec{
			Name: name, Stack: "stack-a", Owner: schema.Address{Kind: schema.KindJob, Name: "j"}, Provider: schema.ProviderGCP,
			TPU: "v5litepod-16", Zone: "us-west4-a", Hosts: 4,
		}
		text, err := mark.Encode(spec)
		if err != nil {
			t.Fatal(err)
		}
		return &tpuapi.Node{
			Name: "projects/acme/locations/us-west4-a/nodes/" + name, State: state, AcceleratorType: spec.TPU,
			Labels: mark.Labels(spec), Metadata: map[string]string{mark.SpecKey: text},
		}
	}
	e := &Engine{project: "acme", seen: seenSlices{on: true}}
	list := func(stack string, nodes ...*tpuapi.Node) engine.Listing {
		l := &allSlices{slices: map[engine.Place]*slice{}, known: e.seen.begin(stack)}
		defer l.known.done()
		for _, n := range nodes {
			l.node(n)
		}
		return e.own(l, stack)
	}
	one, two := node("one", tpuapi.Node_READY), node("two", tpuapi.Node_CREATING)
	first, second := list("stack-a", one, two), list("stack-a", one, two)
	for i := range 2 {
		if first.Slices[i] != second.Slices[i] {
			t.Errorf("%s was read again without a change", first.Slices[i].Spec.Name)
		}
	}
	two = node("two", tpuapi.Node_READY)
	third := list("stack-a", one, two)
	if third.Slices[0] != first.Slices[0] || third.Slices[1].Phase != schema.SliceReady || second.Slices[1].Phase != schema.SliceCreating {
		t.Errorf("got phases %s and %s, before that %s; want one as it was, two ready, before that creating",
			third.Slices[0].Phase, third.Slices[1].Phase, second.Slices[1].Phase)
	}
	if twice := list("stack-a", one, two, one); len(twice.Slices) != 2 {
		t.Errorf("got %d slices of two nodes, one of which is listed twice", len(twice.Slices))
	}
	if list("stack-a", two); len(e.seen.last) != 1 {
		t.Errorf("%d slices are remembered, want the one that is there", len(e.seen.last))
	}
	if other := list("stack-b", two); len(other.Slices) != 0 || len(other.Others) != 1 {
		t.Errorf("another stack has %d slices, want none", len(other.Slices))
	}
}

// Names of resources have six parts.
func TestZoneAndID(t *testing.T) {
	for name, want := range map[string][2]string{
		"projects/p/locations/us-west4-a/nodes/n":           {"us-west4-a", "n"},
		"projects/p/locations/us-west4-a/queuedResources/q": {"us-west4-a", "q"},
		"n":                               {"", "n"},
		"projects/p/locations/z/nodes":    {"", "projects/p/locations/z/nodes"},
		"projects/p/locations/z/nodes/n/": {"", "projects/p/locations/z/nodes/n/"},
	} {
		if zone, id := zoneAndID(name); zone != want[0] || id != want[1] {
			t.Errorf("%s: got %s", name, fmt.Sprint(zone, " ", id))
		}
	}
}
