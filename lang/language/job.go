package language

import (
	"slices"

	"github.com/fray-ml/fray/schema"
)

// ActorBlock is the type of the block that makes a service host an actor.
const ActorBlock = "actor"

func jobGroupType() *BlockType {
	return &BlockType{
		Name: "job_group", Label: "NAME", Repeated: true,
		Doc: "jobs and services that are placed together, all or none, and reservations near them",
		Attrs: []Attribute{
			{Name: "namespace", Type: "reference", Default: "one named after the group", Doc: "namespace.NAME"},
			{Name: "same_region", Type: "bool", Default: "true", Doc: "all slices in one region"},
			{Name: "same_zone", Type: "bool", Default: "false", Doc: "all slices in one zone"},
			dependsOnAttribute(),
		},
		Blocks: []*BlockType{JobType(), actorServiceType(), ReservationType()},
	}
}

// JobType is the type of job blocks.
func JobType() *BlockType {
	t := &BlockType{
		Name: "job", Label: "NAME", Repeated: true,
		Doc: "a command run as one gang: one task for each host of its slices",
		Attrs: []Attribute{
			{Name: "count", Type: "number", Doc: "how many instances: job.NAME[0], job.NAME[1], …", Mode: ModeShape},
			{Name: "for_each", Type: "map or set of strings", Doc: `one instance for each key: job.NAME["key"]`, Mode: ModeShape},
			{Name: "timeout", Type: "duration", Default: "none", Doc: "of an attempt"},
			{Name: "scheduling_timeout", Type: "duration", Default: "none", Doc: "the longest wait for the first start, after which the job has failed"},
		},
	}
	t.Attrs = append(t.Attrs, workloadAttributes("one named after the job; in a job_group, the group's")...)
	t.Blocks = append(workloadBlocks(), scheduleType(), &BlockType{
		Name: "retries", Doc: "how often the job is tried again, by cause; -1 is without end",
		Attrs: []Attribute{
			{Name: "failure", Type: "number", Default: "0", Doc: "after the program failed"},
			{Name: "preemption", Type: "number", Default: "100", Doc: "after its slices were lost or taken away; as often again where its exit status is unknown"},
		},
	})
	return t
}

// scheduleType is the type of the block that says when a job runs.
func scheduleType() *BlockType {
	return &BlockType{
		Name: "schedule", Doc: "runs of the job at times of the clock; without one it runs once, when it is applied",
		Attrs: []Attribute{
			{Name: "cron", Type: "string", Required: true, Doc: `five fields: minute, hour, day of month, month, day of week, such as "0 3 * * *"; or @hourly, @daily, @weekly, @monthly, @yearly`},
			{Name: "timezone", Type: "string", Default: "UTC", Doc: `IANA name of the time zone of cron, such as "Europe/Zurich"`},
			{Name: "overlap", Type: "string", Values: valuesOf(schema.OverlapSkip, schema.OverlapWait, schema.OverlapReplace), Default: "skip", Doc: "a run that is due while the one before goes on does not begin (skip), waits for its end, one at most (wait), or has it stopped (replace)"},
			{Name: "missed", Type: "string", Values: valuesOf(schema.MissedSkip, schema.MissedOnce, schema.MissedAll), Default: "once", Doc: "of the runs that were due while no controller served, none begins (skip), the last one (once), or each after the other, the last 100 at most (all)"},
			{Name: "starting_deadline", Type: "duration", Default: "none", Doc: "how late a run may begin; a later one is skipped"},
			{Name: "suspend", Type: "bool", Default: "false", Doc: "true: no run begins, and none counts as missed"},
		},
	}
}

func actorServiceType() *BlockType {
	t := &BlockType{
		Name: "actor_service", Label: "NAME", Repeated: true,
		Doc: "replicas that stay up: actor_service.NAME[0], …; in them, count.index is the replica's number",
		Attrs: []Attribute{
			{Name: "replicas", Type: "number", Default: "1", Doc: "how many", Mode: ModeShape},
		},
	}
	t.Attrs = append(t.Attrs, workloadAttributes("one named after the service; in a job_group, the group's")...)
	command := slices.IndexFunc(t.Attrs, func(a Attribute) bool { return a.Name == "command" })
	t.Attrs[command].Required = false // an actor block may stand instead
	t.Blocks = append(workloadBlocks(),
		&BlockType{
			Name: "restart", Doc: "when a replica starts again",
			Attrs: []Attribute{
				{Name: "max", Type: "number", Default: "-1", Doc: "how often, -1 is without end"},
				{Name: "on", Type: "string", Values: []string{"failure", "always"}, Default: "failure", Doc: "failure, or always: after a clean exit too"},
			},
		},
		&BlockType{
			Name: ActorBlock, Doc: "an actor to host in each replica; without command, a Python class that fray.host runs",
			Attrs: []Attribute{
				{Name: "class", Type: "string", Required: true, Doc: "package.module:Class; with command, the name that the program knows it by"},
				{Name: "args", Type: "map", Doc: "of the constructor, by name, of any types"},
				{Name: "max_concurrency", Type: "number", Default: "1; 1000 for a class with async methods", Doc: "how many of its calls run at once"},
				{Name: "concurrency_groups", Type: "map of numbers", Doc: "how many calls run at once of the methods of each group, `{ io = 4 }`; a class assigns methods to groups, in Python by `@method(concurrency_group=...)`"},
				{Name: "allow_pickle", Type: "bool", Default: "false", Doc: "take and give Python objects that only pickle carries, from and to peers of the namespace"},
			},
		},
	)
	return t
}

func dependsOnAttribute() Attribute {
	return Attribute{
		Name: "depends_on", Type: "list of references", Mode: ModeRaw,
		Doc: "jobs, groups, services and modules that come first; a reference in any expression implies it",
	}
}

// workloadAttributes are what a job and an actor service have in common.
func workloadAttributes(namespace string) []Attribute {
	return []Attribute{
		{Name: "command", Type: "list of strings", Required: true, Doc: "the program and its arguments; no shell in between"},
		{Name: "args", Type: "list of strings", Doc: "appended to command"},
		{Name: "namespace", Type: "reference", Default: namespace, Doc: "namespace.NAME"},
		dependsOnAttribute(),
		{Name: "stop_grace", Type: "duration", Default: "10s", Doc: "between SIGTERM and SIGKILL"},
		{Name: "priority", Type: "number", Default: "0", Doc: "the higher one gets capacity first within its band"},
		{Name: "user", Type: "string", Doc: "whose share of the namespace it uses"},
		{Name: "band", Type: "string", Values: valuesOf(schema.BandProduction, schema.BandInteractive, schema.BandBatch), Default: "interactive", Doc: "production, interactive or batch: the later yields first"},
		{Name: "labels", Type: "map of strings", Doc: "for people and queries"},
	}
}

func workloadBlocks() []*BlockType {
	return []*BlockType{
		ResourcesType(),
		workloadLifecycleType(),
		{
			Name: "environment", Doc: "what the tasks run in",
			Attrs: []Attribute{
				{Name: "project", Type: "string", Doc: "a directory, relative to the configuration, that is shipped to every host"},
				{Name: "image", Type: "string", Doc: "container image"},
				{Name: "env", Type: "map of strings", Doc: "environment variables"},
			},
			Blocks: []*BlockType{{
				Name: "uv", Doc: "a Python environment that uv makes from the project's uv.lock",
				Attrs: []Attribute{
					{Name: "extras", Type: "list of strings", Doc: "optional dependencies to install"},
					{Name: "groups", Type: "list of strings", Doc: "dependency groups to install"},
					{Name: "python", Type: "string", Default: "what uv chooses", Doc: `version, such as "3.12"`},
				},
			}},
		},
		{
			Name: "before_stop", Doc: "a command that runs on the host beside a task, in its environment, before fray sends it SIGTERM",
			Attrs: []Attribute{
				{Name: "command", Type: "list of strings", Required: true, Doc: "the program and its arguments; no shell in between"},
				{Name: "timeout", Type: "duration", Default: "60s", Doc: "after which it is ended, and the task is stopped; stop_grace follows"},
				{Name: "on", Type: "list of strings", Default: "all", Doc: "before which stops: preemption, stop, restart, destroy"},
				{Name: "tasks", Type: "string", Values: valuesOf(schema.HookOnAll, schema.HookOnFirst), Default: "all", Doc: "beside which tasks of the gang: all of them, or the first"},
			},
		},
		{
			Name: "health_check", Doc: "how to check that a task works; exactly one of http, tcp, exec",
			Attrs: []Attribute{
				{Name: "http", Type: "string", Doc: "path that must answer 200 to 399"},
				{Name: "tcp", Type: "bool", Doc: "true: the port must accept connections"},
				{Name: "exec", Type: "list of strings", Doc: "command that must exit with 0"},
				{Name: "port", Type: "string or number", Default: "the only port of resources", Doc: "name of a port of resources, or its number"},
				{Name: "interval", Type: "duration", Default: "10s", Doc: "from check to check"},
				{Name: "timeout", Type: "duration", Default: "5s", Doc: "of one check"},
				{Name: "threshold", Type: "number", Default: "3", Doc: "failures in a row that make a task unhealthy"},
				{Name: "start_period", Type: "duration", Default: "0s", Doc: "after the start, in which failures do not count"},
			},
		},
	}
}

// ResourcesType is the type of the resources of a job.
func ResourcesType() *BlockType {
	t := &BlockType{
		Name: "resources", Doc: "what one instance runs on",
		Attrs: []Attribute{
			{Name: "provider", Type: "string", Values: valuesOf(schema.ProviderNames()...), Default: "the only declared provider, else local", Doc: "local, gcp or ray"},
			{Name: "reservation", Type: "reference", Doc: "reservation.NAME: the pool to draw from, which gives the shape; with cpu, memory or disk a part of its machines"},
			{Name: "tpu", Type: "string", Names: NamesOfTPUTypes, Doc: "TPU type, such as v5litepod-16; not together with gpu, cpu, memory, disk, machine_type"},
			{Name: "accelerators", Type: "list of strings", Names: NamesOfAccelerators, Doc: "alternatives in order of preference, each a TPU type or GPUs of a machine as TYPE:COUNT, such as [\"v5litepod-16\", \"h100:8\"]; not together with tpu, gpu, cpu, memory, disk, machine_type, reservation"},
			{Name: "cpu", Type: "number", Default: "1 without tpu, accelerators, gpu and machine_type", Doc: "cores of each slice, or of each task on a reservation's machines"},
			{Name: "memory", Type: "size", Doc: "likewise"},
			{Name: "disk", Type: "size", Doc: "likewise"},
			{Name: "machine_type", Type: "string", Doc: "of the provider, such as n2-standard-8"},
			{Name: "slices", Type: "number", Default: "1", Doc: "one gang over this many slices, or tasks on a reservation's machines"},
			{Name: "preemptible", Type: "bool", Default: "true for tpu, gpu and accelerators, else false", Doc: "whether the slices may be taken away"},
			{Name: "zones", Type: "list of strings", Names: NamesOfZones, Default: "the provider's", Doc: "in order of preference"},
			{Name: "regions", Type: "list of strings", Names: NamesOfRegions, Doc: "to choose zones from"},
			{Name: "ports", Type: "list of strings or map of numbers", Doc: "names of ports, each free or of a fixed number"},
		},
	}
	t.Attrs = append(t.Attrs, SliceAttributes()...)
	t.Attrs = append(t.Attrs, CloudAttributes(TheProviders)...)
	t.Blocks = []*BlockType{gpuType()}
	return t
}

// gpuType is the type of the block that states the GPUs of a machine.
func gpuType() *BlockType {
	return &BlockType{
		Name: "gpu", Doc: "the GPUs of each slice, which is one machine; not together with tpu",
		Attrs: []Attribute{
			{Name: "type", Type: "string", Names: NamesOfGPUTypes, Default: "any that the provider has", Doc: "GPU type, such as h100; Google Cloud needs one"},
			{Name: "count", Type: "number", Default: "1", Doc: "how many in each machine"},
		},
	}
}
