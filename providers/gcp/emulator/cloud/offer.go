package cloud

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// plenty is the capacity of what is built in, in chips or cores.
const plenty = 1 << 20

// offered says in which zones a TPU generation is published to be, not
// exhaustively. What a scenario names is offered too.
func offered() map[string][]string {
	return map[string][]string{
		"v2":        {"us-central1-b", "us-central1-f", "europe-west4-a"},
		"v3":        {"us-central1-a", "europe-west4-a"},
		"v4":        {"us-central2-b"},
		"v5litepod": {"europe-west4-b", "us-central1-a", "us-south1-a", "us-west1-c", "us-west4-a"},
		"v5p":       {"europe-west4-b", "us-central1-a", "us-east5-a"},
		"v6e":       {"europe-west4-a", "us-central1-b", "us-east1-d", "us-east5-a", "us-east5-b"},
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
func (c *Cloud) Zones() []string { return slices.Sorted(maps.Keys(c.rules.zones)) }

// HasZone says whether there is such a zone.
func (c *Cloud) HasZone(zone string) bool { return c.rules.zones[zone] != nil }

// Offered are the types that a zone offers, TPU generations and machine families,
// sorted; whether any of it is free is another question.
func (c *Cloud) Offered(zone string) []string {
	z := c.rules.zones[zone]
	if z == nil {
		return nil
	}
	types := maps.Clone(z.capacity)
	maps.Copy(types, z.reserved)
	return slices.Sorted(maps.Keys(types))
}

// HasNetwork says whether there is a network of that name.
func (c *Cloud) HasNetwork(name string) bool {
	networks := c.config.Scenario.Networks
	return len(networks) == 0 || slices.Contains(networks, name)
}

// HasProject says whether there is such a project.
func (c *Cloud) HasProject(name string) bool {
	only := c.config.Scenario.Project
	return only == "" || only == name
}

// PageSize is the longest page that a list may have.
func (c *Cloud) PageSize() int { return c.rules.pageSize }

// Runtimes are the scenario's runtime versions beside the published ones.
func (c *Cloud) Runtimes() []string { return c.config.Scenario.Runtimes }

// Capacity is what there is of a type in a zone, and how much of it is taken.
type Capacity struct {
	Zone     string `json:"zone"`
	Type     string `json:"type"`
	Reserved bool   `json:"reserved,omitempty"`
	Total    int    `json:"total"`
	Used     int    `json:"used"`
}

// Capacity lists what the scenario names and what anything was taken of, sorted
// by zone and type.
func (c *Cloud) Capacity() []Capacity {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, zone := range c.rules.scenario.Zones {
		for kind := range zone.Capacity {
			c.pool(poolKey{zone.Name, kind, false})
		}
		for kind := range zone.Reserved {
			c.pool(poolKey{zone.Name, kind, true})
		}
	}
	all := make([]Capacity, 0, len(c.pools))
	for k, p := range c.pools {
		all = append(all, Capacity{Zone: k.zone, Type: k.kind, Reserved: k.reserved, Total: p.total, Used: p.used})
	}
	slices.SortFunc(all, func(a, b Capacity) int {
		reserved := 0
		if a.Reserved != b.Reserved {
			reserved = 1
			if b.Reserved {
				reserved = -1
			}
		}
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Type, b.Type), reserved)
	})
	return all
}
