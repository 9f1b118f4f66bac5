package emulator_test

import (
	"slices"
	"strings"
	"testing"

	computeapi "cloud.google.com/go/compute/apiv1"
	"cloud.google.com/go/compute/apiv1/computepb"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// gpuZone has A100, H100, L4 and T4 GPUs, among others.
const gpuZone = "us-central1-a"

// gpuVM is a spot machine of a machine type with GPUs.
func gpuVM(name, machineType string) *computepb.Instance {
	vm := spotVM(name)
	vm.MachineType = new("zones/" + gpuZone + "/machineTypes/" + machineType)
	vm.Scheduling.OnHostMaintenance = new("TERMINATE")
	return vm
}

// attach attaches GPUs to a machine.
func attach(vm *computepb.Instance, accelerator string, count int32) *computepb.Instance {
	vm.GuestAccelerators = []*computepb.AcceleratorConfig{{
		AcceleratorType: new("zones/" + gpuZone + "/acceleratorTypes/" + accelerator), AcceleratorCount: &count,
	}}
	return vm
}

// onDemand makes it a machine that is not preemptible.
func onDemand(vm *computepb.Instance) *computepb.Instance {
	vm.Scheduling = &computepb.Scheduling{ProvisioningModel: new("STANDARD"), OnHostMaintenance: new("TERMINATE")}
	return vm
}

func (w *computeWorld) insertIn(zone string, vm *computepb.Instance) (string, error) {
	op, err := w.instances.Insert(w.t.Context(), &computepb.InsertInstanceRequest{Project: project, Zone: zone, InstanceResource: vm})
	if err != nil {
		return "", err
	}
	return op.Name(), nil
}

// operationIn is an operation of a zone as it is now.
func (w *computeWorld) operationIn(zone, name string) *computepb.Operation {
	w.t.Helper()
	op, err := w.zones.Get(w.t.Context(), &computepb.GetZoneOperationRequest{Project: project, Zone: zone, Operation: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return op
}

// TestGPUCatalog: machine types name their GPUs, and a zone lists which it has.
func TestGPUCatalog(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{})
	types := dialed(w, computeapi.NewMachineTypesRESTClient)
	for _, test := range []struct {
		zone, machine, accelerator string
		gpus, cores, memoryGB      int32
	}{
		{gpuZone, "a2-highgpu-1g", "nvidia-tesla-a100", 1, 12, 85},
		{gpuZone, "a2-megagpu-16g", "nvidia-tesla-a100", 16, 96, 1360},
		{gpuZone, "a2-ultragpu-8g", "nvidia-a100-80gb", 8, 96, 1360},
		{gpuZone, "a3-highgpu-8g", "nvidia-h100-80gb", 8, 208, 1872},
		{gpuZone, "a3-megagpu-8g", "nvidia-h100-mega-80gb", 8, 208, 1872},
		{"us-central1-b", "a3-ultragpu-8g", "nvidia-h200-141gb", 8, 224, 2952},
		{"us-central1-b", "a4-highgpu-8g", "nvidia-b200", 8, 224, 3968},
		{gpuZone, "g2-standard-24", "nvidia-l4", 2, 24, 96},
	} {
		got, err := types.Get(t.Context(), &computepb.GetMachineTypeRequest{Project: project, Zone: test.zone, MachineType: test.machine})
		if err != nil || len(got.GetAccelerators()) != 1 || got.GetAccelerators()[0].GetGuestAcceleratorType() != test.accelerator ||
			got.GetAccelerators()[0].GetGuestAcceleratorCount() != test.gpus || got.GetGuestCpus() != test.cores || got.GetMemoryMb() != test.memoryGB<<10 {
			t.Errorf("%s: got %v, %v, want %+v", test.machine, got, err, test)
		}
	}
	_, err := types.Get(t.Context(), &computepb.GetMachineTypeRequest{Project: project, Zone: gpuZone, MachineType: "a4-highgpu-8g"})
	wantRESTRejection(t, "a machine type of other zones", err, "404 notFound")
	accelerators := dialed(w, computeapi.NewAcceleratorTypesRESTClient)
	var names []string
	for _, a := range collected(t, accelerators.List(t.Context(), &computepb.ListAcceleratorTypesRequest{Project: project, Zone: gpuZone})) {
		if strings.HasPrefix(a.GetName(), "nvidia-") {
			names = append(names, a.GetName())
		}
	}
	want := []string{
		"nvidia-a100-80gb", "nvidia-h100-80gb", "nvidia-h100-mega-80gb", "nvidia-l4", "nvidia-tesla-a100", "nvidia-tesla-p4", "nvidia-tesla-t4", "nvidia-tesla-v100",
	}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("GPUs of %s: got %v, want %v", gpuZone, names, want)
	}
	card, err := accelerators.Get(t.Context(), &computepb.GetAcceleratorTypeRequest{Project: project, Zone: gpuZone, AcceleratorType: "nvidia-tesla-t4"})
	if err != nil || card.GetMaximumCardsPerInstance() != 4 {
		t.Errorf("nvidia-tesla-t4: got %v, %v, want at most four of them on a machine", card, err)
	}
}

// TestGPUMachineLives: machines show their GPUs, be they the machine type's own or attached,
// and hold as many of the zone's.
func TestGPUMachineLives(t *testing.T) {
	for _, test := range []struct {
		vm          *computepb.Instance
		accelerator string
		count       int32
		capacity    string
	}{
		{gpuVM("vm", "a3-highgpu-8g"), "nvidia-h100-80gb", 8, "h100"},
		{attach(gpuVM("vm", "n1-standard-8"), "nvidia-tesla-t4", 2), "nvidia-tesla-t4", 2, "t4"},
		{attach(gpuVM("vm", "a2-highgpu-1g"), "nvidia-tesla-a100", 1), "nvidia-tesla-a100", 1, "a100"},
	} {
		t.Run(test.accelerator, func(t *testing.T) {
			w := newComputeWorld(t, cloud.Scenario{})
			if _, err := w.insertIn(gpuZone, test.vm); err != nil {
				t.Fatal(err)
			}
			w.clock.Advance(vmUp)
			got, err := w.instances.Get(t.Context(), &computepb.GetInstanceRequest{Project: project, Zone: gpuZone, Instance: "vm"})
			if err != nil || got.GetStatus() != "RUNNING" || len(got.GetGuestAccelerators()) != 1 || got.GetGuestAccelerators()[0].GetAcceleratorCount() != test.count ||
				!strings.HasSuffix(got.GetGuestAccelerators()[0].GetAcceleratorType(), "/zones/"+gpuZone+"/acceleratorTypes/"+test.accelerator) {
				t.Errorf("got %v, %v, want %d %s running", got, err, test.count, test.accelerator)
			}
			used := slices.IndexFunc(w.emulator.Cloud().Capacity(), func(c cloud.Capacity) bool {
				return c.Zone == gpuZone && c.Type == test.capacity && c.Used == int(test.count)
			})
			if used < 0 {
				t.Errorf("capacity is %v, want %d of %s used", w.emulator.Cloud().Capacity(), test.count, test.capacity)
			}
		})
	}
}

// TestGPURejections: what the service rejects of requests for GPUs, at once.
func TestGPURejections(t *testing.T) {
	migrates := gpuVM("vm", "g2-standard-4")
	migrates.Scheduling = &computepb.Scheduling{ProvisioningModel: new("STANDARD")}
	disk := gpuVM("vm", "a3-ultragpu-8g")
	disk.Disks = []*computepb.AttachedDisk{{Boot: new(true), InitializeParams: &computepb.AttachedDiskInitializeParams{DiskType: new("pd-balanced")}}}
	quota := func(q cloud.Quota) cloud.Scenario { return cloud.Scenario{Quotas: []cloud.Quota{q}} }
	for _, test := range []struct {
		name     string
		scenario cloud.Scenario
		zone     string
		vm       *computepb.Instance
		want     string
	}{
		{"a machine that would migrate", cloud.Scenario{}, gpuZone, migrates, "400 badRequest: Instances with guest accelerators do not support live migration."},
		{"GPUs on another family", cloud.Scenario{}, gpuZone, attach(gpuVM("vm", "n2-standard-32"), "nvidia-tesla-t4", 1),
			"400 badRequest: [n2-standard-32, nvidia-tesla-t4] features are not compatible for creating instance."},
		{"a number that machines have not", cloud.Scenario{}, gpuZone, attach(gpuVM("vm", "n1-standard-8"), "nvidia-tesla-t4", 3),
			"400 badRequest: [n1-standard-8, nvidia-tesla-t4]"},
		{"too many cores for one GPU", cloud.Scenario{}, gpuZone, attach(gpuVM("vm", "n1-standard-16"), "nvidia-tesla-v100", 1),
			"400 badRequest: [n1-standard-16, nvidia-tesla-v100]"},
		{"GPUs of another machine type", cloud.Scenario{}, gpuZone, attach(gpuVM("vm", "a2-highgpu-1g"), "nvidia-l4", 1),
			"400 badRequest: [a2-highgpu-1g, nvidia-l4]"},
		{"GPUs that the zone has not", cloud.Scenario{}, gpuZone, attach(gpuVM("vm", "n1-standard-8"), "nvidia-tesla-p100", 1),
			"400 invalid: Invalid value for field 'resource.guestAccelerators[0].acceleratorType'"},
		{"a machine type that the zone has not", cloud.Scenario{}, gpuZone, gpuVM("vm", "a4-highgpu-8g"),
			"400 invalid: Machine type with name 'a4-highgpu-8g' does not exist in zone 'us-central1-a'."},
		{"one H100 on demand", cloud.Scenario{}, gpuZone, onDemand(gpuVM("vm", "a3-highgpu-1g")), "400 invalid: provisioningModel"},
		{"a persistent disk", cloud.Scenario{}, "us-central1-b", disk, "400 badRequest: [a3-ultragpu-8g, pd-balanced]"},
		{"no quota of the type", quota(cloud.Quota{Region: "us-central1", Type: "l4", Limit: 0}), gpuZone, onDemand(gpuVM("vm", "g2-standard-4")),
			"403 quotaExceeded: Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 0.0 in region us-central1."},
		{"no quota of the family", quota(cloud.Quota{Region: "us-central1", Type: "h100", Limit: 0, Tier: cloud.TierOnDemand}), gpuZone,
			onDemand(gpuVM("vm", "a3-highgpu-8g")), "403 quotaExceeded: Quota 'GPUS_PER_GPU_FAMILY' exceeded.  Limit: 0.0 in region us-central1."},
		{"no quota of preemptible ones", quota(cloud.Quota{Region: "us-central1", Type: "h100", Limit: 0, Tier: cloud.TierSpot}), gpuZone,
			gpuVM("vm", "a3-highgpu-8g"), "403 quotaExceeded: Quota 'PREEMPTIBLE_NVIDIA_H100_GPUS' exceeded.  Limit: 0.0 in region us-central1."},
		{"no quota in any region", quota(cloud.Quota{Region: cloud.RegionGlobal, Type: cloud.TypeGPU, Limit: 0}), gpuZone,
			gpuVM("vm", "g2-standard-4"), "403 quotaExceeded: Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally."},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newComputeWorld(t, test.scenario)
			_, err := w.insertIn(test.zone, test.vm)
			wantRESTRejection(t, "insert", err, test.want)
			w.wantNothing()
		})
	}
}

// TestGPUFailures: a quota that is used up and a stockout end the operation. The quota of
// all GPUs counts those of all regions and types.
func TestGPUFailures(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{
		Quotas: []cloud.Quota{
			{Region: cloud.RegionGlobal, Type: cloud.TypeGPU, Limit: 10}, {Region: "us-central1", Type: "h100", Tier: cloud.TierOnDemand, Limit: 8},
		},
		Zones: []cloud.Zone{{Name: gpuZone, Capacity: map[string]int{"t4": 1}}},
	})
	fails := func(zone string, vm *computepb.Instance, want, message string) *computepb.Errors {
		t.Helper()
		name, err := w.insertIn(zone, vm)
		if err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(vmUp)
		op := w.operationIn(zone, name)
		if got := operationFailure(op); got != want {
			t.Fatalf("%s: got %s, want %s", vm.GetName(), got, want)
		}
		if want == "done" {
			return nil
		}
		if got := op.GetError().GetErrors()[0]; strings.Contains(got.GetMessage(), message) {
			return got
		}
		t.Fatalf("%s: got %v, want the text %q", vm.GetName(), op.GetError(), message)
		return nil
	}
	fails(gpuZone, attach(gpuVM("two", "n1-standard-8"), "nvidia-tesla-t4", 2), "503 ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "does not have enough resources available")
	fails(gpuZone, onDemand(gpuVM("first", "a3-highgpu-8g")), "done", "")
	family := fails("us-central1-b", onDemand(gpuVM("second", "a3-highgpu-8g")), "403 QUOTA_EXCEEDED", "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 10.0 globally.")
	if info := family.GetErrorDetails()[0].GetQuotaInfo(); info.GetLimitName() != "GPUS-ALL-REGIONS-per-project" {
		t.Errorf("details: got %v, want the limit of all regions", info)
	}
	fails("us-west1-a", attach(gpuVM("elsewhere", "n1-standard-8"), "nvidia-tesla-t4", 2), "done", "")
	fails("us-west1-a", attach(gpuVM("over", "n1-standard-8"), "nvidia-tesla-t4", 1), "403 QUOTA_EXCEEDED", "GPUS_ALL_REGIONS")
	projects := dialed(w, computeapi.NewProjectsRESTClient)
	found, err := projects.Get(t.Context(), &computepb.GetProjectRequest{Project: project})
	if err != nil || len(found.GetQuotas()) != 1 || found.GetQuotas()[0].GetMetric() != "GPUS_ALL_REGIONS" || found.GetQuotas()[0].GetUsage() != 10 {
		t.Errorf("quotas of the project: got %v, %v, want all 10 of GPUS_ALL_REGIONS in use", found.GetQuotas(), err)
	}
}

// TestGPUFamilyQuotaNamesItsFamily: what is counted with other GPUs in one quota says in
// the details which of them it was.
func TestGPUFamilyQuotaNamesItsFamily(t *testing.T) {
	w := newComputeWorld(t, cloud.Scenario{Quotas: []cloud.Quota{{Region: "us-central1", Type: "h200", Tier: cloud.TierOnDemand, Limit: 4}}})
	vm := onDemand(gpuVM("vm", "a3-ultragpu-8g"))
	vm.Disks = []*computepb.AttachedDisk{{Boot: new(true), InitializeParams: &computepb.AttachedDiskInitializeParams{DiskType: new("hyperdisk-balanced")}}}
	name, err := w.insertIn("us-central1-b", vm)
	if err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(vmUp)
	failure := w.operationIn("us-central1-b", name).GetError().GetErrors()[0]
	info := failure.GetErrorDetails()[0].GetQuotaInfo()
	if failure.GetCode() != "QUOTA_EXCEEDED" || info.GetLimitName() != "GPUS-PER-GPU-FAMILY-per-project-region" ||
		info.GetDimensions()["gpu_family"] != "NVIDIA_H200" || info.GetDimensions()["region"] != "us-central1" {
		t.Errorf("got %v, want the quota of NVIDIA_H200 in us-central1", failure)
	}
}
