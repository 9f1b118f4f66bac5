package accelerators_test

import (
	"testing"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

func TestGPUMachineFor(t *testing.T) {
	const gib = 1 << 30
	for _, test := range []struct {
		gpu    string
		count  int
		cores  float64
		memory schema.Bytes
		want   string // "" for none
	}{
		{"a100", 1, 0, 0, "a2-highgpu-1g"}, {"a100", 8, 0, 0, "a2-highgpu-8g"}, {"a100", 16, 0, 0, "a2-megagpu-16g"},
		{"a100-80gb", 4, 0, 0, "a2-ultragpu-4g"},
		{"h100", 1, 0, 0, "a3-highgpu-1g"}, {"h100", 8, 0, 0, "a3-highgpu-8g"}, {"h100", 8, 208, 1872 * gib, "a3-highgpu-8g"},
		{"h200", 8, 0, 0, "a3-ultragpu-8g"}, {"b200", 8, 0, 0, "a4-highgpu-8g"}, {"rtx-pro-6000", 2, 0, 0, "g4-standard-96"},
		{"l4", 1, 0, 0, "g2-standard-4"}, {"l4", 1, 5, 0, "g2-standard-8"}, {"l4", 1, 0, 100 * gib, "g2-standard-32"},
		{"l4", 2, 0, 0, "g2-standard-24"}, {"l4", 4, 0, 0, "g2-standard-48"}, {"l4", 8, 0, 0, "g2-standard-96"},
		{"t4", 1, 0, 0, "n1-standard-8"}, {"t4", 4, 0, 0, "n1-standard-32"}, {"t4", 1, 1, 0, "n1-standard-1"}, {"t4", 1, 2, 13 * gib, "n1-highmem-2"},
		{"t4", 1, 8, gib, "n1-highcpu-8"}, {"v100", 1, 0, 0, "n1-standard-8"}, {"v100", 8, 96, 600 * gib, "n1-highmem-96"}, {"p100", 4, 64, 0, "n1-highcpu-64"},
		{"a100", 1, 13, 0, ""}, {"h100", 3, 0, 0, ""}, {"v100", 1, 16, 0, ""}, {"p4", 1, 0, 200 * gib, ""}, {"p4", 8, 0, 0, ""},
		{"gb200", 4, 0, 0, ""}, {"rtx4090", 1, 0, 0, ""}, {"", 1, 0, 0, ""},
	} {
		got, ok := accelerators.GPUMachineFor(test.gpu, test.count, test.cores, test.memory)
		if ok != (test.want != "") || got.Name != test.want {
			t.Errorf("%d %s with %g cores and %s: got %q, want %q", test.count, test.gpu, test.cores, test.memory, got.Name, test.want)
		}
	}
}

// TestGPUMachinesAgreeWithTypes: every machine type is of a known type of GPUs, and is found by its name.
func TestGPUMachinesAgreeWithTypes(t *testing.T) {
	for _, m := range accelerators.GPUMachines("") {
		if _, err := accelerators.ParseGPU(m.Accelerator); err != nil && m.Name != "a3-megagpu-8g" {
			t.Errorf("%s: %v", m.Name, err)
		}
		if named, ok := accelerators.GPUMachineNamed(m.Name, m.GPU, m.Count); !ok || named != m {
			t.Errorf("%s is found as %v", m.Name, named)
		}
	}
}
