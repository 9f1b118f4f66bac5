package gcp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// gpuSpec is a spot slice with GPUs.
func gpuSpec(kind string, count int, zone string) schema.SliceSpec {
	return schema.SliceSpec{
		Name: "it", Stack: "stack-a", Owner: schema.Address{Kind: schema.KindJob, Name: "j"}, Provider: schema.ProviderGCP,
		GPU: schema.GPU{Type: kind, Count: count}, Zone: zone, Hosts: 1, Preemptible: true,
	}
}

// TestGPUSlicesOfEveryType: each type of GPUs that Compute Engine has comes up in a zone
// that is listed for it, spot and on demand, and leaves nothing behind.
func TestGPUSlicesOfEveryType(t *testing.T) {
	for _, test := range []struct {
		kind     string
		count    int
		zone     string
		spotOnly bool
	}{
		{"a100", 1, "us-central1-a", false}, {"a100", 16, "us-central1-f", false}, {"a100-80gb", 8, "us-east4-c", false},
		{"h100", 1, "us-central1-a", true}, {"h100", 8, "us-west4-a", false}, {"h200", 8, "us-central1-b", false}, {"b200", 8, "us-central1-b", false},
		{"l4", 4, "us-east1-d", false}, {"t4", 2, "us-west4-b", false}, {"v100", 8, "us-central1-c", false}, {"p100", 4, "us-west1-a", false}, {"p4", 1, "us-east4-a", false},
	} {
		for _, spot := range []bool{true, false} {
			if test.spotOnly && !spot {
				continue
			}
			w := newComputeWorld(t, cloud.Scenario{})
			spec := gpuSpec(test.kind, test.count, test.zone)
			spec.Preemptible = spot
			w.create(spec)
			w.awaits("it", schema.SliceReady, "")
			taken := 0
			for _, c := range w.emulator.Cloud().Capacity() {
				if c.Zone == test.zone && strings.HasPrefix(c.Type, test.kind) {
					taken += c.Used
				}
			}
			if taken != test.count {
				t.Errorf("%s in %s took %v, want %d", spec.GPU, test.zone, w.emulator.Cloud().Capacity(), test.count)
			}
			w.discards("it")
		}
	}
}

// TestGPUErrorKinds: what keeps GPUs from coming up is of the kind by which plan goes to
// another zone, another region, or asks the user.
func TestGPUErrorKinds(t *testing.T) {
	onDemand := func(s *schema.SliceSpec) { s.Preemptible = false }
	for _, test := range []struct {
		name     string
		scenario cloud.Scenario
		spec     schema.SliceSpec
		change   func(*schema.SliceSpec)
		kind     schema.ErrorKind
		says     string
	}{
		{"stockout", cloud.Scenario{Zones: []cloud.Zone{{Name: "us-central1-a", Capacity: map[string]int{"h100": 7}}}},
			gpuSpec("h100", 8, "us-central1-a"), nil, schema.ErrorCapacity, "does not have enough resources available"},
		{"quota of preemptible ones", cloud.Scenario{Quotas: []cloud.Quota{{Region: "us-central1", Type: "h100", Tier: cloud.TierSpot, Limit: 4}}},
			gpuSpec("h100", 8, "us-central1-a"), nil, schema.ErrorQuota, "the quota PREEMPTIBLE_NVIDIA_H100_GPUS in us-central1 is used up"},
		{"quota of the family", cloud.Scenario{Quotas: []cloud.Quota{{Region: "us-central1", Type: "h200", Tier: cloud.TierOnDemand, Limit: 4}}},
			gpuSpec("h200", 8, "us-central1-b"), onDemand, schema.ErrorQuota, "the quota GPUS_PER_GPU_FAMILY of NVIDIA_H200 in us-central1 is used up"},
		{"no quota at all", cloud.Scenario{Quotas: []cloud.Quota{{Region: cloud.RegionGlobal, Type: cloud.TypeGPU}}},
			gpuSpec("t4", 1, "us-central1-a"), nil, schema.ErrorQuota, "the quota GPUS_ALL_REGIONS in all regions is used up"},
		{"a zone without them", cloud.Scenario{}, gpuSpec("b200", 8, "us-central1-a"), nil, schema.ErrorInvalid, "does not exist in zone 'us-central1-a'"},
		{"a number that no machine has", cloud.Scenario{}, gpuSpec("h100", 3, "us-central1-a"), nil, schema.ErrorInvalid, "its machines have 1, 2, 4, 8 of them"},
		{"one H100 on demand", cloud.Scenario{}, gpuSpec("h100", 1, "us-central1-a"), onDemand, schema.ErrorInvalid, "SPOT or FLEX_START"},
		{"a reservation that is used up", cloud.Scenario{}, gpuSpec("b200", 8, "us-central1-b"),
			func(s *schema.SliceSpec) {
				s.Preemptible, s.Cloud.Provisioning, s.Cloud.ReservedIn = false, schema.ProvisioningReserved, "ours"
			},
			schema.ErrorReservation, "reservation"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newComputeWorld(t, test.scenario)
			if test.change != nil {
				test.change(&test.spec)
			}
			err := w.provider.Create(t.Context(), test.spec)
			for range 20 { // an operation that fails is the error of the next creation
				if err != nil {
					break
				}
				w.status("it", 11*time.Second)
				err = w.provider.Create(t.Context(), test.spec)
			}
			if err == nil || providers.KindOf(err) != test.kind || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v of kind %q, want one of %q that says %q", err, providers.KindOf(err), test.kind, test.says)
			}
		})
	}
}

// TestPreemptedGPUSlice: it is listed as preempted, not as failed.
func TestPreemptedGPUSlice(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	w.create(gpuSpec("t4", 1, computeZone))
	w.awaits("it", schema.SliceReady, "")
	w.does(w.emulator.Cloud().Preempt(w.key(cloud.KindInstance), false))
	w.awaits("it", schema.SliceDead, schema.ErrorPreempted)
	w.discards("it")
}
