package schema

// cloudAttributes are those of what runs on Google Cloud: stated for the whole
// provider, a job says otherwise for itself.
func cloudAttributes(def func(string) string) []attribute {
	return []attribute{
		{name: "network", typ: "string", def: def("default"), doc: "VPC network, its name or projects/P/global/networks/N"},
		{name: "subnetwork", typ: "string", def: def("the network's"), doc: "name, or projects/P/regions/R/subnetworks/S"},
		{name: "service_account", typ: "string", def: def("the project's default one"), doc: "email of the account that the machines act as"},
		{name: "tags", typ: "list of strings", def: def("none"), doc: "network tags; changed in place"},
		{name: "external_ips", typ: "bool", def: def("true"), doc: "whether machines have addresses outside of the network; changed in place"},
		{name: "boot_image", typ: "string", def: def("by machine type"), doc: "image of Compute Engine machines: projects/P/global/images/I, or …/images/family/F"},
	}
}

// sliceAttributes are those that each kind of slice says for itself.
func sliceAttributes() []attribute {
	return []attribute{
		{name: "engine", typ: "string", def: "by type and zone", doc: "tpu: the Cloud TPU API; gce: Compute Engine"},
		{name: "provisioning", typ: "string", def: "at once", doc: "queued: wait in the cloud's queue; reserved: from a reservation with the cloud; flex-start: wait, then run for max_run"},
		{name: "valid_until", typ: "duration", def: "no end", doc: "how long a queued request may wait"},
		{name: "max_run", typ: "duration", def: "24h with flex-start", doc: "after which a flex-start slice ends"},
		{name: "reserved_in", typ: "string", def: "any that fits", doc: "the cloud's reservation to draw from, for provisioning = \"reserved\""},
		{name: "runtime_version", typ: "string", def: "by TPU generation", doc: "software of a TPU node, such as v2-alpha-tpuv6e"},
		{name: "disks", typ: "list of strings", doc: "existing disks to attach, NAME or NAME:ro"},
	}
}

func theProviders(string) string { return "the provider's" }

func gcpProviderType() *blockType {
	t := &blockType{
		name: "provider", variant: string(ProviderGCP), label: "PROVIDER",
		doc: "TPU slices and VMs of a Google Cloud project",
		attrs: []attribute{
			{name: "project", typ: "string", required: true, doc: "the project's id"},
			{name: "zones", typ: "list of strings", def: "for TPUs, all that have the type", doc: "in order of preference; failover follows it"},
			{name: "labels", typ: "map of strings", doc: "of everything that is created, beside those of each job; changed in place"},
		},
		blocks: []*blockType{{
			name: "offer", label: "NAME", repeated: true,
			doc: "where a TPU generation or machine type is offered and what it costs, in place of the built-in table",
			attrs: []attribute{
				{name: "zones", typ: "list of strings", def: "as built in", doc: "that have it"},
				{name: "engine", typ: "string", def: "as built in", doc: "tpu or gce"},
				{name: "on_demand", typ: "number", def: "as built in", doc: "US dollars for an hour of a chip, or of a machine"},
				{name: "spot", typ: "number", def: "as built in", doc: "the same for preemptible ones"},
			},
		}},
	}
	t.attrs = append(t.attrs, cloudAttributes(func(own string) string { return own })...)
	return t
}
