package accelerators

import (
	"strings"

	"github.com/fray-ml/fray/schema"
)

// gpuMarket is what is published of a type of GPUs of Compute Engine: the zones that
// list it, and what an hour of one GPU costs in US dollars.
type gpuMarket struct {
	zones          string // separated by spaces
	onDemand, spot Price  // between the cheapest and the dearest of the zones
	// host is the family whose vCPUs and memory are paid for beside the GPUs; the prices
	// of a market without one include the share of the machine.
	host family
}

// The families of machines with GPUs, at Compute Engine's list prices in us-central1.
func familyA2() family { return family{name: "a2", core: 0.031611, gib: 0.004237} }
func familyG2() family { return family{name: "g2", core: 0.024988, gib: 0.002927} }
func familyN1() family { return familyNamed("n1") }

// builtinGPUMarket is the table of GPUs by the name that Compute Engine has for them,
// from its price lists of accelerator-optimized machines, GPUs and Spot VMs and its list
// of GPU zones. On demand there is no price for B200: those machines are had as spot,
// flex-start and reserved capacity.
func builtinGPUMarket(accelerator string) gpuMarket {
	switch accelerator {
	case "nvidia-tesla-a100":
		return gpuMarket{
			zones: "asia-northeast1-a asia-northeast1-c asia-northeast3-a asia-northeast3-b asia-southeast1-a asia-southeast1-b asia-southeast1-c " +
				"europe-west4-a europe-west4-b me-west1-a me-west1-c us-central1-a us-central1-b us-central1-c us-central1-f " +
				"us-east1-b us-west1-b us-west3-b us-west4-b",
			onDemand: Price{2.933908, 3.43686}, spot: Price{1.058, 1.5648}, host: familyA2(),
		}
	case "nvidia-a100-80gb":
		return gpuMarket{
			zones:    "asia-southeast1-c europe-west4-a us-central1-a us-central1-c us-east4-c us-east5-a us-east5-b",
			onDemand: Price{3.96918, 4.84607}, spot: Price{1.3356, 2.1626}, host: familyA2(),
		}
	case "nvidia-h100-80gb":
		return gpuMarket{
			zones: "asia-east1-c asia-northeast1-b asia-northeast3-a asia-northeast3-c asia-south1-c asia-south2-b asia-southeast1-b asia-southeast1-c " +
				"australia-southeast1-c europe-north1-c europe-west1-b europe-west1-c europe-west2-b europe-west3-a europe-west3-c " +
				"europe-west4-b europe-west4-c europe-west9-c northamerica-northeast2-c us-central1-a us-central1-b us-central1-c " +
				"us-east4-a us-east4-b us-east4-c us-east5-a us-west1-a us-west1-b us-west4-a",
			onDemand: Price{11.06125, 14.32}, spot: Price{1.45, 4.06},
		}
	case "nvidia-h100-mega-80gb":
		return gpuMarket{
			zones: "asia-northeast1-b asia-northeast3-a asia-northeast3-c asia-south1-c asia-southeast1-b asia-southeast1-c australia-southeast1-c " +
				"europe-west1-b europe-west1-c europe-west3-a europe-west3-c europe-west4-b europe-west4-c northamerica-northeast2-c " +
				"us-central1-a us-central1-b us-central1-c us-east4-a us-east4-b us-east4-c us-east5-a us-west1-a us-west1-b us-west4-a",
			onDemand: Price{11.675089, 15.11}, spot: Price{1.98, 3.75},
		}
	case "nvidia-h200-141gb":
		return gpuMarket{
			zones: "asia-south1-b asia-south2-c europe-west1-b europe-west4-a us-central1-b us-east4-b us-east5-a us-south1-b us-west1-c",
			// Published of us-central1, us-east4 and us-west1.
			onDemand: exactly(10.600864), spot: Price{3.77, 6.01},
		}
	case "nvidia-b200":
		return gpuMarket{
			zones: "asia-northeast1-b asia-southeast1-b europe-north1-b europe-west4-b us-central1-b us-east1-b us-east4-b us-south1-b " +
				"us-west2-c us-west3-b us-west3-c",
			spot: Price{4.95, 5.77},
		}
	case "nvidia-rtx-pro-6000":
		return gpuMarket{onDemand: exactly(4.49993)} // of us-central1
	case "nvidia-l4":
		return gpuMarket{
			zones: "asia-east1-a asia-east1-b asia-east1-c asia-northeast1-a asia-northeast1-b asia-northeast1-c asia-northeast3-a asia-northeast3-b " +
				"asia-south1-a asia-south1-b asia-south1-c asia-southeast1-a asia-southeast1-b asia-southeast1-c europe-west1-b europe-west1-c " +
				"europe-west2-a europe-west2-b europe-west3-a europe-west3-b europe-west4-a europe-west4-b europe-west4-c europe-west6-b " +
				"europe-west6-c me-central2-a me-central2-c northamerica-northeast1-b northamerica-northeast1-c northamerica-northeast2-a " +
				"northamerica-northeast2-b us-central1-a us-central1-b us-central1-c us-east1-b us-east1-c us-east1-d us-east4-a us-east4-c " +
				"us-west1-a us-west1-b us-west1-c us-west4-a us-west4-c",
			onDemand: Price{0.55821, 0.89606}, spot: Price{0.1555, 0.3895}, host: familyG2(),
		}
	case "nvidia-tesla-t4":
		return gpuMarket{
			zones: "asia-east1-a asia-east1-c asia-east2-a asia-east2-c asia-northeast1-a asia-northeast1-c asia-northeast3-b asia-northeast3-c " +
				"asia-south1-a asia-south1-b asia-southeast1-a asia-southeast1-b asia-southeast1-c asia-southeast2-a asia-southeast2-b " +
				"australia-southeast1-a australia-southeast1-c europe-central2-b europe-central2-c europe-west1-b europe-west1-c europe-west1-d " +
				"europe-west2-a europe-west2-b europe-west3-b europe-west4-a europe-west4-b europe-west4-c me-west1-b me-west1-c " +
				"northamerica-northeast1-c southamerica-east1-a southamerica-east1-b southamerica-east1-c us-central1-a us-central1-b " +
				"us-central1-c us-central1-f us-east1-b us-east1-c us-east1-d us-east4-a us-east4-b us-east4-c us-west1-a us-west1-b " +
				"us-west2-b us-west2-c us-west3-b us-west4-a us-west4-b",
			onDemand: Price{0.35, 0.48}, spot: Price{0.1093, 0.2329}, host: familyN1(),
		}
	case "nvidia-tesla-p4":
		return gpuMarket{
			zones: "asia-southeast1-a asia-southeast1-b asia-southeast1-c australia-southeast1-a australia-southeast1-b europe-west4-b europe-west4-c " +
				"northamerica-northeast1-a northamerica-northeast1-b northamerica-northeast1-c us-central1-a us-central1-c us-east4-a us-east4-b " +
				"us-east4-c us-west2-b us-west2-c",
			onDemand: Price{0.60, 0.72}, spot: Price{0.0585, 0.2236}, host: familyN1(),
		}
	case "nvidia-tesla-v100":
		return gpuMarket{
			zones: "asia-east1-c europe-west4-a europe-west4-b europe-west4-c us-central1-a us-central1-b us-central1-c us-central1-f " +
				"us-east1-b us-east1-c us-west1-a us-west1-b",
			onDemand: Price{2.48, 2.604}, spot: Price{0.6356, 1.0885}, host: familyN1(),
		}
	case "nvidia-tesla-p100":
		return gpuMarket{
			zones: "asia-east1-a asia-east1-c australia-southeast1-b europe-west1-b europe-west1-d europe-west4-a us-central1-c us-central1-f " +
				"us-east1-b us-east1-c us-west1-a us-west1-b",
			onDemand: Price{1.46, 1.60}, spot: Price{0.144, 0.7034}, host: familyN1(),
		}
	}
	return gpuMarket{}
}

// market is that of a machine type, with what a provider's offers override: those of the
// machine type itself, then those of its GPU, whose prices are for one GPU with its share
// of the machine.
func (m GPUMachine) market(offers []schema.Market) market {
	of := builtinGPUMarket(m.Accelerator)
	gpus := float64(m.Count)
	built := market{zones: strings.Fields(of.zones)}
	host := machine{family: of.host, cores: m.Cores, gib: float64(m.Memory) / (1 << 30)}.onDemand()
	if of.onDemand.Known() {
		built.onDemand = of.onDemand.Times(gpus).Plus(host)
	}
	if of.spot.Known() {
		built.spot = of.spot.Times(gpus).Plus(Price{Low: host.Low * cheapestSpot, High: host.High * dearestSpot})
	}
	if stated, ok := offerNamed(m.GPU, offers); ok {
		stated.OnDemand, stated.Spot = stated.OnDemand*gpus, stated.Spot*gpus
		built = built.overridden(stated)
	}
	if stated, ok := offerNamed(m.Name, offers); ok {
		built = built.overridden(stated)
	}
	return built
}

// GPUZones are the zones that list a type of GPUs, by the name that Compute Engine has
// for it; nil where none is known.
func GPUZones(accelerator string) []string {
	return strings.Fields(builtinGPUMarket(accelerator).zones)
}

// gpuMachineOf is the machine type that a slice with GPUs is made of on Compute Engine,
// false where none is known.
func gpuMachineOf(s *schema.SliceSpec) (GPUMachine, bool) {
	if s.MachineType != "" {
		return GPUMachineNamed(s.MachineType, s.GPU.Type, s.GPU.Count)
	}
	return GPUMachineFor(s.GPU.Type, s.GPU.Count, s.CPU, s.Memory)
}
