package accelerators

import (
	"slices"
	"strings"
)

// Region is a region of Google Cloud and the ends of its zones' names.
type Region struct {
	Name  string
	zones []string
}

// Regions lists what the documentation of Google Cloud does. New ones come every
// year, so what is not among them draws a warning and nothing more.
func Regions() []Region {
	abc := []string{"a", "b", "c"}
	return []Region{
		{"africa-south1", abc},
		{"asia-east1", abc}, {"asia-east2", abc},
		{"asia-northeast1", abc}, {"asia-northeast2", abc}, {"asia-northeast3", abc},
		{"asia-south1", abc}, {"asia-south2", abc},
		{"asia-southeast1", abc}, {"asia-southeast2", abc}, {"asia-southeast3", abc},
		{"australia-southeast1", abc}, {"australia-southeast2", abc},
		{"europe-central2", abc}, {"europe-north1", abc}, {"europe-north2", abc}, {"europe-southwest1", abc},
		{"europe-west1", []string{"b", "c", "d"}},
		{"europe-west2", abc}, {"europe-west3", abc}, {"europe-west4", abc}, {"europe-west6", abc}, {"europe-west8", abc},
		{"europe-west9", abc}, {"europe-west10", abc}, {"europe-west12", abc},
		{"me-central1", abc}, {"me-central2", abc}, {"me-west1", abc},
		{"northamerica-northeast1", abc}, {"northamerica-northeast2", abc}, {"northamerica-south1", abc},
		{"southamerica-east1", abc}, {"southamerica-west1", abc},
		{"us-central1", []string{"a", "b", "c", "f", "ai1a"}},
		{"us-central2", []string{"b"}},
		{"us-east1", []string{"b", "c", "d"}},
		{"us-east4", abc}, {"us-east5", abc},
		{"us-south1", []string{"a", "b", "c", "ai1b"}},
		{"us-west1", abc}, {"us-west2", abc}, {"us-west3", abc}, {"us-west4", abc},
	}
}

// KnownRegion is the region of a zone that is known, the zero region of another.
func KnownRegion(zone string) Region {
	cut := max(strings.LastIndexByte(zone, '-'), 0)
	for _, r := range Regions() {
		if r.Name == zone[:cut] && slices.Contains(r.zones, zone[cut+1:]) {
			return r
		}
	}
	return Region{}
}

// ZoneNames are the zones of the region by their full names.
func (r Region) ZoneNames() []string {
	names := make([]string, 0, len(r.zones))
	for _, end := range r.zones {
		names = append(names, r.Name+"-"+end)
	}
	return names
}
