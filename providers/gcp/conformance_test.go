package gcp_test

import (
	"context"
	"net/url"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/providers/providertest"
	"github.com/fray-ml/fray/schema"
)

const tpuZone = "us-central2-b"

// tpuPlace is an emulated cloud in which everything takes a moment.
type tpuPlace struct {
	t        *testing.T
	emulator *emulator.Emulator
}

func newTPUPlace(t *testing.T) *tpuPlace {
	t.Helper()
	return &tpuPlace{t: t, emulator: emulated(t, emulator.Config{Cloud: cloud.Config{Scenario: quickly(), Clock: cloud.Faster(20)}})}
}

func (p *tpuPlace) open() providers.Provider {
	p.t.Helper()
	return opened(p.t, gcp.Config{Project: "p", Endpoint: p.emulator.URL()})
}

// running counts the machines of a slice that have power.
func (p *tpuPlace) running(_ context.Context, slice string) int {
	g, ok := p.emulator.Cloud().Group(cloud.Key{Project: "p", Zone: tpuZone, Kind: cloud.KindNode, Name: slice})
	if !ok {
		return 0
	}
	n := 0
	for _, each := range g.Hosts {
		if each.On {
			n++
		}
	}
	return n
}

func (p *tpuPlace) left(slice string) []string {
	var left []string
	for _, each := range p.emulator.Cloud().All() {
		if each.Name == slice {
			left = append(left, "a node that is "+string(each.State))
		}
	}
	for _, each := range p.emulator.Cloud().AllRequests() {
		if each.Name == slice {
			left = append(left, "a queued resource that is "+string(each.State))
		}
	}
	return left
}

// damage makes a node that has the mark of a stack and no spec.
func (p *tpuPlace) damage(slice string) {
	p.t.Helper()
	at, err := url.Parse(p.emulator.URL())
	if err != nil {
		p.t.Fatal(err)
	}
	connection, err := grpc.NewClient(at.Host, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	_, err = tpuapi.NewTpuClient(connection).CreateNode(p.t.Context(), &tpuapi.CreateNodeRequest{
		Parent: "projects/p/locations/" + tpuZone, NodeId: slice, Node: &tpuapi.Node{
			AcceleratorType: "v4-16", RuntimeVersion: "tpu-ubuntu2204-base",
			Labels: map[string]string{"fray-stack": "stack-a", "fray-slice": slice},
		},
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func TestTPUConformance(t *testing.T) {
	for name, change := range map[string]func(*schema.SliceSpec){
		"spot":   func(*schema.SliceSpec) {},
		"demand": func(s *schema.SliceSpec) { s.Preemptible = false },
		"queued": func(s *schema.SliceSpec) { s.Cloud.Provisioning = schema.ProvisioningQueued },
		"changing": func(s *schema.SliceSpec) {
			s.Cloud.Live = schema.CloudLive{Labels: "a=b", Tags: "x", InternalIPs: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			providertest.Run(t, func(t *testing.T) providertest.Harness {
				p := newTPUPlace(t)
				spec := schema.SliceSpec{
					Provider: schema.ProviderGCP, TPU: "v4-16", Zone: tpuZone, Hosts: 2, Preemptible: true,
					Cloud: schema.CloudSpec{Engine: schema.EngineTPU},
				}
				change(&spec)
				return providertest.Harness{
					Provider: p.open(), Reopen: p.open, Spec: spec, Reported: p.running, Left: p.left, Damage: p.damage,
					// It dies before it has learnt that it was accepted.
					CrashCreate: func(spec schema.SliceSpec) { _ = p.open().Create(t.Context(), spec) },
				}
			})
		})
	}
}
