package emulator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// BenchmarkListNodes lists 2,000 nodes with 4 KiB of metadata each over a real
// connection, beside a list of none.
func BenchmarkListNodes(b *testing.B) {
	for _, count := range []int{0, 2000} {
		b.Run(fmt.Sprintf("nodes=%d", count), func(b *testing.B) {
			_, clock, connection := serve(b, cloud.Scenario{CreateLimit: count + 1})
			api := tpuapi.NewTpuClient(connection)
			node := spot()
			node.Metadata["fray-spec"] = strings.Repeat("x", 4<<10)
			for i := range count {
				r := &tpuapi.CreateNodeRequest{Parent: parent, NodeId: fmt.Sprintf("n%04d", i), Node: node}
				if _, err := api.CreateNode(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
			clock.Advance(time.Minute)
			for b.Loop() {
				listed, token := 0, ""
				for more := true; more; more = token != "" {
					r, err := api.ListNodes(b.Context(), &tpuapi.ListNodesRequest{Parent: anyZone, PageToken: token})
					if err != nil {
						b.Fatal(err)
					}
					listed, token = listed+len(r.GetNodes()), r.GetNextPageToken()
				}
				if listed != count {
					b.Fatalf("the list has %d nodes, want %d", listed, count)
				}
			}
		})
	}
}
