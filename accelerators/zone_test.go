package accelerators

import (
	"slices"
	"testing"

	"github.com/fray-ml/fray/schema"
)

// TestZonesBySize: the zones of the Cloud TPU documentation, "TPU regions and zones".
func TestZonesBySize(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string][]string{
		"v2-8":          {"asia-east1-c", "europe-west4-a", "us-central1-b", "us-central1-c"},
		"v2-32":         {"europe-west4-a", "us-central1-a"},
		"v2-512":        {"europe-west4-a", "us-central1-a"},
		"v3-8":          {"europe-west4-a", "us-central1-a", "us-central1-b"},
		"v3-2048":       {"europe-west4-a"},
		"v4-8":          {"us-central2-b"},
		"v6e-1":         {"asia-northeast1-b", "europe-west4-a", "us-central1-b", "us-east1-d", "us-east5-a", "us-east5-b"},
		"v6e-256":       {"asia-northeast1-b", "europe-west4-a", "us-central1-b", "us-east1-d", "us-east5-a", "us-east5-b"},
		"v5p-8":         {"europe-west4-b", "us-central1-a", "us-east5-a"},
		"tpu7x-8":       {"us-central1-c"},
		"n2-standard-8": nil,
	} {
		if got := OfferedZones(kind, nil); !slices.Equal(got, want) {
			t.Errorf("zones of %s are %v, want %v", kind, got, want)
		}
		for _, zone := range want {
			if !IsKnownZone(zone) {
				t.Errorf("%s of %s is not known", zone, kind)
			}
		}
	}
	stated := []schema.Market{{Name: "v2", Zones: []string{"us-east1-b"}}}
	for _, kind := range []string{"v2-8", "v2-32"} {
		if got := OfferedZones(kind, stated); !slices.Equal(got, stated[0].Zones) {
			t.Errorf("zones of %s with an offer are %v, want the offer's", kind, got)
		}
	}
}
