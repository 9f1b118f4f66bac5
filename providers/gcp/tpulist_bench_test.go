package gcp

import (
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

const benchSlices = 2000

// bootedNode is a node with everything in its metadata that real ones have.
func bootedNode(b *testing.B, name string) *tpuapi.Node {
	b.Helper()
	spec := tpuSpec(name)
	n := nodeOf(b, spec)
	boot, err := Bootstrap{Store: "gs://acme-fray/rl/math", AgentSHA256: strings.Repeat("ab", 32)}.Metadata(spec)
	if err != nil {
		b.Fatal(err)
	}
	maps.Copy(n.Metadata, boot)
	n.NetworkEndpoints = []*tpuapi.NetworkEndpoint{{IpAddress: "10.0.0.1"}, {IpAddress: "10.0.0.2"}, {IpAddress: "10.0.0.3"}, {IpAddress: "10.0.0.4"}}
	return n
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkInventory lists 2,000 nodes over a real connection. The CPU is that of
// both its ends: cpu-ms/op less what the service's end alone takes is ours.
func BenchmarkInventory(b *testing.B) {
	s := newTPUService(b)
	for i := range benchSlices {
		name := fmt.Sprintf("s-%04d", i)
		s.setNode(name, bootedNode(b, name))
	}
	p := s.provider(b)
	began, calls := cpuTime(b), len(s.calls)
	for b.Loop() {
		inventory, err := p.Inventory(b.Context(), "stack-a")
		if err != nil || len(inventory.Slices) != benchSlices {
			b.Fatalf("%d slices, %v", len(inventory.Slices), err)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-began)/1e6/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(len(s.calls)-calls)/float64(b.N), "calls/op")
}

// BenchmarkInventoryOfReplies is our end alone, from the replies on, against a
// reading of every spec anew.
func BenchmarkInventoryOfReplies(b *testing.B) {
	var pages [][]byte
	for from := 0; from < benchSlices; from += tpuPageSize {
		page := &tpuapi.ListNodesResponse{}
		for i := range tpuPageSize {
			page.Nodes = append(page.Nodes, bootedNode(b, fmt.Sprintf("s-%04d", from+i)))
		}
		encoded, err := proto.Marshal(page)
		if err != nil {
			b.Fatal(err)
		}
		pages = append(pages, encoded)
	}
	for name, anew := range map[string]bool{"remembered": false, "anew": true} {
		b.Run(name, func(b *testing.B) {
			t := &tpu{project: testProject}
			began := cpuTime(b)
			for b.Loop() {
				if anew {
					t.specs.last = nil
				}
				l := &tpuListing{slices: map[place]*tpuSlice{}}
				for _, each := range pages {
					page := &tpuapi.ListNodesResponse{}
					if err := proto.Unmarshal(each, page); err != nil {
						b.Fatal(err)
					}
					for _, n := range page.GetNodes() {
						l.slice(n.GetName()).node = n
					}
				}
				found := t.own(l, "stack-a")
				if len(found.slices) != benchSlices || found.slices[0].Phase != schema.SliceReady {
					b.Fatalf("%d slices", len(found.slices))
				}
			}
			b.ReportMetric(float64(cpuTime(b)-began)/1e6/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(len(pages[0])+len(pages[1]))/1e6, "MB")
		})
	}
}
