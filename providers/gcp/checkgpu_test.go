package gcp_test

import (
	"testing"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// TestCheckOfGPUs: what cannot work of a job with GPUs is told before anything is made, and
// points at the attribute to correct.
func TestCheckOfGPUs(t *testing.T) {
	gpus := func(kind string, count int, change ...func(*schema.Provider, *schema.Resources)) func(*schema.Provider, *schema.Resources) {
		return func(p *schema.Provider, r *schema.Resources) {
			p.Zones = []string{"us-central1-a", "us-east4-a"}
			r.TPU, r.GPU = "", schema.GPU{Type: kind, Count: count}
			for _, each := range change {
				each(p, r)
			}
		}
	}
	onDemand := func(_ *schema.Provider, r *schema.Resources) { r.Preemptible = false }
	in := func(zones ...string) func(*schema.Provider, *schema.Resources) {
		return func(_ *schema.Provider, r *schema.Resources) { r.Zones = zones }
	}
	of := func(machineType string) func(*schema.Provider, *schema.Resources) {
		return func(_ *schema.Provider, r *schema.Resources) { r.MachineType = machineType }
	}
	quotas := func(all ...cloud.Quota) cloud.Scenario { return cloud.Scenario{Quotas: all} }
	for _, c := range []checkCase{
		{name: "nothing is wrong", asks: gpus("h100", 8)},
		{name: "nothing is wrong with attached GPUs", asks: gpus("t4", 2)},
		{name: "nothing is wrong with a machine type of one's own", asks: gpus("h100", 8, of("a3-megagpu-8g"), in("us-central1-a"))},
		{
			name: "a number that no machine has", asks: gpus("h100", 3),
			want: []string{"error job.train#resources.gpu.type Type is not offered: No machine type of Compute Engine has 3 h100: its machines have 1, 2, 4, 8 of them."},
		},
		{
			name: "a type that fray's hosts cannot have", asks: gpus("gb200", 4),
			want: []string{"error job.train#resources.gpu.type Type is not offered: No machine type of Compute Engine is known with gb200"},
		},
		{
			name: "zones without the machine type", asks: gpus("b200", 8, in("us-central1-a", "us-central1-b")),
			want: []string{"warning job.train#resources.zones Type is not offered: a4-highgpu-8g cannot be had in us-central1-a"},
		},
		{
			name: "no zone with the GPUs to attach", asks: gpus("t4", 1, in("us-east5-a")),
			want: []string{"error job.train#resources.gpu.type Type is not offered: n1-standard-8 with 1 nvidia-tesla-t4 cannot be had in us-east5-a…It is offered in asia-east1-a, asia-east1-c"},
		},
		{
			name: "a machine type with other GPUs", asks: gpus("h100", 4, of("a3-highgpu-8g"), in("us-central1-a")),
			want: []string{"error job.train#resources.machine_type Machine type has other GPUs: Machines of the type a3-highgpu-8g have 8 nvidia-h100-80gb, and the job asks for 4 h100"},
		},
		{
			name: "a machine type without GPUs", asks: gpus("h100", 8, of("n2-standard-8"), in("us-central1-a")),
			want: []string{"error job.train#resources.machine_type Machine type has no GPUs: Machines of the type n2-standard-8 have no GPUs, and the job asks for 8 h100"},
		},
		{
			name: "GPUs that the job does not mention", asks: func(_ *schema.Provider, r *schema.Resources) {
				r.TPU, r.MachineType, r.Zones = "", "a2-highgpu-1g", []string{"us-central1-a"}
			},
			want: []string{`warning job.train#resources.machine_type GPUs are not asked for: Machines of the type a2-highgpu-1g have 1 nvidia-tesla-a100…gpu { type = "a100", count = 1 }`},
		},
		{
			name: "one H100 on demand", asks: gpus("h100", 1, onDemand),
			want: []string{"error job.train#resources.preemptible Not available on demand: Compute Engine has a3-highgpu-1g as spot and flex-start capacity only: set preemptible = true"},
		},
		{
			name: "GPUs older than the driver", asks: gpus("v100", 1, in("us-central1-a")),
			want: []string{"error job.train#resources.gpu.type No boot image with a driver: fray knows no boot image with an NVIDIA driver for v100…set boot_image"},
		},
		{
			name: "with an image of their own", asks: gpus("v100", 1, in("us-central1-a"), func(_ *schema.Provider, r *schema.Resources) { r.Cloud.Image = "projects/x/global/images/y" }),
		},
		{
			name: "quota of preemptible GPUs in one region", scenario: quotas(cloud.Quota{Region: "us-central1", Type: "h100", Tier: cloud.TierSpot, Limit: 4}), asks: gpus("h100", 8),
			want: []string{"warning provider#zones Quota is too small: An attempt needs 8 h100 GPUs, and project acme-research may not use as many in us-central1: PREEMPTIBLE_NVIDIA_H100_GPUS is 4. Ask for more at"},
		},
		{
			name: "quota of GPUs for several slices", scenario: quotas(cloud.Quota{Region: "us-central1", Type: "l4", Tier: cloud.TierOnDemand, Limit: 7}),
			asks: gpus("l4", 4, onDemand, in("us-central1-a"), func(_ *schema.Provider, r *schema.Resources) { r.Slices = 2 }),
			want: []string{"error job.train#resources.gpu.type Quota is too small: An attempt needs 8 l4 GPUs…in us-central1: NVIDIA_L4_GPUS is 7."},
		},
		{
			name: "preemptible GPUs in the quota of others", scenario: quotas(cloud.Quota{Region: "us-central1", Type: "l4", Tier: cloud.TierOnDemand, Limit: 8},
				cloud.Quota{Region: "us-central1", Type: "l4", Tier: cloud.TierSpot, Limit: 0}), asks: gpus("l4", 8, in("us-central1-a")),
		},
		{
			name: "quota of a family", scenario: quotas(cloud.Quota{Region: "us-central1", Type: "h200", Tier: cloud.TierOnDemand, Limit: 0}), asks: gpus("h200", 8, onDemand, in("us-central1-b")),
			want: []string{"error job.train#resources.gpu.type Quota is too small: An attempt needs 8 h200 GPUs…in us-central1-b: GPUS-PER-GPU-FAMILY-per-project-region is 0."},
		},
		{
			name: "quota of all regions", scenario: quotas(cloud.Quota{Region: cloud.RegionGlobal, Type: cloud.TypeGPU, Limit: 1}), asks: gpus("l4", 4),
			want: []string{"error job.train#resources.gpu.type Quota is too small: An attempt needs 4 l4 GPUs, and project acme-research may use 1 GPUs in all regions together: GPUS_ALL_REGIONS is 1."},
		},
		{
			name: "reserved GPUs need no quota", scenario: quotas(cloud.Quota{Region: cloud.RegionGlobal, Type: cloud.TypeGPU}), asks: gpus("b200", 8, onDemand, in("us-central1-b"),
				func(_ *schema.Provider, r *schema.Resources) { r.Cloud.Provisioning = schema.ProvisioningReserved }),
		},
	} {
		t.Run(c.name, c.run)
	}
}
