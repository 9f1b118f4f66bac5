package machinetype

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

// GPUs are the GPUs of a slice's machines, with the machine type that has them; false
// for machines without. A machine type that is stated and not known is taken to come
// with the GPUs that the slice asks for.
func GPUs(spec schema.SliceSpec) (accelerators.GPUMachine, bool) {
	gpu := spec.GPU
	switch {
	case gpu.Count == 0 && spec.MachineType == "":
		return accelerators.GPUMachine{}, false
	case gpu.Count == 0:
		return accelerators.GPUMachineWith(spec.MachineType)
	case spec.MachineType == "":
		return accelerators.GPUMachineFor(gpu.Type, gpu.Count, spec.CPU, spec.Memory)
	}
	if m, ok := accelerators.GPUMachineNamed(spec.MachineType, gpu.Type, gpu.Count); ok {
		return m, true
	}
	m := accelerators.GPUMachine{Name: spec.MachineType, GPU: gpu.Type, Count: gpu.Count}
	if like := accelerators.GPUMachines(gpu.Type); strings.HasPrefix(spec.MachineType, "n1-") && len(like) > 0 && like[0].Attached {
		m.Attached, m.Accelerator = true, like[0].Accelerator // a custom machine
	}
	return m, true
}

// gpuMachineType is the machine type of a slice that states GPUs and no machine type.
func gpuMachineType(spec schema.SliceSpec) (string, error) {
	if m, ok := GPUs(spec); ok {
		return m.Name, nil
	}
	counts := accelerators.GPUCounts(spec.GPU.Type)
	switch {
	case len(counts) == 0:
		return "", fmt.Errorf("no machine type of Compute Engine is known with %s for hosts with x86-64 processors: set machine_type to one that has them",
			spec.GPU.Type)
	case !slices.Contains(counts, spec.GPU.Count):
		texts := make([]string, 0, len(counts))
		for _, n := range counts {
			texts = append(texts, strconv.Itoa(n))
		}
		return "", fmt.Errorf("no machine type of Compute Engine has %s: its machines have %s of them", spec.GPU, strings.Join(texts, ", "))
	}
	most := accelerators.GPUMachine{}
	for _, m := range accelerators.GPUMachines(spec.GPU.Type) {
		if m.Count == spec.GPU.Count {
			most.Cores, most.Memory = max(most.Cores, m.Cores), max(most.Memory, m.Memory)
		}
	}
	return "", fmt.Errorf("no machine type with %s has %g cores and %g GiB of memory; the largest have %g cores or %g GiB: ask for less, or set machine_type",
		spec.GPU, spec.CPU, float64(spec.Memory)/gib, most.Cores, float64(most.Memory)/gib)
}

// gpuBootImage has NVIDIA's driver with its open kernel modules, and runs Ubuntu.
const gpuBootImage = "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accelerator-2404-amd64-with-nvidia-580"

// HasDriverImage reports whether fray knows an image with a driver for a type of GPUs.
// NVIDIA's open kernel modules, which that image has, need Turing or later GPUs.
func HasDriverImage(gpu string) bool { return !slices.Contains([]string{"v100", "p100", "p4"}, gpu) }

// gpuBootDiskType is the type of boot disk of a machine with GPUs: the service's default,
// pd-standard, is none that accelerator-optimized machines take.
func gpuBootDiskType(m accelerators.GPUMachine) string {
	if m.NoPersistentDisk {
		return "hyperdisk-balanced"
	}
	return "pd-balanced"
}

// NeedsGVNIC reports whether a machine takes Google's own network interface only, as those
// with H100 and later GPUs do.
func NeedsGVNIC(m accelerators.GPUMachine) bool {
	return slices.ContainsFunc([]string{"a3-", "a4-", "g4-"}, func(prefix string) bool { return strings.HasPrefix(m.Name, prefix) })
}
