package check

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/machinetype"
	"github.com/fray-ml/fray/schema"
)

// machineCatalog is what Compute Engine lists of a machine type.
type machineCatalog struct {
	Accelerators []struct {
		Type  string `json:"guestAcceleratorType"` // "nvidia-h100-80gb"
		Count int    `json:"guestAcceleratorCount"`
	} `json:"accelerators"`
}

// attachedName is the type of GPUs that a wish has attached to its machines, as Compute
// Engine names it; "" for none.
func attachedName(w *wish) string {
	if gpus, ok := machinetype.GPUs(w.spec); ok && gpus.Attached {
		return gpus.Accelerator
	}
	return ""
}

// acceleratorTypes looks up the types of GPUs that are to be attached and returns those that
// a zone does not have.
func (c *checker) acceleratorTypes(ctx context.Context, found *placesFound) map[machineIn]bool {
	asked := distinct(c.wishes, func(w *wish) []machineIn {
		var of []machineIn
		for _, zone := range w.zonesOf(schema.EngineGCE) {
			if name := attachedName(w); name != "" && !found.unknown(zone, schema.EngineGCE) {
				of = append(of, machineIn{name, zone})
			}
		}
		return of
	})
	lacking := map[machineIn]bool{}
	var mu sync.Mutex
	eachAtOnce(c, asked, func(m machineIn) {
		var is struct{}
		err := c.rest.get(ctx, "compute", c.computePath("zones/"+m.zone+"/acceleratorTypes/"+m.name), &is)
		c.passes(err)
		if isMissing(err) {
			mu.Lock()
			defer mu.Unlock()
			lacking[m] = true
		}
	})
	return lacking
}

// compareGPUs reports wishes for GPUs whose machine type has others, as Compute Engine
// lists it, and GPUs that a wish does not mention.
func (c *checker) compareGPUs(name string, is *machineCatalog) {
	for i := range c.wishes {
		w := &c.wishes[i]
		if machineName(w) != name || w.spec.MachineType == "" || w.spec.TPU != "" {
			continue
		}
		want := w.spec.GPU
		gpus, _ := machinetype.GPUs(w.spec)
		switch {
		case gpus.Attached:
		case len(is.Accelerators) == 0 && want.Count > 0:
			c.add(problemAt(w.atShape(), "Machine type has no GPUs", fmt.Sprintf(
				"Machines of the type %s have no GPUs, and the job asks for %s: remove machine_type for a type that has them.", name, want)))
		case len(is.Accelerators) > 0 && want.Count == 0:
			if has := is.Accelerators[0]; strings.HasPrefix(has.Type, "nvidia-") {
				c.add(warningAt(w.atShape(), "GPUs are not asked for", fmt.Sprintf(
					"Machines of the type %s have %d %s. Tasks get them as GPUs if resources has a gpu block: gpu { type = %q, count = %[2]d }, each attribute on a line of its own.",
					name, has.Count, has.Type, gpuTypeOf(has.Type))))
			}
		case want.Count > 0:
			if has := is.Accelerators[0]; has.Count != want.Count || gpuTypeOf(has.Type) != want.Type {
				c.add(problemAt(w.atShape(), "Machine type has other GPUs", fmt.Sprintf(
					"Machines of the type %s have %d %s, and the job asks for %s: correct the gpu block, or remove machine_type.", name, has.Count, has.Type, want)))
			}
		}
	}
}

// gpuTypeOf is the type of GPUs that Compute Engine has a name for; that name if there is none.
func gpuTypeOf(accelerator string) string {
	if t, err := accelerators.ParseGPU(strings.Replace(accelerator, "-mega-", "-", 1)); err == nil {
		return t.Name
	}
	return accelerator
}

// shapesOfGPUs reports machines with GPUs that cannot be had as they are asked for, and those
// that no known image has a driver for.
func (c *checker) shapesOfGPUs() {
	for i := range c.wishes {
		w := &c.wishes[i]
		gpus, ok := machinetype.GPUs(w.spec)
		if !ok || w.spec.TPU != "" {
			continue
		}
		if gpus.SpotOnly && !w.spec.Preemptible && w.spec.Cloud.Provisioning != schema.ProvisioningFlexStart {
			c.add(problemAt(w.at("preemptible", false), "Not available on demand", fmt.Sprintf(
				"Compute Engine has %s as spot and flex-start capacity only: set preemptible = true, or provisioning = \"flex-start\" and max_run, or ask for as many GPUs as its largest machines have.",
				gpus.Name)))
		}
		if w.spec.Cloud.Image == "" && gpus.GPU != "" && !machinetype.HasDriverImage(gpus.GPU) {
			c.add(problemAt(w.atShape(), "No boot image with a driver", fmt.Sprintf(
				"fray knows no boot image with an NVIDIA driver for %s, which its usual image has for later GPUs only: set boot_image to an image of Ubuntu or Debian that has one.", gpus.GPU)))
		}
	}
}
