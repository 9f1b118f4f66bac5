package machinetype

import (
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
)

func TestMachineTypeIsTheCheapestThatFits(t *testing.T) {
	for _, test := range []struct {
		name   string
		cores  float64
		memory float64 // GiB
		want   string
	}{
		{"nothing said", 0, 0, "e2-medium"},
		{"half a core", 0.5, 1, "e2-medium"},
		{"one core, some memory", 1, 4, "e2-medium"},
		{"two cores, little memory", 2, 2, "e2-highcpu-2"},
		{"two cores, four a core", 2, 8, "e2-standard-2"},
		{"a byte more than that", 2, 8.001, "e2-highmem-2"},
		{"eight a core", 4, 32, "e2-highmem-4"},
		{"an odd number of cores", 3, 10, "e2-standard-4"},
		{"much memory, one core", 1, 100, "e2-highmem-16"},
		{"more than e2 has", 33, 33, "n2-highcpu-48"},
		{"more memory than e2 has", 8, 200, "n2-highmem-32"},
		{"the most cores", 128, 512, "n2-standard-128"},
		{"the most memory", 2, 768, "n2-highmem-96"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Of(schema.SliceSpec{CPU: test.cores, Memory: schema.Bytes(test.memory * gib)})
			if err != nil || got != test.want {
				t.Errorf("%g cores and %g GiB: got %q, %v; want %q", test.cores, test.memory, got, err, test.want)
			}
		})
	}
}

// TestMachineTypeFitsAndIsNotUndercut compares every choice with a search through
// the whole table.
func TestMachineTypeFitsAndIsNotUndercut(t *testing.T) {
	shapes := machineShapes()
	for cores := 0.5; cores <= 96; cores += 1.5 {
		for memory := schema.Bytes(gib); memory <= 600*gib; memory += 13 * gib {
			name, err := Of(schema.SliceSpec{CPU: cores, Memory: memory})
			var best *machineShape
			for i := range shapes {
				if s := &shapes[i]; s.cores >= cores && s.memory >= memory && (best == nil || s.weight < best.weight) {
					best = s
				}
			}
			if (best == nil) != (err != nil) || best != nil && best.name != name {
				t.Fatalf("%g cores and %d GiB: got %q, %v; the best is %v", cores, memory/gib, name, err, best)
			}
		}
	}
}

func TestMachineTypeThatIsStatedWins(t *testing.T) {
	for _, spec := range []schema.SliceSpec{
		{MachineType: "c3-standard-4", CPU: 64},
		{MachineType: "c3-standard-4", TPU: "v6e-8"},
	} {
		if got, err := Of(spec); got != "c3-standard-4" || err != nil {
			t.Errorf("machine type of %+v is %q, %v", spec, got, err)
		}
	}
}

func TestMachineTypeOfEveryTPU(t *testing.T) {
	for tpu, want := range map[string]string{
		"v5p-8": "ct5p-hightpu-4t", "v5p-128": "ct5p-hightpu-4t",
		"v6e-1": "ct6e-standard-1t", "v6e-4": "ct6e-standard-4t", "v6e-8": "ct6e-standard-8t", "v6e-256": "ct6e-standard-4t",
		"tpu7x-8": "tpu7x-standard-4t", "tpu7x-16": "tpu7x-standard-4t",
	} {
		if got, err := Of(schema.SliceSpec{TPU: tpu}); got != want || err != nil {
			t.Errorf("machine type of %s is %q, %v; want %q", tpu, got, err, want)
		}
	}
}

func TestMachineTypeRejections(t *testing.T) {
	for _, test := range []struct {
		name string
		spec schema.SliceSpec
		want string
	}{
		{"too many cores", schema.SliceSpec{CPU: 200}, "set machine_type"},
		{"too much memory", schema.SliceSpec{Memory: 2000 * gib}, "2000 GiB"},
		{"a TPU that Compute Engine never had", schema.SliceSpec{TPU: "v3-8"}, `engine = "tpu"`},
		{"a TPU that GKE has on such machines", schema.SliceSpec{TPU: "v5litepod-16"}, `engine = "tpu"`},
		{"no TPU type", schema.SliceSpec{TPU: "v9-8"}, "v9-8"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, err := Of(test.spec); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, %v; want an error that says %q", got, err, test.want)
			}
		})
	}
}

func TestBootDiskAndImage(t *testing.T) {
	for _, test := range []struct {
		name     string
		spec     schema.SliceSpec
		size     int64
		diskType string
		image    string // its end
	}{
		{"plain", schema.SliceSpec{}, 50, "", "ubuntu-2404-lts-amd64"},
		{"plain, stated", schema.SliceSpec{Disk: 100*gib + 1, Cloud: schema.CloudSpec{Image: "projects/x/global/images/y"}}, 101, "", "images/y"},
		{"plain, too small", schema.SliceSpec{Disk: 1}, 10, "", "ubuntu-2404-lts-amd64"},
		{"v5p", schema.SliceSpec{TPU: "v5p-8"}, 200, "pd-balanced", "tpu-v5e-v5p-v6e"},
		{"v6e", schema.SliceSpec{TPU: "v6e-4", Disk: 300 * gib}, 300, "hyperdisk-balanced", "tpu-v5e-v5p-v6e"},
		{"tpu7x", schema.SliceSpec{TPU: "tpu7x-8"}, 200, "hyperdisk-balanced", "tpu-tpu7x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			size, diskType := BootDisk(test.spec)
			if size != test.size || diskType != test.diskType {
				t.Errorf("boot disk of %d GiB, %q; want %d, %q", size, diskType, test.size, test.diskType)
			}
			if image := BootImage(test.spec); !strings.HasSuffix(image, test.image) {
				t.Errorf("image %q, want one that ends in %q", image, test.image)
			}
		})
	}
}
