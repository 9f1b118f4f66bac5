package change

import (
	"cmp"
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// field is an attribute that is a field of its spec.
func field[T, V any](path string, at func(*T) *V) attribute[T] {
	return attribute[T]{path: path, keep: func(want, recorded *T, _ string) { *at(want) = *at(recorded) }}
}

// entries is an attribute that is a map.
func entries[T, V any](path string, at func(*T) *map[string]V) attribute[T] {
	return attribute[T]{path: path, keyed: true, keep: func(want, recorded *T, key string) {
		if key == "" {
			*at(want) = *at(recorded)
			return
		}
		kept := maps.Clone(*at(want))
		if value, there := (*at(recorded))[key]; !there {
			delete(kept, key)
		} else if kept == nil {
			kept = map[string]V{key: value}
		} else {
			kept[key] = value
		}
		*at(want) = kept
	}}
}

// inBlock is an attribute in a block that may be absent. Where one of the two has
// no such block, it is declared or removed whole, which only its own path ignores.
func inBlock[B, V any](path string, block func(*schema.Job) **B, at func(*B) *V) attribute[schema.Job] {
	return attribute[schema.Job]{path: path, keep: func(want, recorded *schema.Job, _ string) {
		to, from := block(want), block(recorded)
		if *to == nil || *from == nil {
			return
		}
		kept := **to
		*at(&kept) = *at(*from)
		*to = &kept
	}}
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
		field("resources.tpu", func(j *job) *string { return &j.Resources.TPU }),
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

// reservationAttributes are in the order of the language reference.
func reservationAttributes() []attribute[schema.Reservation] {
	type pool = schema.Reservation
	list := []attribute[pool]{field("provider", func(r *pool) *schema.ProviderName { return &r.Provider })}
	for _, end := range []struct {
		name string
		of   func(*pool) *schema.Capacity
	}{
		{"min", func(r *pool) *schema.Capacity { return &r.Min }},
		{"max", func(r *pool) *schema.Capacity { return &r.Max }},
	} {
		list = append(list,
			field(end.name+".tpu", func(r *pool) *string { return &end.of(r).TPU }),
			field(end.name+".cpu", func(r *pool) *float64 { return &end.of(r).CPU }),
			field(end.name+".memory", func(r *pool) *schema.Bytes { return &end.of(r).Memory }),
			field(end.name+".disk", func(r *pool) *schema.Bytes { return &end.of(r).Disk }),
			field(end.name+".slices", func(r *pool) *int { return &end.of(r).Slices }),
		)
	}
	list = append(list,
		field("priority", func(r *pool) *int { return &r.Priority }),
		field("ttl", func(r *pool) *schema.Duration { return &r.TTL }),
		field("idle_timeout", func(r *pool) *schema.Duration { return &r.IdleTimeout }),
		field("growth", func(r *pool) *schema.Growth { return &r.Growth }),
		field("namespace", func(r *pool) *string { return &r.Namespace }),
		field("preemptible", func(r *pool) *bool { return &r.Preemptible }),
		field("zones", func(r *pool) *[]string { return &r.Zones }),
		field("regions", func(r *pool) *[]string { return &r.Regions }),
	)
	return append(list, cloudAttributes("", func(r *pool) *schema.CloudSpec { return &r.Cloud })...)
}

// SameSpec reports whether a job is as it was carried out: the same value, or
// one that reads otherwise but has the same digest. Digests of different
// versions are never equal, so that the attributes decide.
func SameSpec(want *schema.Job, cur *state.Job) bool {
	if cur.Spec == want || plan.EqualJobs(cur.Spec, want) {
		return true
	}
	digest, err := schema.DigestOf(want)
	return err == nil && digest == cur.Digest
}
