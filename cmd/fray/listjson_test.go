package main

import (
	"bytes"
	"testing"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/depgraph"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/surgery"
	"github.com/fray-ml/fray/terminal"
)

func printed(t *testing.T, v any) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := terminal.New(nil, &out, nil).PrintJSON(v); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestGraphJSONDoc(t *testing.T) {
	prep := schema.Address{Kind: schema.KindJob, Name: "prep", Key: schema.IntKey(0)}
	train := schema.Address{Kind: schema.KindJob, Name: "train"}
	desired := &schema.Desired{
		Namespaces:   []schema.Namespace{{Addr: schema.ScopedAddress(schema.KindNamespace, "rl")}},
		Reservations: []schema.Reservation{{Addr: schema.ScopedAddress(schema.KindReservation, "pool")}},
		Jobs: []schema.Job{
			{Addr: prep, Namespace: "rl"},
			{Addr: train, Namespace: "rl", Resources: schema.Resources{Reservation: "pool"}, DependsOn: []schema.Address{prep.Base()}},
		},
	}
	g := depgraph.New(desired, []plan.Change{{Addr: train, Verb: plan.VerbRestart}, {Addr: prep, Verb: plan.VerbNone}})
	readFormatDoc(t, "graph-json.md").check(t, printed(t, graphDocument(g)), "nodes[].actions")
}

func TestStateListJSONDoc(t *testing.T) {
	doc := shownState()
	addr := schema.LaunchedAddress(schema.KindJob, "lab", "", "sweep")
	launched := *doc.Jobs[schema.Address{Kind: schema.KindJob, Group: "math", Name: "trainer", Key: schema.StringKey("a")}]
	launched.Launch = &state.Launch{Name: "sweep"}
	doc.Jobs[addr] = &launched
	readFormatDoc(t, "state-list-json.md").check(t, printed(t, surgery.ListJSON(doc)))
}

func TestWorkspaceListJSONDoc(t *testing.T) {
	readFormatDoc(t, "workspace-list-json.md").check(t, printed(t, workspacesAsJSON([]string{"default", "trial"}, "trial")))
}
