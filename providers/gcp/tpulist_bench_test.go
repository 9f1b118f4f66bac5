package gcp

import (
	"fmt"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/host"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

const benchSlices = 2000

// bootedNode is a node with everything in its metadata that real ones have.
func bootedNode(b *testing.B, name string) *tpuapi.Node {
	b.Helper()
	spec := tpuSpec(name)
	n := nodeOf(b, spec)
	boot, err := host.Bootstrap{Store: "gs://acme-fray/rl/math", AgentSHA256: strings.Repeat("ab", 32)}.Metadata(spec)
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
