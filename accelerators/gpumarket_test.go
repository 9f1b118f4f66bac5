package accelerators_test

import (
	"slices"
	"testing"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

func gpus(kind string, count int, change ...func(*schema.SliceSpec)) schema.SliceSpec {
	s := schema.SliceSpec{GPU: schema.GPU{Type: kind, Count: count}}
	for _, each := range change {
		each(&s)
	}
	return s
}

// TestEstimateOfGPUs compares estimates with what Compute Engine's price list has of whole
// machines in us-central1: the low end.
func TestEstimateOfGPUs(t *testing.T) {
	spot := func(s *schema.SliceSpec) { s.Preemptible = true }
	of := func(machineType string) func(*schema.SliceSpec) {
		return func(s *schema.SliceSpec) { s.MachineType = machineType }
	}
	offers := []schema.Market{{Name: "t4", OnDemand: 0.5}, {Name: "a3-highgpu-8g", OnDemand: 80}, {Name: "gh200", OnDemand: 3}}
	for _, test := range []struct {
		name      string
		spec      schema.SliceSpec
		offers    []schema.Market
		low, high float64 // an hour; 0: not known
	}{
		{"a100", gpus("a100", 1), nil, 3.673385, 4.37},
		{"eight a100", gpus("a100", 8), nil, 29.38708, 34.9},
		{"a100 of 80 GB", gpus("a100-80gb", 1), nil, 5.06879789, 6.23},
		{"h100", gpus("h100", 8), nil, 88.49, 114.6},
		{"h100 of A3 Mega", gpus("h100", 8, of("a3-megagpu-8g")), nil, 93.400713, 120.9},
		{"h200", gpus("h200", 8), nil, 84.806908, 84.81},
		{"the smallest machine of an l4", gpus("l4", 1), nil, 0.705, 1.08},
		{"four l4", gpus("l4", 4), nil, 3.99, 5.8},
		{"another machine type", gpus("l4", 1, of("g2-standard-32")), nil, 1.7325, 2.364},
		{"eight cores with an attached t4", gpus("t4", 1), nil, 0.35 + 8*0.031611 + 30*0.004237, 0.955},
		{"no price on demand", gpus("b200", 8), nil, 0, 0},
		{"a spot price all the same", gpus("b200", 8, spot), nil, 39.6, 46.2},
		{"spot", gpus("h100", 1, spot), nil, 1.45, 4.06},
		{"a type that Google Cloud has not", gpus("gh200", 1), nil, 0, 0},
		{"a number that no machine has", gpus("h100", 3), nil, 0, 0},
		{"an offer of a type is for one GPU", gpus("t4", 4), offers, 2, 2},
		{"an offer of a machine type", gpus("h100", 8), offers, 80, 80},
		{"an offer of a machine type that is stated", gpus("h100", 8, of("a3-highgpu-8g")), offers, 80, 80},
		{"an offer of what is not built in", gpus("gh200", 2), offers, 6, 6},
		{"a machine type without a gpu block", schema.SliceSpec{MachineType: "a2-highgpu-1g"}, nil, 3.673385, 4.37},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := accelerators.EstimateOf(&test.spec, test.offers)
			close := func(got, want float64) bool { return got >= want*0.995 && got <= want*1.005 || got == want }
			if !close(got.PerHour.Low, test.low) || !close(got.PerHour.High, test.high) || got.PerHour.Known() != (test.high > 0) {
				t.Errorf("got %+v an hour, want %g to %g", got.PerHour, test.low, test.high)
			}
			if n := float64(test.spec.GPU.Count); n > 0 && !near(got.PerChipHour.Times(n), got.PerHour) {
				t.Errorf("got %+v for a GPU, want a share of %+v", got.PerChipHour, got.PerHour)
			}
		})
	}
}

func TestOfferedZonesOfGPUs(t *testing.T) {
	for _, test := range []struct {
		name, of string
		offers   []schema.Market
		has, not string // zones; "": nothing is known
	}{
		{"by type and count", "h100:8", nil, "us-west4-a", "us-west4-b"},
		{"another machine type than the one that is chosen", "a3-megagpu-8g", nil, "europe-west4-b", "europe-west4-a"},
		{"by the machine of the count", "a100:16", nil, "us-central1-f", "us-east4-c"},
		{"attached", "t4:1", nil, "us-central1-a", "us-east5-a"},
		{"an offer of the type", "h100:8", []schema.Market{{Name: "h100", Zones: []string{"us-east9-a"}}}, "us-east9-a", "us-west4-a"},
		{"an offer of the machine type", "h100:8", []schema.Market{{Name: "h100", Zones: []string{"us-east9-a"}}, {Name: "a3-highgpu-8g", Zones: []string{"us-east9-b"}}}, "us-east9-b", "us-east9-a"},
		{"an offer of what is not built in", "gh200:1", []schema.Market{{Name: "gh200", Zones: []string{"us-east9-a"}}}, "us-east9-a", "us-west4-a"},
		{"what Google Cloud has not", "gh200:1", nil, "", "us-west4-a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := accelerators.OfferedZones(test.of, test.offers)
			if test.has != "" && !slices.Contains(got, test.has) || test.has == "" && len(got) > 0 || slices.Contains(got, test.not) {
				t.Errorf("got %v, want %q and not %q", got, test.has, test.not)
			}
		})
	}
	provider := &schema.Provider{Name: schema.ProviderGCP, Zones: []string{"us-west4-b", "us-west4-a"}}
	if got := accelerators.CandidateZones(provider, "h100:8", nil, nil); !slices.Equal(got, []string{"us-west4-a"}) {
		t.Errorf("candidates are %v, want the zone of the provider that has h100", got)
	}
}
