package schema

import "slices"

func jobGroupType() *blockType {
	return &blockType{
		name: "job_group", label: "NAME", repeated: true,
		doc: "jobs that are placed together, all or none",
		attrs: []attribute{
			{name: "namespace", typ: "reference", def: "one named after the group", doc: "namespace.NAME"},
			{name: "same_region", typ: "bool", def: "false", doc: "all slices in one region"},
			{name: "same_zone", typ: "bool", def: "false", doc: "all slices in one zone"},
			dependsOnAttribute(),
		},
		blocks: []*blockType{jobType()},
	}
}

func jobType() *blockType {
	t := &blockType{
		name: "job", label: "NAME", repeated: true,
		doc: "a command run as one gang: one task for each host of its slices",
		attrs: []attribute{
			{name: "count", typ: "number", doc: "how many instances: job.NAME[0], job.NAME[1], …", mode: modeShape},
			{name: "for_each", typ: "map or set of strings", doc: `one instance for each key: job.NAME["key"]`, mode: modeShape},
			{name: "timeout", typ: "duration", def: "none", doc: "of an attempt"},
			{name: "scheduling_timeout", typ: "duration", def: "none", doc: "the longest wait for the first start, after which the job has failed"},
		},
	}
	t.attrs = append(t.attrs, workloadAttributes("one named after the job; in a job_group, the group's")...)
	t.blocks = append(workloadBlocks(), &blockType{
		name: "retries", doc: "how often the job is tried again, by cause; -1 is without end",
		attrs: []attribute{
			{name: "failure", typ: "number", def: "0", doc: "after the program failed"},
			{name: "preemption", typ: "number", def: "100", doc: "after its slices were lost or taken away; as often again where its exit status is unknown"},
		},
	})
	return t
}

func actorServiceType() *blockType {
	t := &blockType{
		name: "actor_service", label: "NAME", repeated: true,
		doc: "replicas that stay up: actor_service.NAME[0], …; in them, count.index is the replica's number",
		attrs: []attribute{
			{name: "replicas", typ: "number", def: "1", doc: "how many", mode: modeShape},
		},
	}
	t.attrs = append(t.attrs, workloadAttributes("one named after the service")...)
	command := slices.IndexFunc(t.attrs, func(a attribute) bool { return a.name == "command" })
	t.attrs[command].required = false // an actor block may stand instead
	t.blocks = append(workloadBlocks(),
		&blockType{
			name: "restart", doc: "when a replica starts again",
			attrs: []attribute{
				{name: "max", typ: "number", def: "-1", doc: "how often, -1 is without end"},
				{name: "on", typ: "string", def: "failure", doc: "failure, or always: after a clean exit too"},
			},
		},
		&blockType{
			name: actorBlock, doc: "an actor to host in each replica; without command, a Python class that fray.host runs",
			attrs: []attribute{
				{name: "class", typ: "string", required: true, doc: "package.module:Class; with command, the name that the program knows it by"},
				{name: "args", typ: "map", doc: "of the constructor, by name, of any types"},
				{name: "max_concurrency", typ: "number", def: "1; 1000 for a class with async methods", doc: "how many of its calls run at once"},
				{name: "allow_pickle", typ: "bool", def: "false", doc: "take and give Python objects that only pickle carries, from and to peers of the namespace"},
			},
		},
	)
	return t
}

func dependsOnAttribute() attribute {
	return attribute{
		name: "depends_on", typ: "list of references", mode: modeRaw,
		doc: "jobs, groups, services and modules that come first; a reference in any expression implies it",
	}
}

// workloadAttributes are what a job and an actor service have in common.
func workloadAttributes(namespace string) []attribute {
	return []attribute{
		{name: "command", typ: "list of strings", required: true, doc: "the program and its arguments; no shell in between"},
		{name: "args", typ: "list of strings", doc: "appended to command"},
		{name: "namespace", typ: "reference", def: namespace, doc: "namespace.NAME"},
		dependsOnAttribute(),
		{name: "stop_grace", typ: "duration", def: "10s", doc: "between SIGTERM and SIGKILL"},
		{name: "priority", typ: "number", def: "0", doc: "the higher one gets capacity first within its band"},
		{name: "user", typ: "string", doc: "whose share of the namespace it uses"},
		{name: "band", typ: "string", def: "interactive", doc: "production, interactive or batch: the later yields first"},
		{name: "labels", typ: "map of strings", doc: "for people and queries"},
	}
}

func workloadBlocks() []*blockType {
	return []*blockType{
		resourcesType(),
		workloadLifecycleType(),
		{
			name: "environment", doc: "what the tasks run in",
			attrs: []attribute{
				{name: "project", typ: "string", doc: "a directory, relative to the configuration, that is shipped to every host"},
				{name: "image", typ: "string", doc: "container image"},
				{name: "env", typ: "map of strings", doc: "environment variables"},
			},
			blocks: []*blockType{{
				name: "uv", doc: "a Python environment that uv makes from the project's uv.lock",
				attrs: []attribute{
					{name: "extras", typ: "list of strings", doc: "optional dependencies to install"},
					{name: "groups", typ: "list of strings", doc: "dependency groups to install"},
					{name: "python", typ: "string", def: "what uv chooses", doc: `version, such as "3.12"`},
				},
			}},
		},
		{
			name: "health_check", doc: "how to tell that a task works; exactly one of http, tcp, exec",
			attrs: []attribute{
				{name: "http", typ: "string", doc: "path that must answer 200 to 399"},
				{name: "tcp", typ: "bool", doc: "true: the port must accept connections"},
				{name: "exec", typ: "list of strings", doc: "command that must exit with 0"},
				{name: "port", typ: "string or number", def: "the only port of resources", doc: "name of a port of resources, or its number"},
				{name: "interval", typ: "duration", def: "10s", doc: "from check to check"},
				{name: "timeout", typ: "duration", def: "5s", doc: "of one check"},
				{name: "threshold", typ: "number", def: "3", doc: "failures in a row that make a task unhealthy"},
				{name: "start_period", typ: "duration", def: "0s", doc: "after the start, in which failures do not count"},
			},
		},
	}
}

func resourcesType() *blockType {
	t := &blockType{
		name: "resources", doc: "what one instance runs on",
		attrs: []attribute{
			{name: "provider", typ: "string", def: "the only declared provider, else local", doc: "local or gcp"},
			{name: "reservation", typ: "reference", doc: "reservation.NAME: the pool to draw from, which gives the shape; with cpu, memory or disk a part of its machines"},
			{name: "tpu", typ: "string", doc: "TPU type, such as v5litepod-16; not together with cpu, memory, disk, machine_type"},
			{name: "cpu", typ: "number", def: "1 without tpu and machine_type", doc: "cores of each slice, or of each task on a reservation's machines"},
			{name: "memory", typ: "size", doc: "likewise"},
			{name: "disk", typ: "size", doc: "likewise"},
			{name: "machine_type", typ: "string", doc: "of the provider, such as n2-standard-8"},
			{name: "slices", typ: "number", def: "1", doc: "one gang over this many slices, or tasks on a reservation's machines"},
			{name: "preemptible", typ: "bool", def: "true for tpu, else false", doc: "whether the slices may be taken away"},
			{name: "zones", typ: "list of strings", def: "the provider's", doc: "in order of preference"},
			{name: "regions", typ: "list of strings", doc: "to choose zones from"},
			{name: "ports", typ: "list of strings or map of numbers", doc: "names of ports, each free or of a fixed number"},
		},
	}
	t.attrs = append(t.attrs, sliceAttributes()...)
	t.attrs = append(t.attrs, cloudAttributes(theProviders)...)
	return t
}
