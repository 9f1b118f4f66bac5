package machinetype

import (
	"fmt"
	"math"
	"slices"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

// machineShape is a machine type without accelerators.
type machineShape struct {
	name   string
	cores  float64
	memory schema.Bytes
	weight float64 // for comparing: about US dollars for an hour on demand
}

// machineFamily is a line of machine types that grow by doubling, more or less.
type machineFamily struct {
	prefix     string
	gibPerCore float64
	cores      []int
	perCore    float64 // US dollars for an hour, us-central1
	perGiB     float64
}

// gib is a gibibyte in bytes.
const gib = 1 << 30

// machineFamilies are those that every region has. The prices only put the types
// in order: https://cloud.google.com/compute/vm-instance-pricing.
func machineFamilies() []machineFamily {
	const e2Core, e2GiB, n2Core, n2GiB = 0.021811, 0.002923, 0.031611, 0.004237
	return []machineFamily{
		{prefix: "e2-standard-", gibPerCore: 4, cores: []int{2, 4, 8, 16, 32}, perCore: e2Core, perGiB: e2GiB},
		{prefix: "e2-highmem-", gibPerCore: 8, cores: []int{2, 4, 8, 16}, perCore: e2Core, perGiB: e2GiB},
		{prefix: "e2-highcpu-", gibPerCore: 1, cores: []int{2, 4, 8, 16, 32}, perCore: e2Core, perGiB: e2GiB},
		{prefix: "n2-standard-", gibPerCore: 4, cores: []int{2, 4, 8, 16, 32, 48, 64, 80, 96, 128}, perCore: n2Core, perGiB: n2GiB},
		{prefix: "n2-highmem-", gibPerCore: 8, cores: []int{2, 4, 8, 16, 32, 48, 64, 80, 96}, perCore: n2Core, perGiB: n2GiB},
		{prefix: "n2-highcpu-", gibPerCore: 1, cores: []int{2, 4, 8, 16, 32, 48, 64, 80, 96}, perCore: n2Core, perGiB: n2GiB},
	}
}

// machineShapes lists the machine types to choose from, the cheapest first.
func machineShapes() []machineShape {
	// It has half of two cores for as long as it likes.
	shapes := []machineShape{{name: "e2-medium", cores: 1, memory: 4 * gib, weight: 0.033503}}
	for _, f := range machineFamilies() {
		for _, cores := range f.cores {
			memory := float64(cores) * f.gibPerCore
			shapes = append(shapes, machineShape{
				name: f.prefix + fmt.Sprint(cores), cores: float64(cores), memory: schema.Bytes(memory * gib),
				weight: float64(cores)*f.perCore + memory*f.perGiB,
			})
		}
	}
	slices.SortStableFunc(shapes, func(a, b machineShape) int {
		switch {
		case a.weight < b.weight:
			return -1
		case a.weight > b.weight:
			return 1
		}
		return 0
	})
	return shapes
}

// Of is the type of a slice's machines: what its spec names, the one of
// its TPU, or the cheapest with its GPUs and enough cores and memory.
func Of(spec schema.SliceSpec) (string, error) {
	if spec.MachineType != "" {
		return spec.MachineType, nil
	}
	if spec.TPU != "" {
		shape, err := accelerators.Parse(spec.TPU)
		if err != nil {
			return "", err
		}
		return tpuMachineType(shape)
	}
	if spec.GPU.Count > 0 {
		return gpuMachineType(spec)
	}
	shapes := machineShapes()
	for _, s := range shapes {
		if s.cores >= spec.CPU && s.memory >= spec.Memory {
			return s.name, nil
		}
	}
	var cores float64
	var memory schema.Bytes
	for _, s := range shapes {
		cores, memory = max(cores, s.cores), max(memory, s.memory)
	}
	return "", fmt.Errorf("no machine type has %g cores and %g GiB of memory; the largest that are chosen by themselves have %g cores or %g GiB: "+
		"set machine_type", spec.CPU, float64(spec.Memory)/gib, cores, float64(memory)/gib)
}

// tpuMachineType is the type of one host of a TPU slice.
func tpuMachineType(shape accelerators.Shape) (string, error) {
	var prefix string
	var sizes []int
	switch shape.Generation {
	case "v5p":
		prefix, sizes = "ct5p-hightpu-", []int{4}
	case "v6e":
		prefix, sizes = "ct6e-standard-", []int{1, 4, 8}
	case "tpu7x":
		prefix, sizes = "tpu7x-standard-", []int{1, 4}
	}
	if !slices.Contains(sizes, shape.ChipsPerHost) {
		return "", fmt.Errorf("no machine type of Compute Engine has the chips of %s; set engine = \"tpu\"", shape.Type)
	}
	return fmt.Sprintf("%s%dt", prefix, shape.ChipsPerHost), nil
}

// BootImage is the image that a slice's machines boot from.
func BootImage(spec schema.SliceSpec) string {
	const accelerator = "projects/ubuntu-os-accelerator-images/global/images/family/"
	if spec.Cloud.Image != "" {
		return spec.Cloud.Image
	}
	shape, err := accelerators.Parse(spec.TPU)
	gpus, hasGPUs := GPUs(spec)
	switch {
	case hasGPUs && HasDriverImage(gpus.GPU):
		return gpuBootImage
	case err != nil:
		// Not a container-optimized one: its /home is not executable, and uv has
		// nowhere to put what it installs.
		return "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-amd64"
	case shape.Generation == "tpu7x":
		return accelerator + "ubuntu-accel-2404-amd64-tpu-tpu7x"
	}
	return accelerator + "ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"
}

// bootDiskType is the type of boot disk that the machines of a TPU take: Compute
// Engine's own default, pd-standard, is none of them (Cloud TPU documentation, "Storage
// options for Cloud TPU data").
func bootDiskType(shape accelerators.Shape) string {
	if shape.Generation == "v5p" {
		return "pd-balanced"
	}
	return "hyperdisk-balanced"
}

// BootDisk is the size in GiB and the type of a machine's boot disk; "" leaves
// the type to the service.
func BootDisk(spec schema.SliceSpec) (size int64, diskType string) {
	const smallest, plain = 10, 50
	const withAccelerator = 200 // containers with JAX or PyTorch in them take tens of GB
	shape, err := accelerators.Parse(spec.TPU)
	size = plain
	if err == nil {
		size = withAccelerator
		diskType = bootDiskType(shape)
	}
	if gpus, ok := GPUs(spec); ok {
		size, diskType = withAccelerator, gpuBootDiskType(gpus)
	}
	if spec.Disk > 0 {
		size = max(smallest, int64(math.Ceil(float64(spec.Disk)/gib)))
	}
	return size, diskType
}
