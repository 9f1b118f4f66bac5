package gce

import (
	"maps"
	"slices"
	"testing"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
)

func TestWarningsOfListsSayWhatIsMissing(t *testing.T) {
	unreachable := computeapi.Warning{Code: "UNREACHABLE", Message: "down"}
	named := unreachable
	named.Data = []computeapi.WarningData{{Key: "scope", Value: "zones/us-west4-a"}}
	for _, test := range []struct {
		name    string
		zones   []string
		warning computeapi.Warning
		want    []string
		fails   bool
	}{
		{name: "nothing"},
		{name: "no results", warning: computeapi.Warning{Code: "NO_RESULTS_ON_PAGE"}},
		{name: "zones", zones: []string{"zones/a-b1-c", "https://www.googleapis.com/compute/v1/projects/p/zones/d-e1-f"}, want: []string{"a-b1-c", "d-e1-f"}},
		{name: "zones with a warning", zones: []string{"zones/a-b1-c"}, warning: unreachable, want: []string{"a-b1-c"}},
		{name: "a region, in which no slice has parts of these kinds", zones: []string{"regions/a-b1"}, warning: unreachable},
		{name: "a warning that names the zone", warning: named, want: []string{"us-west4-a"}},
		{name: "a warning that names none", warning: unreachable, fails: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			unlisted := map[string]string{}
			err := notWhole(test.zones, test.warning, unlisted)
			if got := slices.Sorted(maps.Keys(unlisted)); (err != nil) != test.fails || !slices.Equal(got, test.want) {
				t.Errorf("unlisted %v, %v; want %v, an error: %t", got, err, test.want, test.fails)
			}
		})
	}
}

func TestWarningsOfScopesNameTheirZone(t *testing.T) {
	unlisted := map[string]string{}
	for scope, code := range map[string]string{
		"zones/a-b1-c": "UNREACHABLE", "zones/d-e1-f": "NO_RESULTS_ON_PAGE", "zones/g-h1-i": "SOMETHING_NEW", "regions/j-k1": "UNREACHABLE",
	} {
		notListed(scope, computeapi.Warning{Code: code, Message: "said"}, unlisted)
	}
	notListed("zones/l-m1-n", computeapi.Warning{}, unlisted)
	if want := map[string]string{"a-b1-c": "said", "g-h1-i": "said"}; !maps.Equal(unlisted, want) {
		t.Errorf("unlisted %v, want %v", unlisted, want)
	}
}
