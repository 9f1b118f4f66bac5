package depgraph

import (
	"strings"
	"testing"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

func TestOneNodeForEachBlock(t *testing.T) {
	var desired schema.Desired
	for i := range 5000 {
		addr := schema.Address{Kind: schema.KindJob, Name: "j" + strings.Repeat("x", i%50), Key: schema.IntKey(i)}
		desired.Jobs = append(desired.Jobs, schema.Job{Addr: addr, Namespace: "none", DependsOn: []schema.Address{{Kind: schema.KindJob, Name: "jx"}}})
	}
	changes := []plan.Change{{Addr: schema.Address{Kind: schema.KindJob, Name: "gone"}, Verb: plan.VerbDelete}}
	g := New(&desired, changes)
	if len(g.Nodes) != 51 || len(g.Edges) != 49 {
		t.Errorf("%d nodes and %d edges, want 51 and 49: one for each block, and none to itself", len(g.Nodes), len(g.Edges))
	}
	if n := g.Nodes[schema.Address{Kind: schema.KindJob, Name: "jx"}]; n.Instances != 100 {
		t.Errorf("%d instances, want 100", n.Instances)
	}
}
