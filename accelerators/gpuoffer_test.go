package accelerators_test

import (
	"testing"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

func TestGPUOffers(t *testing.T) {
	query := accelerators.Query{Provider: schema.ProviderGCP, GPU: "h100", MinChips: 8, Zones: []string{"europe-west4-b", "us-nowhere1-a"}}
	got := accelerators.GPUOffers(query)
	if len(got) != 2 || got[0].MachineType != "a3-highgpu-8g" || got[1].MachineType != "a3-megagpu-8g" || got[0].Memory != 80 || got[0].Cores != 208 ||
		len(got[0].Zones) != 1 || got[0].Zones[0].Zone != "europe-west4-b" || got[0].Zones[0].OnDemand != 11.06125 {
		t.Errorf("got %+v, want two machine types in one zone", got)
	}
	attached := accelerators.GPUOffers(accelerators.Query{Provider: schema.ProviderGCP, GPU: "t4"})
	if len(attached) != 3 || attached[2].MachineType != "n1-standard-32" || attached[2].GPU.Count != 4 {
		t.Errorf("got %+v, want the machine of each number of attached GPUs", attached)
	}
	local := accelerators.GPUOffers(accelerators.Query{Provider: schema.ProviderLocal, GPU: "rtx4090"})
	if len(local) != 1 || local[0].MachineType != "" || len(local[0].Zones) != 1 || local[0].Zones[0] != (accelerators.PricedZone{Zone: "local"}) {
		t.Errorf("local: got %+v, want it for nothing", local)
	}
	query = accelerators.Query{Provider: schema.ProviderGCP, Generation: "v6e"}
	if got := accelerators.GPUOffers(query); len(got) > 0 {
		t.Errorf("of a TPU generation: got %+v, want none", got)
	}
	query = accelerators.Query{Provider: schema.ProviderGCP, GPU: "l4"}
	if got := accelerators.Offers(query); len(got) > 0 {
		t.Errorf("TPUs of a query for GPUs: got %+v, want none", got)
	}
}
