package cloud

import (
	"slices"

	"github.com/fray-ml/fray/accelerators"
)

// RegionGlobal is the region of a quota of the whole project.
const RegionGlobal = "global"

// TypeGPU is the type of a quota of all GPUs together.
const TypeGPU = "gpu"

// GPU is a type of GPUs. Its capacity is in GPUs.
type GPU struct {
	Type        string // of capacity and quotas, "h100"
	Accelerator string // as Compute Engine names it, "nvidia-h100-80gb"
}

// GPUs are the types of GPUs that there are.
func GPUs() []GPU {
	return []GPU{
		{"a100", "nvidia-tesla-a100"}, {"a100-80gb", "nvidia-a100-80gb"}, {"b200", "nvidia-b200"}, {"h100", "nvidia-h100-80gb"},
		{"h100-mega", "nvidia-h100-mega-80gb"}, {"h200", "nvidia-h200-141gb"}, {"l4", "nvidia-l4"}, {"p100", "nvidia-tesla-p100"},
		{"p4", "nvidia-tesla-p4"}, {"rtx-pro-6000", "nvidia-rtx-pro-6000"}, {"t4", "nvidia-tesla-t4"}, {"v100", "nvidia-tesla-v100"},
	}
}

// GPUNamed is the type of GPUs that Compute Engine has that name for, false if there is none.
func GPUNamed(accelerator string) (GPU, bool) {
	i := slices.IndexFunc(GPUs(), func(g GPU) bool { return g.Accelerator == accelerator })
	if i < 0 {
		return GPU{}, false
	}
	return GPUs()[i], true
}

// IsGPU reports whether a type of capacity is one of GPUs.
func IsGPU(kind string) bool {
	return slices.ContainsFunc(GPUs(), func(g GPU) bool { return g.Type == kind })
}

// offeredGPUs returns the zones in which each type of GPUs is published to be.
func offeredGPUs() map[string][]string {
	offered := map[string][]string{}
	for _, g := range GPUs() {
		offered[g.Type] = accelerators.GPUZones(g.Accelerator)
	}
	return offered
}

// limits reports whether a quota counts capacity of a type in a region.
func (q Quota) limits(region, kind string) bool {
	return (q.Region == region || q.Region == RegionGlobal) && (q.Type == kind || q.Type == TypeGPU && IsGPU(kind))
}
