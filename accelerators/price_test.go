package accelerators_test

import (
	"math"
	"slices"
	"testing"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

func TestEstimateOf(t *testing.T) {
	offers := []schema.Market{
		{Name: "v6e", OnDemand: 2.5},
		{Name: "n2-standard-8", Spot: 0.11, OnDemand: 0.5},
		{Name: "x9-standard-8", OnDemand: 88},
	}
	tests := []struct {
		name        string
		spec        schema.SliceSpec
		low, high   float64 // an hour; 0: not known
		chip, chip2 float64 // an hour of a chip
	}{
		{"on demand", schema.SliceSpec{TPU: "v5litepod-16", Hosts: 4}, 16 * 1.20, 16 * 1.56, 1.20, 1.56},
		{"spot", schema.SliceSpec{TPU: "v5litepod-16", Hosts: 4, Preemptible: true}, 16 * 0.21, 16 * 0.78, 0.21, 0.78},
		{"suffix counts cores", schema.SliceSpec{TPU: "v4-8", Preemptible: true}, 4 * 0.92, 4 * 0.92, 0.92, 0.92},
		{"overridden", schema.SliceSpec{TPU: "v6e-4"}, 10, 10, 2.5, 2.5},
		{"not the spot price", schema.SliceSpec{TPU: "v6e-4", Preemptible: true}, 4 * 0.65, 4 * 2.27, 0.65, 2.27},
		{"no price", schema.SliceSpec{TPU: "tpu7x-8"}, 0, 0, 0, 0},
		{"no spot price", schema.SliceSpec{TPU: "v2-8", Preemptible: true}, 0, 0, 0, 0},
		{"free", schema.SliceSpec{TPU: "v6e-4", Provider: schema.ProviderLocal}, 0, 0, 0, 0},
		{"machine", schema.SliceSpec{MachineType: "n2-standard-4"}, 4*0.031611 + 16*0.004237, 1.25 * (4*0.031611 + 16*0.004237), 0, 0},
		{"memory by family", schema.SliceSpec{MachineType: "n1-highmem-2"}, 2*0.031611 + 13*0.004237, 1.25 * (2*0.031611 + 13*0.004237), 0, 0},
		{"custom machine", schema.SliceSpec{MachineType: "e2-custom-4-8192"}, 4*0.021811 + 8*0.002923, 1.25 * (4*0.021811 + 8*0.002923), 0, 0},
		{"part of a core", schema.SliceSpec{MachineType: "e2-small"}, 0.5*0.021811 + 2*0.002923, 1.25 * (0.5*0.021811 + 2*0.002923), 0, 0},
		{"spot machine", schema.SliceSpec{MachineType: "n2-standard-4", Preemptible: true}, 0.09 * (4*0.031611 + 16*0.004237), 0.40 * 1.25 * (4*0.031611 + 16*0.004237), 0, 0},
		{"overridden machine", schema.SliceSpec{MachineType: "n2-standard-8", Preemptible: true}, 0.11, 0.11, 0, 0},
		{"machine known by an offer", schema.SliceSpec{MachineType: "x9-standard-8"}, 88, 88, 0, 0},
		{"several machines", schema.SliceSpec{MachineType: "x9-standard-8", Hosts: 2}, 176, 176, 0, 0},
		{"spot price of one with a price on demand", schema.SliceSpec{MachineType: "x9-standard-8", Preemptible: true}, 0, 0, 0, 0},
		{"unknown family", schema.SliceSpec{MachineType: "z9-standard-8"}, 0, 0, 0, 0},
		{"no such kind", schema.SliceSpec{MachineType: "c2-highmem-8"}, 0, 0, 0, 0},
		{"no such shape", schema.SliceSpec{MachineType: "n2-standard"}, 0, 0, 0, 0},
		{"cores and memory", schema.SliceSpec{CPU: 4, Memory: 16 << 30}, 4*0.021811 + 16*0.002923, 1.25 * (4*0.03398 + 16*0.00455), 0, 0},
		{"cores only", schema.SliceSpec{CPU: 4}, 4*0.021811 + 16*0.002923, 1.25 * (4*0.03398 + 16*0.00455), 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := accelerators.EstimateOf(&test.spec, offers)
			hour, chip := accelerators.Price{Low: test.low, High: test.high}, accelerators.Price{Low: test.chip, High: test.chip2}
			if !near(got.PerHour, hour) || !near(got.PerChipHour, chip) {
				t.Errorf("got %+v, want %v an hour, %v a chip-hour", got, hour, chip)
			}
			if got.PerHour.Known() != (test.high > 0) {
				t.Errorf("known: %t, want %t", got.PerHour.Known(), test.high > 0)
			}
		})
	}
}

func near(a, b accelerators.Price) bool {
	return math.Abs(a.Low-b.Low) < 1e-9 && math.Abs(a.High-b.High) < 1e-9
}

func TestOfferedZones(t *testing.T) {
	offers := []schema.Market{{Name: "v6e", Zones: []string{"asia-east1-a"}}, {Name: "v5p", OnDemand: 1}, {Name: "n2-standard-8", Zones: []string{"us-west1-a"}}}
	tests := []struct {
		name, of string
		offers   []schema.Market
		want     []string
	}{
		{"by type", "v4-8", nil, []string{"us-central2-b"}},
		{"by generation", "v4", nil, []string{"us-central2-b"}},
		{"of v6e", "v6e-1", nil, []string{"asia-northeast1-b", "europe-west4-a", "us-central1-b", "us-east1-d", "us-east5-a", "us-east5-b"}},
		{"of tpu7x", "tpu7x-8", nil, []string{"us-central1-c"}},
		{"overridden", "v6e-16", offers, []string{"asia-east1-a"}},
		{"an offer without zones", "v5p-8", offers, []string{"europe-west4-b", "us-central1-a", "us-east5-a"}},
		{"machine", "n2-standard-8", offers, []string{"us-west1-a"}},
		{"nothing known", "n2-standard-8", nil, nil},
		{"no name", "", offers, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := accelerators.OfferedZones(test.of, test.offers); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// TestOffersByOverride: an offer stands in for the table in what can be asked for.
func TestOffersByOverride(t *testing.T) {
	query := accelerators.Query{
		Provider: schema.ProviderGCP, Generation: "v6e", MaxChips: 1,
		Offers: []schema.Market{{Name: "v6e", Zones: []string{"asia-east1-a"}, Spot: 1.1}},
	}
	got := accelerators.Offers(query)
	want := []accelerators.PricedZone{{Zone: "asia-east1-a", OnDemand: 2.70, Spot: 1.1}}
	if len(got) != 1 || !slices.Equal(got[0].Zones, want) {
		t.Errorf("got %+v, want one offer in %+v", got, want)
	}
	query.Zones = []string{"us-east5-a"}
	if got := accelerators.Offers(query); len(got) != 0 {
		t.Errorf("in a zone that the offer leaves out: got %+v, want none", got)
	}
}
