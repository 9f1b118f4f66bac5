package compute

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// object is a resource that is only shown, as JSON.
type object map[string]any

// catalog is a collection of what is simply there.
type catalog struct {
	scope string // "", "zones/{zone}", "regions/{region}" or "global"
	name  string // "machineTypes"
	one   func(r *request) object
	all   func(r *request) []string // names, without those that are there only when asked for
}

// catalogs serves what a project can use: zones, types, networks, images.
type catalogs struct {
	cloud *cloud.Cloud
	lists *lists
}

func (s *catalogs) all() []catalog {
	return []catalog{
		{name: "zones", one: s.oneZone, all: func(*request) []string { return s.cloud.Zones() }},
		{name: "regions", one: s.oneRegion, all: func(*request) []string { return s.regions() }},
		{scope: "zones/{zone}", name: "machineTypes", one: s.oneMachineType, all: s.machineTypes},
		{scope: "zones/{zone}", name: "acceleratorTypes", one: s.oneAcceleratorType, all: s.acceleratorTypes},
		{scope: "global", name: "networks", one: s.oneNetwork, all: s.networks},
		{scope: "regions/{region}", name: "subnetworks", one: s.oneSubnetwork, all: s.networks},
		{scope: "regions/{region}", name: "routers", one: s.oneRouter, all: s.networks},
		{scope: "global", name: "firewalls", one: s.oneFirewall, all: s.firewalls},
		{scope: "global", name: "images", one: oneImage, all: func(*request) []string { return nil }},
	}
}

func (s *catalogs) endpoints() map[string]endpoint {
	found := map[string]endpoint{
		"GET /compute/v1/projects/{project}":             {method: "projects.get", permission: "compute.projects.get", do: s.getProject},
		pattern("GET", "global", "images/family/{name}"): {method: "images.get", permission: "compute.images.get", do: getOne(oneImage)},
	}
	found[pattern("GET", "global", "networks/{name}/getEffectiveFirewalls")] = endpoint{
		method: "networks.getEffectiveFirewalls", permission: "compute.networks.getEffectiveFirewalls", do: s.effectiveFirewalls,
	}
	for _, c := range s.all() {
		root := "GET /compute/v1/projects/{project}/" + c.name
		if c.scope != "" {
			root = pattern("GET", c.scope, c.name)
		}
		permission := "compute." + c.name + "."
		found[root+"/{name}"] = endpoint{method: c.name + ".get", permission: permission + "get", do: getOne(c.one)}
		found[root] = endpoint{method: c.name + ".list", permission: permission + "list", do: func(r *request) (any, error) {
			var items []listItem
			for _, name := range c.all(r) {
				each := *r
				each.name = name
				if one := c.one(&each); one != nil {
					items = append(items, listItem{scope: r.scope(), name: name, message: one})
				}
			}
			return s.lists.listed(r, "compute#"+c.name+"List", items)
		}}
	}
	return found
}

func getOne(one func(*request) object) func(*request) (any, error) {
	return func(r *request) (any, error) {
		found := one(r)
		if found == nil {
			return nil, missing(r.resource())
		}
		return found, nil
	}
}

func (s *catalogs) getProject(r *request) (any, error) {
	var quotas []object
	for _, use := range s.cloud.QuotaUses(r.project, cloud.RegionGlobal) {
		quotas = append(quotas, object{
			"metric": quotaMetric(use.Type, use.Tier), "limit": float64(use.Limit), "usage": float64(use.Used),
		})
	}
	return object{
		"quotas": quotas,
		"kind":   "compute#project", "name": &r.project, "id": strconv.FormatUint(fingerprintNumber(r.project)>>1, 10),
		"selfLink":              linkRoot + "projects/" + r.project,
		"defaultServiceAccount": "1-compute@developer.gserviceaccount.com", "defaultNetworkTier": "PREMIUM",
		"commonInstanceMetadata": showMetadata(nil),
	}, nil
}

func link(r *request, rest string) string {
	return linkRoot + "projects/" + r.project + "/" + rest
}

func (s *catalogs) oneZone(r *request) object {
	if !s.cloud.HasZone(r.name) {
		return nil
	}
	return object{
		"kind": "compute#zone", "name": r.name, "status": "UP",
		"region": link(r, "regions/"+cloud.RegionOf(r.name)), "selfLink": link(r, "zones/"+r.name),
	}
}

func (s *catalogs) regions() []string {
	regions := map[string]bool{}
	for _, zone := range s.cloud.Zones() {
		regions[cloud.RegionOf(zone)] = true
	}
	return slices.Sorted(maps.Keys(regions))
}

// oneRegion has the quotas that the scenario limits.
func (s *catalogs) oneRegion(r *request) object {
	if !slices.Contains(s.regions(), r.name) {
		return nil
	}
	region := object{
		"kind": "compute#region", "name": r.name, "status": "UP", "selfLink": link(r, "regions/"+r.name),
	}
	var zones []string
	for _, zone := range s.cloud.Zones() {
		if cloud.RegionOf(zone) == r.name {
			zones = append(zones, link(r, "zones/"+zone))
		}
	}
	var quotas []object
	for _, use := range s.cloud.QuotaUses(r.project, r.name) {
		metric := quotaMetric(use.Type, use.Tier)
		if use.Tier == cloud.TierSpot && !cloud.IsGPU(use.Type) {
			metric = "PREEMPTIBLE_" + metric
		}
		if countsByFamily(use.Type) && use.Tier != cloud.TierSpot {
			continue // Cloud Quotas shows it
		}
		quotas = append(quotas, object{
			"metric": metric, "limit": float64(use.Limit), "usage": float64(use.Used),
		})
	}
	region["zones"], region["quotas"] = zones, quotas
	return region
}

// quotaMetric is by what name a region counts a type.
func quotaMetric(kind string, tier cloud.Tier) string {
	if cloud.IsGPU(kind) || kind == cloud.TypeGPU {
		return gpuMetric(kind, tier)
	}
	switch kind {
	case "v4":
		return "TPU_PODSLICE_V4"
	case "v5litepod":
		return "TPU_LITE_PODSLICE_V5"
	case "v2", "v3", "v5p", "v6e", "tpu7x":
		return "TPUS_PER_TPU_FAMILY"
	case "n1":
		return "CPUS"
	}
	return strings.ToUpper(kind) + "_CPUS"
}

// oneMachineType has what follows from its name: 4 GB of memory for each core.
func (s *catalogs) oneMachineType(r *request) object {
	kind, ok := parseMachineType(r.name)
	if !ok || !slices.Contains(s.cloud.Offered(r.zone), kind.kind) {
		return nil
	}
	cores := kind.units
	if kind.tpu {
		const coresForChip = 28
		cores *= coresForChip
	}
	memory := cores << 12
	if with, ok := gpuMachineNamed(r.name); ok {
		cores, memory = int(with.cores), int(with.memoryMB)
	}
	m := object{
		"kind": "compute#machineType", "name": r.name, "zone": r.zone, "id": strconv.FormatUint(fingerprintNumber(r.name)>>1, 10),
		"guestCpus": cores, "memoryMb": memory, "selfLink": link(r, r.scope()+"/machineTypes/"+r.name),
	}
	if kind.gpu {
		m["accelerators"] = []object{{
			"guestAcceleratorType": acceleratorOf(kind.kind), "guestAcceleratorCount": kind.units,
		}}
	}
	if kind.tpu {
		m["accelerators"] = []object{{
			"guestAcceleratorType": lastPart(kind.kind), "guestAcceleratorCount": kind.units,
		}}
	}
	return m
}

func (s *catalogs) machineTypes(r *request) []string {
	forTPU := map[string][]string{
		"v4": {"ct4p-hightpu-4t"}, "v5litepod": {"ct5lp-hightpu-1t", "ct5lp-hightpu-4t", "ct5lp-hightpu-8t"}, "v5p": {"ct5p-hightpu-4t"},
		"v6e": {"ct6e-standard-1t", "ct6e-standard-4t", "ct6e-standard-8t"}, "tpu7x": {"tpu7x-standard-1t", "tpu7x-standard-4t"},
		"v2": {}, "v3": {},
	}
	var names []string
	for _, kind := range s.cloud.Offered(r.zone) {
		if types, isTPU := forTPU[kind]; isTPU {
			names = append(names, types...)
			continue
		}
		if cloud.IsGPU(kind) {
			for _, m := range gpuMachines() {
				if m.gpu == kind {
					names = append(names, m.name)
				}
			}
			continue
		}
		for _, cores := range []string{"2", "4", "8", "16", "32"} {
			names = append(names, kind+"-standard-"+cores)
		}
	}
	return names
}

func (s *catalogs) acceleratorTypes(r *request) []string {
	var names []string
	for _, name := range s.machineTypes(r) {
		kind, _ := parseMachineType(name)
		if generation := "ct" + strings.TrimPrefix(kind.kind, "v"); kind.tpu && !slices.Contains(names, generation) {
			names = append(names, generation)
		}
	}
	for _, kind := range s.cloud.Offered(r.zone) {
		if cloud.IsGPU(kind) {
			names = append(names, acceleratorOf(kind))
		}
	}
	return names
}

func (s *catalogs) oneAcceleratorType(r *request) object {
	if !slices.Contains(s.acceleratorTypes(r), r.name) {
		return nil
	}
	a := object{
		"kind": "compute#acceleratorType", "name": r.name, "zone": r.zone, "selfLink": link(r, r.scope()+"/acceleratorTypes/"+r.name),
	}
	if gpu, ok := cloud.GPUNamed(r.name); ok {
		a["maximumCardsPerInstance"] = maxCards(gpu.Type)
	}
	return a
}

// networks are those that are known: where any exists, the default one.
func (s *catalogs) networks(*request) []string {
	var names []string
	for _, name := range append(s.cloud.RuledNetworks(), "default") {
		if s.cloud.HasNetwork(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *catalogs) oneNetwork(r *request) object {
	if !s.cloud.HasNetwork(r.name) {
		return nil
	}
	return object{
		"kind": "compute#network", "name": r.name, "autoCreateSubnetworks": true, "selfLink": link(r, "global/networks/"+r.name),
	}
}

// oneSubnetwork is that of the network of its name: the model knows no others.
func (s *catalogs) oneSubnetwork(r *request) object {
	if !s.cloud.HasNetwork(r.name) || !slices.Contains(s.regions(), r.region) {
		return nil
	}
	return object{
		"kind": "compute#subnetwork", "name": r.name, "region": link(r, "regions/"+r.region), "ipCidrRange": networkRange,
		"network": link(r, "global/networks/"+r.name), "selfLink": link(r, r.scope()+"/subnetworks/"+r.name),
		"privateIpGoogleAccess": !s.cloud.Network(r.name).NoGoogleAccess,
	}
}

// oneImage is there whatever its name, but for one named missing.
func oneImage(r *request) object {
	if strings.Contains(r.name, "missing") {
		return nil
	}
	return object{
		"kind": "compute#image", "name": r.name, "status": "READY", "diskSizeGb": "10",
		"selfLink": link(r, "global/images/"+r.name),
	}
}
