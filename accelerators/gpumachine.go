package accelerators

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/schema"
)

// GPUMachine is a machine type of Compute Engine with GPUs.
type GPUMachine struct {
	Name        string       // "a3-highgpu-8g"
	GPU         string       // type of its GPUs as fray names it, "h100"
	Count       int          // of its GPUs
	Accelerator string       // type of its GPUs as Compute Engine names it, "nvidia-h100-80gb"
	Cores       float64      // vCPUs
	Memory      schema.Bytes // of the machine, not of the GPUs
	// Attached is set on machines of a general family, which have GPUs only where a
	// request attaches them.
	Attached bool
	// SpotOnly is set on machine types that are had as spot and flex-start capacity only.
	SpotOnly bool
	// ReservationBound is set on machine types whose reserved capacity is had by the
	// provisioning model of that name. The others take reservations as standard machines.
	ReservationBound bool
	// NoPersistentDisk is set on machine types that boot from Hyperdisk only.
	NoPersistentDisk bool
}

// gpuSeries are machine types that differ by the number of their GPUs only.
type gpuSeries struct {
	gpu, accelerator string
	of               GPUMachine // what all of them are
	machines         []gpuSize
}

type gpuSize struct {
	name  string
	gpus  int
	cores float64
	gib   float64
}

// gpuSeriesTable is what Compute Engine's documentation lists ("GPU machine types",
// "Accelerator-optimized machine family") as far as fray's hosts run there: A4X and
// later ones have Arm processors.
func gpuSeriesTable() []gpuSeries {
	reserved := GPUMachine{ReservationBound: true}
	return []gpuSeries{
		{gpu: "a100", accelerator: "nvidia-tesla-a100", machines: []gpuSize{
			{"a2-highgpu-1g", 1, 12, 85}, {"a2-highgpu-2g", 2, 24, 170}, {"a2-highgpu-4g", 4, 48, 340}, {"a2-highgpu-8g", 8, 96, 680},
			{"a2-megagpu-16g", 16, 96, 1360},
		}},
		{gpu: "a100-80gb", accelerator: "nvidia-a100-80gb", machines: []gpuSize{
			{"a2-ultragpu-1g", 1, 12, 170}, {"a2-ultragpu-2g", 2, 24, 340}, {"a2-ultragpu-4g", 4, 48, 680}, {"a2-ultragpu-8g", 8, 96, 1360},
		}},
		{gpu: "h100", accelerator: "nvidia-h100-80gb", of: GPUMachine{SpotOnly: true}, machines: []gpuSize{
			{"a3-highgpu-1g", 1, 26, 234}, {"a3-highgpu-2g", 2, 52, 468}, {"a3-highgpu-4g", 4, 104, 936},
		}},
		{gpu: "h100", accelerator: "nvidia-h100-80gb", of: reserved, machines: []gpuSize{{"a3-highgpu-8g", 8, 208, 1872}}},
		{gpu: "h100", accelerator: "nvidia-h100-mega-80gb", of: reserved, machines: []gpuSize{{"a3-megagpu-8g", 8, 208, 1872}}},
		{gpu: "h200", accelerator: "nvidia-h200-141gb", of: GPUMachine{ReservationBound: true, NoPersistentDisk: true}, machines: []gpuSize{
			{"a3-ultragpu-8g", 8, 224, 2952},
		}},
		{gpu: "b200", accelerator: "nvidia-b200", of: GPUMachine{ReservationBound: true, NoPersistentDisk: true}, machines: []gpuSize{
			{"a4-highgpu-8g", 8, 224, 3968},
		}},
		{gpu: "rtx-pro-6000", accelerator: "nvidia-rtx-pro-6000", of: GPUMachine{NoPersistentDisk: true}, machines: []gpuSize{
			{"g4-standard-48", 1, 48, 180}, {"g4-standard-96", 2, 96, 360}, {"g4-standard-192", 4, 192, 720}, {"g4-standard-384", 8, 384, 1440},
		}},
		{gpu: "l4", accelerator: "nvidia-l4", machines: []gpuSize{
			{"g2-standard-4", 1, 4, 16}, {"g2-standard-8", 1, 8, 32}, {"g2-standard-12", 1, 12, 48}, {"g2-standard-16", 1, 16, 64},
			{"g2-standard-32", 1, 32, 128}, {"g2-standard-24", 2, 24, 96}, {"g2-standard-48", 4, 48, 192}, {"g2-standard-96", 8, 96, 384},
		}},
	}
}

// attachable is a GPU that machines of the family N1 take, and the most vCPUs and
// memory in GiB that a machine with so many of them has.
type attachable struct {
	gpu, accelerator string
	limits           []gpuSize
}

func attachables() []attachable {
	return []attachable{
		{"t4", "nvidia-tesla-t4", []gpuSize{{gpus: 1, cores: 48, gib: 312}, {gpus: 2, cores: 48, gib: 312}, {gpus: 4, cores: 96, gib: 624}}},
		{"p4", "nvidia-tesla-p4", []gpuSize{{gpus: 1, cores: 24, gib: 156}, {gpus: 2, cores: 48, gib: 312}, {gpus: 4, cores: 96, gib: 624}}},
		{"v100", "nvidia-tesla-v100", []gpuSize{
			{gpus: 1, cores: 12, gib: 78}, {gpus: 2, cores: 24, gib: 156}, {gpus: 4, cores: 48, gib: 312}, {gpus: 8, cores: 96, gib: 624},
		}},
		{"p100", "nvidia-tesla-p100", []gpuSize{{gpus: 1, cores: 16, gib: 104}, {gpus: 2, cores: 32, gib: 208}, {gpus: 4, cores: 64, gib: 208}}},
	}
}

// n1Machines are the predefined types of the family that take GPUs, smallest first.
func n1Machines() []gpuSize {
	var machines []gpuSize
	for _, cores := range []float64{1, 2, 4, 8, 16, 32, 64, 96} {
		size := strconv.Itoa(int(cores))
		machines = append(machines, gpuSize{name: "n1-standard-" + size, cores: cores, gib: cores * 3.75})
		if cores > 1 {
			machines = append(machines,
				gpuSize{name: "n1-highmem-" + size, cores: cores, gib: cores * 6.5}, gpuSize{name: "n1-highcpu-" + size, cores: cores, gib: cores * 0.9})
		}
	}
	return machines
}

// GPUMachines are all machine types with GPUs of a type, those with fewer GPUs first;
// of "" those with any GPU.
func GPUMachines(gpu string) []GPUMachine {
	const gib = 1 << 30
	var machines []GPUMachine
	add := func(m GPUMachine, size gpuSize, gpus int) {
		m.Name, m.Count, m.Cores, m.Memory = size.name, gpus, size.cores, schema.Bytes(size.gib*gib)
		machines = append(machines, m)
	}
	for _, s := range gpuSeriesTable() {
		for _, size := range s.machines {
			if gpu == "" || s.gpu == gpu {
				m := s.of
				m.GPU, m.Accelerator = s.gpu, s.accelerator
				add(m, size, size.gpus)
			}
		}
	}
	for _, a := range attachables() {
		for _, limit := range a.limits {
			for _, size := range n1Machines() {
				if (gpu == "" || a.gpu == gpu) && size.cores <= limit.cores && size.gib <= limit.gib {
					add(GPUMachine{GPU: a.gpu, Accelerator: a.accelerator, Attached: true}, size, limit.gpus)
				}
			}
		}
	}
	slices.SortStableFunc(machines, func(a, b GPUMachine) int { return cmp.Compare(a.Count, b.Count) })
	return machines
}

// What each attached GPU comes with where a slice asks for neither: vCPUs, and the memory
// in bytes that a standard type has for each of these.
const (
	attachedCores  = 8
	standardMemory = 3.75 * (1 << 30)
)

// GPUMachineFor is the smallest machine type with so many GPUs of a type and at least so
// many vCPUs and so much memory, false if there is none. A machine that GPUs are attached
// to has 8 vCPUs for each of them if cores is 0, and is of a standard type if memory is 0
// and there is one.
func GPUMachineFor(gpu string, count int, cores float64, memory schema.Bytes) (GPUMachine, bool) {
	machines := GPUMachines(gpu)
	if gpu == "" || len(machines) == 0 {
		return GPUMachine{}, false
	}
	if machines[0].Attached {
		cores = cmp.Or(cores, attachedCores*float64(count))
		if m, ok := smallest(machines, GPUMachine{Count: count, Cores: cores, Memory: schema.Bytes(cores * standardMemory)}); ok && memory == 0 {
			return m, true
		}
	}
	return smallest(machines, GPUMachine{Count: count, Cores: cores, Memory: memory})
}

// smallest is the smallest machine type with as many GPUs as a wish and at least its vCPUs
// and memory.
func smallest(machines []GPUMachine, wish GPUMachine) (GPUMachine, bool) {
	best, found := GPUMachine{}, false
	for _, m := range machines {
		if m.Count == wish.Count && m.Cores >= wish.Cores && m.Memory >= wish.Memory && (!found || m.isSmaller(best)) {
			best, found = m, true
		}
	}
	return best, found
}

// isSmaller orders machine types with the same GPUs. Of equal ones the first in the
// table is taken: A3 High before A3 Mega.
func (m GPUMachine) isSmaller(other GPUMachine) bool {
	return cmp.Or(cmp.Compare(m.Cores, other.Cores), cmp.Compare(m.Memory, other.Memory)) < 0
}

// GPUMachineNamed is the machine type of that name with so many GPUs of a type, false if
// it is not known to have them.
func GPUMachineNamed(name, gpu string, count int) (GPUMachine, bool) {
	machines := GPUMachines(gpu)
	i := slices.IndexFunc(machines, func(m GPUMachine) bool { return m.Name == name && m.Count == count })
	if i < 0 {
		return GPUMachine{}, false
	}
	return machines[i], true
}

// GPUMachineWith is the machine type of that name that comes with its GPUs, false for one
// that GPUs are attached to, or that has none.
func GPUMachineWith(name string) (GPUMachine, bool) {
	if !slices.ContainsFunc([]string{"a2-", "a3-", "a4-", "g2-", "g4-"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
		return GPUMachine{}, false // told soon: plans ask for every machine type
	}
	machines := GPUMachines("")
	i := slices.IndexFunc(machines, func(m GPUMachine) bool { return m.Name == name && !m.Attached })
	if i < 0 {
		return GPUMachine{}, false
	}
	return machines[i], true
}

// GPUCounts are the numbers of GPUs of a type that machines of Compute Engine have.
func GPUCounts(gpu string) []int {
	var counts []int
	for _, m := range GPUMachines(gpu) {
		if !slices.Contains(counts, m.Count) {
			counts = append(counts, m.Count)
		}
	}
	return counts
}
