package compute

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// gpuMachine is a machine type that comes with GPUs.
type gpuMachine struct {
	name     string
	gpu      string // type of capacity
	gpus     int
	cores    int32
	memoryMB int32
	spotOnly bool // had as spot and flex-start capacity only
	// hyperdisk is set on machines that take no persistent disk.
	hyperdisk bool
}

const mbInGB = 1 << 10

// gpuMachines are the accelerator-optimized machine types, as the service lists them.
func gpuMachines() []gpuMachine {
	machines := []gpuMachine{
		{name: "a2-megagpu-16g", gpu: "a100", gpus: 16, cores: 96, memoryMB: 1360 * mbInGB},
		{name: "a3-highgpu-8g", gpu: "h100", gpus: 8, cores: 208, memoryMB: 1872 * mbInGB},
		{name: "a3-megagpu-8g", gpu: "h100-mega", gpus: 8, cores: 208, memoryMB: 1872 * mbInGB},
		{name: "a3-ultragpu-8g", gpu: "h200", gpus: 8, cores: 224, memoryMB: 2952 * mbInGB, hyperdisk: true},
		{name: "a4-highgpu-8g", gpu: "b200", gpus: 8, cores: 224, memoryMB: 3968 * mbInGB, hyperdisk: true},
	}
	for _, gpus := range []int32{1, 2, 4, 8} {
		size := "-" + strconv.Itoa(int(gpus)) + "g"
		machines = append(machines,
			gpuMachine{name: "a2-highgpu" + size, gpu: "a100", gpus: int(gpus), cores: 12 * gpus, memoryMB: 85 * gpus * mbInGB},
			gpuMachine{name: "a2-ultragpu" + size, gpu: "a100-80gb", gpus: int(gpus), cores: 12 * gpus, memoryMB: 170 * gpus * mbInGB})
		if gpus < 8 {
			machines = append(machines, gpuMachine{
				name: "a3-highgpu" + size, gpu: "h100", gpus: int(gpus), cores: 26 * gpus, memoryMB: 234 * gpus * mbInGB, spotOnly: true,
			})
		}
	}
	for _, gpus := range []int32{1, 2, 4, 8} {
		machines = append(machines, gpuMachine{
			name: fmt.Sprintf("g4-standard-%d", 48*gpus), gpu: "rtx-pro-6000", gpus: int(gpus), cores: 48 * gpus, memoryMB: 180 * gpus * mbInGB, hyperdisk: true,
		})
	}
	for cores, gpus := range map[int32]int{4: 1, 8: 1, 12: 1, 16: 1, 32: 1, 24: 2, 48: 4, 96: 8} {
		machines = append(machines, gpuMachine{
			name: fmt.Sprintf("g2-standard-%d", cores), gpu: "l4", gpus: gpus, cores: cores, memoryMB: 4 * cores * mbInGB,
		})
	}
	slices.SortFunc(machines, func(a, b gpuMachine) int { return strings.Compare(a.name, b.name) })
	return machines
}

func gpuMachineNamed(name string) (gpuMachine, bool) {
	i := slices.IndexFunc(gpuMachines(), func(m gpuMachine) bool { return m.name == name })
	if i < 0 {
		return gpuMachine{}, false
	}
	return gpuMachines()[i], true
}

// cardLimits are, by the number of GPUs of a type on a machine of the family N1, the
// most vCPUs that it may have.
func cardLimits(gpu string) map[int]int {
	switch gpu {
	case "t4":
		return map[int]int{1: 48, 2: 48, 4: 96}
	case "p4":
		return map[int]int{1: 24, 2: 48, 4: 96}
	case "v100":
		return map[int]int{1: 12, 2: 24, 4: 48, 8: 96}
	case "p100":
		return map[int]int{1: 16, 2: 32, 4: 64}
	}
	return nil
}

// maxCards is how many GPUs of a type one machine has at most.
func maxCards(gpu string) int {
	most := 0
	for _, m := range gpuMachines() {
		if m.gpu == gpu {
			most = max(most, m.gpus)
		}
	}
	for cards := range cardLimits(gpu) {
		most = max(most, cards)
	}
	return most
}

// machineKindOf is what an instance draws from: of a machine with attached GPUs these.
func machineKindOf(instance *computeapi.Instance) machineKind {
	kind, _ := parseMachineType(instance.MachineType)
	cards := instance.GuestAccelerators
	if kind.gpu || len(cards) == 0 {
		return kind
	}
	attached, known := cloud.GPUNamed(lastPart(cards[0].AcceleratorType))
	if !known {
		return kind
	}
	kind.kind, kind.units, kind.gpu = attached.Type, int(cards[0].AcceleratorCount), true
	return kind
}

// incompatible is how the service rejects what does not go together.
func incompatible(features ...string) error {
	return &apiError{status: http.StatusBadRequest, reason: "badRequest",
		message: fmt.Sprintf("[%s] features are not compatible for creating instance.", strings.Join(features, ", "))}
}

// checkGPUs holds the GPUs of a machine to what the service takes.
func checkGPUs(c *cloud.Cloud, r *request, instance *computeapi.Instance, where string) error {
	kind, _ := parseMachineType(instance.MachineType)
	if err := checkCards(c, r, instance, where); err != nil {
		return err
	}
	if !kind.gpu && len(instance.GuestAccelerators) == 0 {
		return nil
	}
	scheduling := instance.Scheduling
	model := scheduling.ProvisioningModel
	terminates := scheduling.OnHostMaintenance == "TERMINATE" || scheduling.OnHostMaintenance == "" && model == "SPOT"
	machine, _ := gpuMachineNamed(kind.name)
	switch {
	case !terminates:
		return &apiError{status: http.StatusBadRequest, reason: "badRequest",
			message: "Instances with guest accelerators do not support live migration."}
	case machine.spotOnly && model != "SPOT" && model != "FLEX_START": // the service's own text is not known
		return invalid("Invalid value for field '%s.scheduling.provisioningModel': '%s'. Machine type '%s' requires SPOT or FLEX_START.",
			where, model, machine.name)
	}
	if machine.hyperdisk {
		for _, disk := range instance.Disks {
			if start := disk.InitializeParams; start != nil && !strings.HasPrefix(lastPart(start.DiskType), "hyperdisk-") {
				return incompatible(machine.name, cmp.Or(lastPart(start.DiskType), "pd-standard"))
			}
		}
	}
	return nil
}

// checkCards checks the GPUs that a request attaches. Those that come with a machine
// type may be stated, as they are.
func checkCards(c *cloud.Cloud, r *request, instance *computeapi.Instance, where string) error {
	kind, _ := parseMachineType(instance.MachineType)
	for i, card := range instance.GuestAccelerators {
		name, count := lastPart(card.AcceleratorType), int(card.AcceleratorCount)
		gpu, known := cloud.GPUNamed(name)
		if !known || r.zone != "" && !slices.Contains(c.Offered(r.zone), gpu.Type) {
			return invalid("Invalid value for field '%s.guestAccelerators[%d].acceleratorType': '%s'. "+
				"The referenced acceleratorType resource cannot be found.", where, i, card.AcceleratorType)
		}
		if kind.gpu {
			if kind.kind != gpu.Type || kind.units != count {
				return incompatible(kind.name, name)
			}
			continue
		}
		cores, possible := cardLimits(gpu.Type)[count]
		if !possible || !strings.HasPrefix(kind.name, "n1-") || kind.units > cores {
			return incompatible(kind.name, name)
		}
	}
	return nil
}

// showCards are the GPUs of a machine as the API shows them.
func showCards(instance *computeapi.Instance, scope string) []computeapi.AcceleratorConfig {
	kind := machineKindOf(instance)
	if !kind.gpu {
		return nil
	}
	return []computeapi.AcceleratorConfig{{
		AcceleratorType:  linkRoot + scope + "/acceleratorTypes/" + acceleratorOf(kind.kind),
		AcceleratorCount: int32(kind.units),
	}}
}

// acceleratorOf is how the service names GPUs of a type of capacity.
func acceleratorOf(gpu string) string {
	i := slices.IndexFunc(cloud.GPUs(), func(g cloud.GPU) bool { return g.Type == gpu })
	return cloud.GPUs()[i].Accelerator
}

// gpuFamily is how quotas name GPUs of a type of capacity: "NVIDIA_H100".
func gpuFamily(gpu string) string {
	return "NVIDIA_" + strings.ToUpper(strings.ReplaceAll(gpu, "-", "_"))
}

// countsByFamily reports whether GPUs on demand are counted in the quota of all
// families, as those since H100 are, and not in one of their own.
func countsByFamily(gpu string) bool {
	return slices.Contains([]string{"h100", "h100-mega", "h200", "b200", "rtx-pro-6000"}, gpu)
}

// gpuMetric is the quota that GPUs of a type and tier are counted in.
func gpuMetric(gpu string, tier cloud.Tier) string {
	switch {
	case gpu == cloud.TypeGPU:
		return "GPUS_ALL_REGIONS"
	case tier == cloud.TierSpot:
		return "PREEMPTIBLE_" + gpuFamily(gpu) + "_GPUS"
	case countsByFamily(gpu):
		return "GPUS_PER_GPU_FAMILY"
	}
	return gpuFamily(gpu) + "_GPUS"
}
