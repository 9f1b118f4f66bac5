package change

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// JobAttrs flattens a job's spec in the order of the language reference.
func JobAttrs(j *schema.Job) []Attr {
	l := attrList{attrs: make([]Attr, 0, 16)}
	l.words(commandPath, j.Command)
	l.add("namespace", j.Namespace, j.Namespace == "")
	r := &j.Resources
	l.add("resources.provider", r.Provider, r.Provider == "")
	l.add("resources.reservation", r.Reservation, r.Reservation == "")
	isChoice := len(r.Accelerators) > 0 && r.TPU == r.Accelerators[0].TPU() && r.GPU == r.Accelerators[0].GPU() // TPU or GPU only repeats it
	l.add("resources.accelerators", r.Accelerators, len(r.Accelerators) == 0)
	l.add("resources.tpu", r.TPU, r.TPU == "" || isChoice)
	if !isChoice {
		l.gpu("resources.gpu", r.GPU)
	}
	l.add("resources.cpu", r.CPU, r.CPU == 0)
	l.add("resources.memory", r.Memory.String(), r.Memory == 0)
	l.add("resources.disk", r.Disk.String(), r.Disk == 0)
	l.add("resources.packed", r.Packed, !r.Packed)
	l.add("resources.machine_type", r.MachineType, r.MachineType == "")
	l.add("resources.slices", r.Slices, false)
	l.add("resources.preemptible", r.Preemptible, false)
	l.add("resources.zones", r.Zones, len(r.Zones) == 0)
	l.add("resources.regions", r.Regions, len(r.Regions) == 0)
	for _, p := range r.Ports {
		l.add("resources.ports."+p.Name, p.Number, false)
	}
	l.cloudAttrs("resources.", &r.Cloud)
	e := &j.Environment
	l.add("environment.project", e.Project, e.Project == "")
	l.add("environment.bundle", shortSum(e.Bundle), e.Bundle == "")
	l.add("environment.image", e.Image, e.Image == "")
	l.add("environment.callable", shortSum(e.Callable), e.Callable == "")
	if e.UV != nil {
		l.add("environment.uv.extras", e.UV.Extras, len(e.UV.Extras) == 0)
		l.add("environment.uv.groups", e.UV.Groups, len(e.UV.Groups) == 0)
		l.add("environment.uv.python", e.UV.Python, e.UV.Python == "")
		l.add("environment.uv", true, len(e.UV.Extras)+len(e.UV.Groups)+len(e.UV.Python) > 0)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		l.text("environment.env."+name, e.Env[name])
	}
	l.add("retries.failure", j.Retries.Failure, false)
	l.add("retries.preemption", j.Retries.Preemption, false)
	l.add("retries.on_success", true, !j.Retries.OnSuccess)
	if h := j.HealthCheck; h != nil {
		l.add("health_check.http", h.HTTP, h.HTTP == "")
		l.add("health_check.tcp", true, !h.TCP)
		l.add("health_check.exec", h.Exec, len(h.Exec) == 0)
		l.add("health_check.port", h.Port, h.Port == "")
		l.add("health_check.interval", h.Interval, false)
		l.add("health_check.timeout", h.Timeout, false)
		l.add("health_check.threshold", h.Threshold, false)
		l.add("health_check.start_period", h.StartPeriod, h.StartPeriod == 0)
	}
	if b := j.BeforeStop; b != nil {
		l.add("before_stop.command", b.Command, false)
		l.add("before_stop.timeout", b.Timeout, false)
		l.add("before_stop.on", b.On, len(b.On) == 0)
		l.add("before_stop.tasks", b.Tasks, false)
	}
	if s := j.Schedule; s != nil {
		l.add("schedule.cron", s.Cron, false)
		l.add("schedule.timezone", s.Timezone, s.Timezone == "")
		l.add("schedule.overlap", s.Overlap, false)
		l.add("schedule.missed", s.Missed, false)
		l.add("schedule.starting_deadline", s.StartingDeadline, s.StartingDeadline == 0)
		l.add("schedule.suspend", true, !s.Suspend)
	}
	l.add("stop_grace", j.StopGrace, false)
	l.add("timeout", j.Timeout, j.Timeout == 0)
	l.add("scheduling_timeout", j.SchedulingTimeout, j.SchedulingTimeout == 0)
	l.add("priority", j.Priority, j.Priority == 0)
	l.add("user", j.User, j.User == "")
	l.add("band", j.Band, j.Band == "")
	for _, name := range slices.Sorted(maps.Keys(j.Labels)) {
		l.add("labels."+name, j.Labels[name], false)
	}
	l.add("depends_on", j.DependsOn, len(j.DependsOn) == 0)
	l.add("uses", j.Uses, len(j.Uses) == 0)
	return l.attrs
}

// attrVerb is what a change of one attribute means (docs/language.md, "What a
// change does").
func attrVerb(path string) plan.Verb {
	if isLive(path) {
		return plan.VerbUpdate
	}
	switch path {
	case "resources.zones", "resources.regions", "zones", "regions":
		return plan.VerbUpdate // where slices are that may stay; see changeOf
	case "namespaces", "command.command": // of a notification
		return plan.VerbUpdate
	}
	for _, prefix := range []string{
		"resources.ports", "command", "namespace", "environment", "retries", "health_check", "before_stop", "stop_grace", "timeout",
	} {
		if strings.HasPrefix(path, prefix) {
			return plan.VerbRestart
		}
	}
	for _, prefix := range []string{
		"resources", "provider", "min.tpu", "min.gpu", "min.cpu", "min.memory", "min.disk", "preemptible", "engine", "provisioning", "valid_until", "max_run",
		"reserved_in", "runtime_version", "disks", "network", "subnetwork", "service_account", "boot_image",
	} {
		if strings.HasPrefix(path, prefix) {
			return plan.VerbReplace
		}
	}
	return plan.VerbUpdate
}

// jobAttributes are in the order of the language reference.
func jobAttributes() []attribute[schema.Job] {
	type job = schema.Job
	list := []attribute[job]{
		field("command", func(j *job) *[]schema.Text { return &j.Command }),
		field("namespace", func(j *job) *string { return &j.Namespace }),
	}
	list = append(list, resourceAttributes()...)
	list = append(list, environmentAttributes()...)
	list = append(list,
		field("retries.failure", func(j *job) *int { return &j.Retries.Failure }),
		field("retries.preemption", func(j *job) *int { return &j.Retries.Preemption }),
		field("retries.on_success", func(j *job) *bool { return &j.Retries.OnSuccess }),
	)
	list = append(list, healthAttributes()...)
	list = append(list, hookAttributes()...)
	list = append(list, scheduleAttributes()...)
	return append(list,
		field("stop_grace", func(j *job) *schema.Duration { return &j.StopGrace }),
		field("timeout", func(j *job) *schema.Duration { return &j.Timeout }),
		field("scheduling_timeout", func(j *job) *schema.Duration { return &j.SchedulingTimeout }),
		field("priority", func(j *job) *int { return &j.Priority }),
		field("user", func(j *job) *string { return &j.User }),
		field("band", func(j *job) *schema.Band { return &j.Band }),
		entries("labels", func(j *job) *map[string]string { return &j.Labels }),
		field("depends_on", func(j *job) *[]schema.Address { return &j.DependsOn }),
		field("uses", func(j *job) *[]schema.Address { return &j.Uses }),
	)
}

func resourceAttributes() []attribute[schema.Job] {
	type job = schema.Job
	list := []attribute[job]{
		field("resources.provider", func(j *job) *schema.ProviderName { return &j.Resources.Provider }),
		field("resources.reservation", func(j *job) *string { return &j.Resources.Reservation }),
		{path: "resources.accelerators", keep: keepAccelerators},
		field("resources.tpu", func(j *job) *string { return &j.Resources.TPU }),
		field("resources.gpu.type", func(j *job) *string { return &j.Resources.GPU.Type }),
		field("resources.gpu.count", func(j *job) *int { return &j.Resources.GPU.Count }),
		field("resources.cpu", func(j *job) *float64 { return &j.Resources.CPU }),
		field("resources.memory", func(j *job) *schema.Bytes { return &j.Resources.Memory }),
		field("resources.disk", func(j *job) *schema.Bytes { return &j.Resources.Disk }),
		field("resources.packed", func(j *job) *bool { return &j.Resources.Packed }),
		field("resources.machine_type", func(j *job) *string { return &j.Resources.MachineType }),
		field("resources.slices", func(j *job) *int { return &j.Resources.Slices }),
		field("resources.preemptible", func(j *job) *bool { return &j.Resources.Preemptible }),
		field("resources.zones", func(j *job) *[]string { return &j.Resources.Zones }),
		field("resources.regions", func(j *job) *[]string { return &j.Resources.Regions }),
		{path: "resources.ports", keyed: true, keep: keepPorts},
	}
	return append(list, cloudAttributes("resources.", func(j *job) *schema.CloudSpec { return &j.Resources.Cloud })...)
}

func keepPorts(want, recorded *schema.Job, key string) {
	if key == "" {
		want.Resources.Ports = recorded.Resources.Ports
		return
	}
	other := func(p schema.Port) bool { return p.Name != key }
	ports := slices.DeleteFunc(slices.Clone(want.Resources.Ports), func(p schema.Port) bool { return !other(p) })
	ports = append(ports, slices.DeleteFunc(slices.Clone(recorded.Resources.Ports), other)...)
	slices.SortFunc(ports, func(a, b schema.Port) int { return cmp.Compare(a.Name, b.Name) })
	want.Resources.Ports = ports
}

func environmentAttributes() []attribute[schema.Job] {
	type job = schema.Job
	uv := func(j *job) **schema.UV { return &j.Environment.UV }
	return []attribute[job]{
		{path: "environment.project", keep: func(want, recorded *job, _ string) {
			// What is in the directory comes with it.
			want.Environment.Project, want.Environment.Bundle = recorded.Environment.Project, recorded.Environment.Bundle
		}},
		field("environment.bundle", func(j *job) *string { return &j.Environment.Bundle }),
		field("environment.image", func(j *job) *string { return &j.Environment.Image }),
		field("environment.uv", uv),
		inBlock("environment.uv.extras", uv, func(u *schema.UV) *[]string { return &u.Extras }),
		inBlock("environment.uv.groups", uv, func(u *schema.UV) *[]string { return &u.Groups }),
		inBlock("environment.uv.python", uv, func(u *schema.UV) *string { return &u.Python }),
		field("environment.callable", func(j *job) *string { return &j.Environment.Callable }),
		entries("environment.env", func(j *job) *map[string]schema.Text { return &j.Environment.Env }),
	}
}

func healthAttributes() []attribute[schema.Job] {
	block := func(j *schema.Job) **schema.Health { return &j.HealthCheck }
	list := []attribute[schema.Job]{field("health_check", block)}
	for _, kind := range []string{"http", "tcp", "exec"} { // they exclude one another: each stands for all three
		list = append(list,
			inBlock("health_check."+kind, block, func(h *schema.Health) *string { return &h.HTTP }),
			inBlock("health_check."+kind, block, func(h *schema.Health) *bool { return &h.TCP }),
			inBlock("health_check."+kind, block, func(h *schema.Health) *[]string { return &h.Exec }))
	}
	return append(list,
		inBlock("health_check.port", block, func(h *schema.Health) *string { return &h.Port }),
		inBlock("health_check.interval", block, func(h *schema.Health) *schema.Duration { return &h.Interval }),
		inBlock("health_check.timeout", block, func(h *schema.Health) *schema.Duration { return &h.Timeout }),
		inBlock("health_check.threshold", block, func(h *schema.Health) *int { return &h.Threshold }),
		inBlock("health_check.start_period", block, func(h *schema.Health) *schema.Duration { return &h.StartPeriod }),
	)
}

func hookAttributes() []attribute[schema.Job] {
	block := func(j *schema.Job) **schema.BeforeStop { return &j.BeforeStop }
	return []attribute[schema.Job]{
		field("before_stop", block),
		inBlock("before_stop.command", block, func(b *schema.BeforeStop) *[]string { return &b.Command }),
		inBlock("before_stop.timeout", block, func(b *schema.BeforeStop) *schema.Duration { return &b.Timeout }),
		inBlock("before_stop.on", block, func(b *schema.BeforeStop) *[]schema.StopReason { return &b.On }),
		inBlock("before_stop.tasks", block, func(b *schema.BeforeStop) *schema.HookTasks { return &b.Tasks }),
	}
}

func scheduleAttributes() []attribute[schema.Job] {
	block := func(j *schema.Job) **schema.Schedule { return &j.Schedule }
	return []attribute[schema.Job]{
		field("schedule", block),
		inBlock("schedule.cron", block, func(s *schema.Schedule) *string { return &s.Cron }),
		inBlock("schedule.timezone", block, func(s *schema.Schedule) *string { return &s.Timezone }),
		inBlock("schedule.overlap", block, func(s *schema.Schedule) *schema.Overlap { return &s.Overlap }),
		inBlock("schedule.missed", block, func(s *schema.Schedule) *schema.Missed { return &s.Missed }),
		inBlock("schedule.starting_deadline", block, func(s *schema.Schedule) *schema.Duration { return &s.StartingDeadline }),
		inBlock("schedule.suspend", block, func(s *schema.Schedule) *bool { return &s.Suspend }),
	}
}
