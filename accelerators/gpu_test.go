package accelerators

import (
	"slices"
	"strings"
	"testing"
)

func TestParseGPU(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"h100": "h100", "H100": "h100", "nvidia-h100-80gb": "h100", "NVIDIA H100 80GB HBM3": "h100", "h100-80gb": "h100", "H100-PCIE-80GB": "h100",
		"a100": "a100", "A100-40GB": "a100", "nvidia-tesla-a100": "a100", "A100-80G": "a100-80gb", "NVIDIA-A100-SXM4-80GB": "a100-80gb", "nvidia-a100-80gb": "a100-80gb",
		"Tesla T4": "t4", "nvidia-l4": "l4", "Tesla V100-SXM2-16GB": "v100", "nvidia-h200-141gb": "h200", "NVIDIA B200": "b200", "b200": "b200",
		"rtx-4090": "rtx4090", "NVIDIA GeForce RTX 4090": "rtx4090", "NVIDIA RTX A6000": "a6000", "nvidia-rtx-pro-6000": "rtx-pro-6000", "L40S": "l40s",
	} {
		if got, err := ParseGPU(name); err != nil || got.Name != want {
			t.Errorf("ParseGPU(%q) = %+v, %v; want %s", name, got, err, want)
		}
	}
	for name, hint := range map[string]string{
		"h10":         `did you mean "h100"?`,
		"H1000":       `did you mean "h100"?`,
		"h100-40gb":   `did you mean "h100"?`,
		"t":           `did you mean "t4"?`,
		"":            "the types are b300,",
		"mi300x":      "the types are",
		"v5litepod-4": `write tpu = "v5litepod-4"`,
		"v5e-4":       `write tpu = "v5litepod-4"`,
	} {
		if got, err := ParseGPU(name); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("ParseGPU(%q) = %+v, %v; want an error with %s", name, got, err, hint)
		}
	}
}

// TestEveryGPUType: its name is canonical, and machines with it have ascending counts.
func TestEveryGPUType(t *testing.T) {
	t.Parallel()
	for _, is := range GPUTypes() {
		if got, err := ParseGPU(is.Name); err != nil || got.Name != is.Name {
			t.Errorf("ParseGPU(%q) = %+v, %v", is.Name, got, err)
		}
		if is.Memory <= 0 || !slices.IsSorted(GPUCounts(is.Name)) {
			t.Errorf("%+v: want some memory and ascending counts", is)
		}
		if err := is.CheckCount(3); err == nil {
			t.Errorf("%s: a machine has 3", is.Name)
		}
		for _, n := range GPUCounts(is.Name) {
			if err := is.CheckCount(n); err != nil {
				t.Error(err)
			}
		}
	}
}
