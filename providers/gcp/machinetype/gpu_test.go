package machinetype

import (
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
)

func TestMachinesWithGPUs(t *testing.T) {
	for _, test := range []struct {
		name        string
		spec        schema.SliceSpec
		machine     string
		accelerator string // "" for none that a request names
		attached    bool
		diskType    string
		image       string // a part of it
	}{
		{"a100", schema.SliceSpec{GPU: schema.GPU{Type: "a100", Count: 16}}, "a2-megagpu-16g", "nvidia-tesla-a100", false, "pd-balanced", "with-nvidia"},
		{"h200", schema.SliceSpec{GPU: schema.GPU{Type: "h200", Count: 8}}, "a3-ultragpu-8g", "nvidia-h200-141gb", false, "hyperdisk-balanced", "with-nvidia"},
		{"a machine type of its own", schema.SliceSpec{GPU: schema.GPU{Type: "h100", Count: 8}, MachineType: "a3-megagpu-8g"},
			"a3-megagpu-8g", "nvidia-h100-mega-80gb", false, "pd-balanced", "with-nvidia"},
		{"a machine type that is not known", schema.SliceSpec{GPU: schema.GPU{Type: "b300", Count: 8}, MachineType: "a9-highgpu-8g"},
			"a9-highgpu-8g", "", false, "pd-balanced", "with-nvidia"},
		{"a machine type alone", schema.SliceSpec{MachineType: "a2-highgpu-1g"}, "a2-highgpu-1g", "nvidia-tesla-a100", false, "pd-balanced", "with-nvidia"},
		{"attached", schema.SliceSpec{GPU: schema.GPU{Type: "t4", Count: 4}, CPU: 16}, "n1-standard-16", "nvidia-tesla-t4", true, "pd-balanced", "with-nvidia"},
		{"attached to a custom machine", schema.SliceSpec{GPU: schema.GPU{Type: "t4", Count: 1}, MachineType: "n1-custom-6-20480"},
			"n1-custom-6-20480", "nvidia-tesla-t4", true, "pd-balanced", "with-nvidia"},
		{"older than the driver's modules", schema.SliceSpec{GPU: schema.GPU{Type: "v100", Count: 1}}, "n1-standard-8", "nvidia-tesla-v100", true, "pd-balanced", "ubuntu-2404-lts-amd64"},
		{"an image of its own", schema.SliceSpec{GPU: schema.GPU{Type: "v100", Count: 1}, Cloud: schema.CloudSpec{Image: "projects/x/global/images/y"}},
			"n1-standard-8", "nvidia-tesla-v100", true, "pd-balanced", "images/y"},
	} {
		t.Run(test.name, func(t *testing.T) {
			machine, err := Of(test.spec)
			gpus, ok := GPUs(test.spec)
			if err != nil || machine != test.machine || !ok || gpus.Name != machine || gpus.Accelerator != test.accelerator || gpus.Attached != test.attached {
				t.Errorf("machine type %q, %v with %+v; want %q with %q", machine, err, gpus, test.machine, test.accelerator)
			}
			size, diskType := BootDisk(test.spec)
			if size != 200 || diskType != test.diskType {
				t.Errorf("boot disk of %d GiB, %q; want 200, %q", size, diskType, test.diskType)
			}
			if image := BootImage(test.spec); !strings.Contains(image, test.image) {
				t.Errorf("image %q, want one with %q", image, test.image)
			}
		})
	}
	if gpus, ok := GPUs(schema.SliceSpec{MachineType: "n2-standard-8"}); ok {
		t.Errorf("n2-standard-8 has %v", gpus)
	}
}

func TestMachinesWithGPUsThatAreNot(t *testing.T) {
	for _, test := range []struct {
		name string
		spec schema.SliceSpec
		want string
	}{
		{"a number that no machine has", schema.SliceSpec{GPU: schema.GPU{Type: "h100", Count: 3}}, "no machine type of Compute Engine has 3 h100: its machines have 1, 2, 4, 8 of them"},
		{"a type for Arm hosts", schema.SliceSpec{GPU: schema.GPU{Type: "gb200", Count: 4}}, "is known with gb200 for hosts with x86-64 processors: set machine_type"},
		{"more cores than there are", schema.SliceSpec{GPU: schema.GPU{Type: "a100", Count: 1}, CPU: 16}, "no machine type with 1 a100 has 16 cores and 0 GiB of memory; the largest have 12 cores or 85 GiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, err := Of(test.spec); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, %v; want an error that says %q", got, err, test.want)
			}
		})
	}
}
