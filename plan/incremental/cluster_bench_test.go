package incremental

import (
	"fmt"
	"testing"

	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
)

// BenchmarkDiffQueue looks at 1,000 running jobs and 10,000 that wait for their
// turn, of 50 namespaces, beside the same jobs running.
func BenchmarkDiffQueue(b *testing.B) {
	const capacity, jobs, spaces = 1_000, 11_000, 50
	desired := manyJobs(jobs)
	for i := range desired.Jobs {
		desired.Jobs[i].Namespace = fmt.Sprintf("n%d", i%spaces)
	}
	for i := range spaces {
		desired.Namespaces = append(desired.Namespaces, newSpace(fmt.Sprintf("n%d", i), func(n *schema.Namespace) { n.MaxCPU = capacity }))
	}
	for name, limit := range map[string]int{"running": jobs, "waiting": capacity} {
		doc, obs, now := runningWorld(b, limited(desired, limit))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p := reconcile.Diff(&doc.Desired, doc, obs, now); p.Next != doc {
					b.Fatal("something changed")
				}
			}
		})
	}
}
