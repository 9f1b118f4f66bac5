package cloud

import (
	"maps"
	"slices"
	"strings"
)

// plenty is the capacity of what is built in, in chips or cores.
const plenty = 1 << 20

// offered returns the zones in which each TPU generation is published to be, not
// exhaustively. What a scenario names is offered too.
func offered() map[string][]string {
	return map[string][]string{
		"v2":        {"asia-east1-c", "us-central1-a", "us-central1-b", "us-central1-c", "us-central1-f", "europe-west4-a"},
		"v3":        {"us-central1-a", "us-central1-b", "europe-west4-a"},
		"v4":        {"us-central2-b"},
		"v5litepod": {"europe-west4-b", "us-central1-a", "us-south1-a", "us-west1-c", "us-west4-a"},
		"v5p":       {"europe-west4-b", "us-central1-a", "us-east5-a"},
		"v6e":       {"asia-northeast1-b", "europe-west4-a", "us-central1-b", "us-east1-d", "us-east5-a", "us-east5-b"},
		"tpu7x":     {"us-central1-c"},
	}
}

// families are machine families that every zone has plenty of.
func families() []string {
	return []string{"c2", "c3", "c4", "e2", "n1", "n2", "n2d", "n4", "t2d"}
}

// RegionOf is the region of a zone: "us-west4" of "us-west4-a".
func RegionOf(zone string) string {
	if i := strings.LastIndexByte(zone, '-'); i > 0 {
		return zone[:i]
	}
	return zone
}

// Zones are the names of all zones, sorted.
func (r *rules) Zones() []string { return slices.Sorted(maps.Keys(r.zones)) }

// BuiltInZones are the names of the zones in which accelerators are published to be: those
// with TPUs, sorted, and then those with GPUs alone, sorted.
func BuiltInZones() []string {
	var zones []string
	for _, table := range []map[string][]string{offered(), offeredGPUs()} {
		known := len(zones)
		for _, of := range table {
			for _, zone := range of {
				if !slices.Contains(zones, zone) {
					zones = append(zones, zone)
				}
			}
		}
		slices.Sort(zones[known:])
	}
	return zones
}

// HasZone reports whether there is such a zone.
func (r *rules) HasZone(zone string) bool { return r.zones[zone] != nil }

// Offered are the types that a zone offers, TPU generations and machine families,
// sorted; whether any of it is free is another question.
func (r *rules) Offered(zone string) []string {
	z := r.zones[zone]
	if z == nil {
		return nil
	}
	types := maps.Clone(z.capacity)
	maps.Copy(types, z.reserved)
	return slices.Sorted(maps.Keys(types))
}

// Network is what machines reach in a network of that name.
func (r *rules) Network(name string) Network {
	for _, n := range r.scenario.NetworkRules {
		if n.Name == name {
			return n
		}
	}
	return Network{Name: name, Allow: []string{"all"}}
}

// RuledNetworks are the names of the networks with rules of their own.
func (r *rules) RuledNetworks() []string {
	var names []string
	for _, n := range r.scenario.NetworkRules {
		names = append(names, n.Name)
	}
	return names
}

// HasNetwork reports whether there is a network of that name.
func (r *rules) HasNetwork(name string) bool {
	networks := r.scenario.Networks
	return len(networks) == 0 || slices.Contains(networks, name)
}

// HasProject reports whether there is such a project.
func (r *rules) HasProject(name string) bool {
	only := r.scenario.Project
	return only == "" || only == name
}

// PageSize is the longest page that a list may have.
func (r *rules) PageSize() int { return r.pageSize }

// Runtimes are the scenario's runtime versions beside the published ones.
func (r *rules) Runtimes() []string { return r.scenario.Runtimes }
