package language

import "github.com/fray-ml/fray/schema"

// CloudAttributes are those of what runs on Google Cloud: stated for the whole
// provider, a job overrides it for itself.
func CloudAttributes(def func(string) string) []Attribute {
	return []Attribute{
		{Name: "network", Type: "string", Default: def("default"), Doc: "VPC network, its name or projects/P/global/networks/N"},
		{Name: "subnetwork", Type: "string", Default: def("the network's"), Doc: "name, or projects/P/regions/R/subnetworks/S"},
		{Name: "service_account", Type: "string", Default: def("the project's default one"), Doc: "email of the account that the machines act as"},
		{Name: "tags", Type: "list of strings", Default: def("none"), Doc: "network tags; changed in place"},
		{Name: "external_ips", Type: "bool", Default: def("true"), Doc: "whether machines have addresses outside of the network; changed in place"},
		{Name: "boot_image", Type: "string", Default: def("by machine type"), Doc: "image of Compute Engine machines: projects/P/global/images/I, or …/images/family/F"},
	}
}

// SliceAttributes are those that each kind of slice sets for itself.
func SliceAttributes() []Attribute {
	return []Attribute{
		{Name: "engine", Type: "string", Values: valuesOf(schema.EngineTPU, schema.EngineGCE), Default: "by type and zone", Doc: "tpu: the Cloud TPU API, for TPUs up to v6e; gce: Compute Engine, for machines and TPUs of v5p, v6e and tpu7x"},
		{Name: "provisioning", Type: "string", Values: valuesOf(schema.ProvisioningQueued, schema.ProvisioningReserved, schema.ProvisioningFlexStart), Default: "at once", Doc: "queued: wait in the cloud's queue; reserved: from a reservation with the cloud; flex-start: wait, then run for max_run"},
		{Name: "valid_until", Type: "duration", Default: "no end", Doc: "how long a queued request may wait"},
		{Name: "max_run", Type: "duration", Default: "24h with flex-start", Doc: "after which a flex-start slice ends"},
		{Name: "reserved_in", Type: "string", Default: "any that fits", Doc: "the cloud's reservation to draw from, for provisioning = \"reserved\""},
		{Name: "runtime_version", Type: "string", Default: "by TPU generation", Doc: "software of a TPU node, such as v2-alpha-tpuv6e"},
		{Name: "disks", Type: "list of strings", Doc: "existing disks to attach, NAME or NAME:ro"},
	}
}

// TheProviders is the default of attributes that a provider block may state.
func TheProviders(string) string { return "the provider's" }

func gcpProviderType() *BlockType {
	t := &BlockType{
		Name: "provider", Variant: string(schema.ProviderGCP), Label: "PROVIDER",
		Doc: "TPU slices and VMs of a Google Cloud project",
		Attrs: []Attribute{
			{Name: "project", Type: "string", Required: true, Doc: "the project's id"},
			{Name: "zones", Type: "list of strings", Names: NamesOfZones, Default: "for TPUs, all that have the type", Doc: "in order of preference; failover follows it"},
			{Name: "labels", Type: "map of strings", Doc: "of all created resources, in addition to those of each job; changed in place"},
		},
		Blocks: []*BlockType{{
			Name: "offer", Label: "NAME", Repeated: true,
			Doc: "where a TPU generation, GPU type or machine type is offered and what it costs, in place of the built-in table",
			Attrs: []Attribute{
				{Name: "zones", Type: "list of strings", Names: NamesOfZones, Default: "as built in", Doc: "that have it"},
				{Name: "engine", Type: "string", Values: valuesOf(schema.EngineTPU, schema.EngineGCE), Default: "as built in", Doc: "tpu, or gce for v5p, v6e and tpu7x"},
				{Name: "on_demand", Type: "number", Default: "as built in", Doc: "US dollars for an hour of a chip, of a GPU with its share of the machine, or of a machine"},
				{Name: "spot", Type: "number", Default: "as built in", Doc: "the same for preemptible ones"},
			},
		}},
	}
	t.Attrs = append(t.Attrs, CloudAttributes(func(own string) string { return own })...)
	return t
}
