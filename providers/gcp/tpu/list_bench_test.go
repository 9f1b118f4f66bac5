package tpu

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/host"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

const repliedNodes = 2000

// repliedNode is a node with everything in its metadata that real ones have.
func repliedNode(b *testing.B, name string) *tpuapi.Node {
	b.Helper()
	spec := schema.SliceSpec{
		Name: name, Stack: "stack-a", Owner: schema.Address{Kind: schema.KindJob, Name: "j"}, Provider: schema.ProviderGCP,
		TPU: "v5litepod-16", Zone: "us-west4-a", Hosts: 4, Preemptible: true,
	}
	text, err := mark.Encode(spec)
	if err != nil {
		b.Fatal(err)
	}
	metadata, err := host.Bootstrap{Store: "gs://acme-fray/rl/math", AgentSHA256: strings.Repeat("ab", 32)}.Metadata(spec)
	if err != nil {
		b.Fatal(err)
	}
	metadata[mark.SpecKey] = text
	return &tpuapi.Node{
		Name: "projects/acme/locations/us-west4-a/nodes/" + name, State: tpuapi.Node_READY, AcceleratorType: spec.TPU,
		Labels: mark.Labels(spec), Metadata: metadata,
		NetworkEndpoints: []*tpuapi.NetworkEndpoint{{IpAddress: "10.0.0.1"}, {IpAddress: "10.0.0.2"}, {IpAddress: "10.0.0.3"}, {IpAddress: "10.0.0.4"}},
	}
}

func cpuSoFar(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkInventoryOfReplies is our end alone, from the replies on, against a
// reading of every spec anew.
func BenchmarkInventoryOfReplies(b *testing.B) {
	var pages [][]byte
	for from := 0; from < repliedNodes; from += pageSize {
		page := &tpuapi.ListNodesResponse{}
		for i := range pageSize {
			page.Nodes = append(page.Nodes, repliedNode(b, fmt.Sprintf("s-%04d", from+i)))
		}
		encoded, err := proto.Marshal(page)
		if err != nil {
			b.Fatal(err)
		}
		pages = append(pages, encoded)
	}
	for name, anew := range map[string]bool{"remembered": false, "anew": true} {
		b.Run(name, func(b *testing.B) {
			t := &Engine{project: "acme"}
			began := cpuSoFar(b)
			for b.Loop() {
				if anew {
					t.specs = mark.Specs{}
				}
				l := &allSlices{slices: map[engine.Place]*slice{}}
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
				if len(found.Slices) != repliedNodes || found.Slices[0].Phase != schema.SliceReady {
					b.Fatalf("%d slices", len(found.Slices))
				}
			}
			b.ReportMetric(float64(cpuSoFar(b)-began)/1e6/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(len(pages[0])+len(pages[1]))/1e6, "MB")
		})
	}
}
