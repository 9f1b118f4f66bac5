package gcp_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	compute "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/providers/gcp/emulator"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/providertest"
	"github.com/fray-ml/fray/schema"
)

const computeZone = "us-central1-a"

// quickly is a calm cloud in which everything takes a moment.
func quickly() cloud.Scenario {
	moment := cloud.Range{Min: time.Millisecond, Max: 20 * time.Millisecond}
	return cloud.Scenario{CreateLimit: 10_000, Conditions: cloud.Conditions{
		Provisioning: moment, Boot: moment, Deletion: cloud.Range{Min: 50 * time.Millisecond, Max: 100 * time.Millisecond}, StockoutAfter: moment,
	}}
}

// computeHarness is a provider whose slices are made by Compute Engine.
func computeHarness(t *testing.T, spec schema.SliceSpec) providertest.Harness {
	t.Helper()
	e := emulated(t, emulator.Config{Cloud: cloud.Config{Scenario: quickly()}})
	open := func() providers.Provider {
		return opened(t, gcp.Config{Project: "p", Endpoint: e.URL(), CreatesPerMinute: 1000, ReadsPerMinute: 60_000})
	}
	kind := cloud.KindInstance
	if spec.Hosts > 1 {
		kind = cloud.KindGroup
	}
	return providertest.Harness{
		Provider: open(), Reopen: open, Spec: spec,
		Reported: func(_ context.Context, slice string) int {
			g, ok := e.Cloud().Group(cloud.Key{Project: "p", Zone: spec.Zone, Kind: kind, Name: slice})
			if !ok {
				return 0
			}
			up := 0
			for i := range g.Hosts {
				if g.Hosts[i].On {
					up++
				}
			}
			return up
		},
		Left: func(slice string) []string { return leftOf(t, e.URL(), slice) },
		CrashCreate: func(spec schema.SliceSpec) {
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("killed"))
			_ = open().Create(ctx, spec) // every single call: see TestComputeCreationCutShortAnywhere…
		},
	}
}

// leftOf is what Compute Engine still has of a slice.
func leftOf(t *testing.T, url, slice string) []string {
	t.Helper()
	ctx := context.Background() // it is asked while a test ends
	options := []option.ClientOption{option.WithEndpoint(url), option.WithoutAuthentication()}
	instances, err := compute.NewInstancesRESTClient(ctx, options...)
	if err != nil {
		t.Fatal(err)
	}
	ends(t, instances)
	templates, err := compute.NewInstanceTemplatesRESTClient(ctx, options...)
	if err != nil {
		t.Fatal(err)
	}
	ends(t, templates)
	policies, err := compute.NewResourcePoliciesRESTClient(ctx, options...)
	if err != nil {
		t.Fatal(err)
	}
	ends(t, policies)
	groups, err := compute.NewInstanceGroupManagersRESTClient(ctx, options...)
	if err != nil {
		t.Fatal(err)
	}
	ends(t, groups)
	var left []string
	left = append(left, namesOf(t, "instance", instances.List(ctx, &computepb.ListInstancesRequest{Project: "p", Zone: computeZone}).Next)...)
	left = append(left, namesOf(t, "group", groups.List(ctx, &computepb.ListInstanceGroupManagersRequest{Project: "p", Zone: computeZone}).Next)...)
	left = append(left, namesOf(t, "template", templates.List(ctx, &computepb.ListInstanceTemplatesRequest{Project: "p"}).Next)...)
	left = append(left, namesOf(t, "policy", policies.List(ctx, &computepb.ListResourcePoliciesRequest{Project: "p", Region: "us-central1"}).Next)...)
	return slices.DeleteFunc(left, func(each string) bool { return !hasName(each, slice) })
}

func hasName(each, slice string) bool {
	_, name, _ := strings.Cut(each, " ")
	return name == slice || strings.HasPrefix(name, slice+"-")
}

func namesOf[T interface{ GetName() string }](t *testing.T, kind string, next func() (T, error)) []string {
	t.Helper()
	var names []string
	for {
		each, err := next()
		if errors.Is(err, iterator.Done) {
			return names
		}
		if err != nil {
			t.Fatalf("list what is left of kind %s: %v", kind, err)
		}
		names = append(names, kind+" "+each.GetName())
	}
}

func TestComputeConformanceOneMachine(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.Harness {
		return computeHarness(t, schema.SliceSpec{
			Provider: schema.ProviderGCP, CPU: 2, Memory: 4 << 30, Zone: computeZone, Hosts: 1,
			Cloud: schema.CloudSpec{Engine: schema.EngineGCE},
		})
	})
}

func TestComputeConformanceGroup(t *testing.T) {
	providertest.Run(t, func(t *testing.T) providertest.Harness {
		return computeHarness(t, schema.SliceSpec{
			Provider: schema.ProviderGCP, TPU: "v5p-16", Zone: computeZone, Hosts: 2, Preemptible: true,
			Cloud: schema.CloudSpec{Engine: schema.EngineGCE},
		})
	})
}
