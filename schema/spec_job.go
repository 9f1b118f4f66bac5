package schema

import (
	"maps"
	"reflect"
	"slices"
)

// Job is one instance of a job, or one replica of an actor service: the unit
// that starts, restarts and ends as one gang.
type Job struct {
	Addr        Address     `json:"addr"`
	Namespace   string      `json:"namespace"`
	Command     []Text      `json:"command"`
	Resources   Resources   `json:"resources"`
	Environment Environment `json:"environment"`
	Retries     Retries     `json:"retries"`
	HealthCheck *Health     `json:"health_check,omitempty"`
	BeforeStop  *BeforeStop `json:"before_stop,omitempty"`
	Schedule    *Schedule   `json:"schedule,omitempty"` // nil: it runs once
	// StopGrace is the time between SIGTERM and SIGKILL.
	StopGrace Duration `json:"stop_grace"`
	Timeout   Duration `json:"timeout,omitempty"` // of an attempt; 0: none
	// SchedulingTimeout bounds the wait for the first attempt; 0: none.
	SchedulingTimeout Duration          `json:"scheduling_timeout,omitempty"`
	Priority          int               `json:"priority,omitempty"`
	Band              Band              `json:"band,omitempty"`
	User              string            `json:"user,omitempty"` // whose share it uses, "": no user's
	Labels            map[string]string `json:"labels,omitempty"`
	// DependsOn are the stated dependencies and Uses those implied by reading
	// another job's values; both sorted, a base address means all instances.
	// A stated one is met when the other is ready (a service, or a job with a
	// health check) or has succeeded (any other job); a used one when it is ready.
	DependsOn []Address `json:"depends_on,omitempty"`
	Uses      []Address `json:"uses,omitempty"`
	Lifecycle Lifecycle `json:"lifecycle,omitzero"`
	// Sensitive are the sensitive values that went into the texts of Command and
	// of the environment, sealed: they are hidden in what tasks write, like those
	// texts. They are no part of what the job is, nor of its digest.
	Sensitive []Text `json:"sensitive,omitempty"`
}

// IsService reports whether the job is meant to stay up: a replica of an actor service.
func (j *Job) IsService() bool { return j.Addr.Kind == KindActorService }

// HasUnknown reports whether the job waits for values known after apply.
func (j *Job) HasUnknown() bool {
	if slices.ContainsFunc(j.Command, Text.IsUnknown) {
		return true
	}
	for _, value := range j.Environment.Env {
		if value.IsUnknown() {
			return true
		}
	}
	return false
}

// Band is a closed set of priority bands.
type Band string

// The bands, the one that yields last first. The zero Band is BandInteractive.
const (
	BandProduction  Band = "production"
	BandInteractive Band = "interactive"
	BandBatch       Band = "batch"
)

// Resources says what one instance of a job runs on. TPU is exclusive with GPU,
// CPU, Memory, Disk and MachineType; with Reservation set, the shape is the
// reservation's, already filled in here. With Accelerators, TPU or GPU is the first.
type Resources struct {
	Provider    ProviderName `json:"provider"`
	Reservation string       `json:"reservation,omitempty"` // name of the reservation drawn from
	TPU         string       `json:"tpu,omitempty"`         // canonical accelerator type
	GPU         GPU          `json:"gpu,omitzero"`          // of each slice, which is one machine
	// Accelerators are alternatives in order of preference; nil: there is no choice.
	Accelerators []Accelerator `json:"accelerators,omitempty"`
	CPU          float64       `json:"cpu,omitempty"` // cores
	Memory       Bytes         `json:"memory,omitempty"`
	Disk         Bytes         `json:"disk,omitempty"`
	MachineType  string        `json:"machine_type,omitempty"`
	Slices       int           `json:"slices"` // at least 1
	Preemptible  bool          `json:"preemptible"`
	Zones        []string      `json:"zones,omitempty"`
	Regions      []string      `json:"regions,omitempty"`
	Ports        []Port        `json:"ports,omitempty"` // sorted by name
	// Packed says that CPU, Memory and Disk are a part of a host that others
	// share, rather than the shape of hosts of its own.
	Packed bool `json:"packed,omitempty"`
	// Cloud is filled in from the provider where the job says nothing.
	Cloud CloudSpec `json:"cloud,omitzero"`
}

// Port is a named port of a task. Number 0 means that the agent picks a free one.
type Port struct {
	Name   string `json:"name"`
	Number int    `json:"number,omitempty"`
}

// Environment says what a task runs in.
type Environment struct {
	Project string          `json:"project,omitempty"` // absolute directory, shipped by content hash
	Bundle  string          `json:"bundle,omitempty"`  // sha256 of the shipped project, filled in at the edge
	Image   string          `json:"image,omitempty"`
	UV      *UV             `json:"uv,omitempty"`
	Env     map[string]Text `json:"env,omitempty"`
	// Callable is the sha256 of a pickled Python callable in the store, which
	// the command finds in the file that FRAY_CALLABLE names; "": there is none.
	Callable string `json:"callable,omitempty"`
}

// UV asks for a Python environment made by uv from the project's lock file.
type UV struct {
	Extras []string `json:"extras,omitempty"`
	Groups []string `json:"groups,omitempty"`
	Python string   `json:"python,omitempty"` // version request, "" lets uv choose
}

// Unlimited is a retry budget without an end.
const Unlimited = -1

// Retries are how often an instance is tried again, by cause. Unlimited is -1.
type Retries struct {
	Failure    int `json:"failure"`
	Preemption int `json:"preemption"`
	// OnSuccess restarts a task that exited cleanly too (actor_service restart { on = "always" }).
	OnSuccess bool `json:"on_success,omitempty"`
}

// Health is a health check. Exactly one of HTTP, TCP and Exec is set.
type Health struct {
	HTTP      string   `json:"http,omitempty"` // path
	TCP       bool     `json:"tcp,omitempty"`
	Exec      []string `json:"exec,omitempty"`
	Port      string   `json:"port,omitempty"` // name of a port, or its number
	Interval  Duration `json:"interval"`
	Timeout   Duration `json:"timeout"`
	Threshold int      `json:"threshold"` // consecutive failures that make it unhealthy
	// StartPeriod is the time after start in which failures do not count.
	StartPeriod Duration `json:"start_period"`
}

// EqualJobs reports whether two specs are the same, field by field. It spares
// most jobs of most Diffs the digest, which costs a hundred times as much.
func EqualJobs(a, b *Job) bool {
	return a.Addr == b.Addr && slices.Equal(a.Command, b.Command) && equalBesides(a, b)
}

// AlikeJobs reports whether two specs differ in nothing but their addresses and commands, as
// instances of one block mostly do.
func AlikeJobs(a, b *Job) bool {
	x, y := &a.Lifecycle, &b.Lifecycle
	return equalBesides(a, b) && x.PreventDestroy == y.PreventDestroy && x.CreateBeforeDestroy == y.CreateBeforeDestroy &&
		x.Trigger == y.Trigger && slices.Equal(x.Ignore, y.Ignore) && slices.Equal(x.TriggeredBy, y.TriggeredBy)
}

// equalBesides compares what two jobs are beside their addresses, commands and lifecycles.
func equalBesides(a, b *Job) bool {
	return a.Namespace == b.Namespace &&
		a.StopGrace == b.StopGrace && a.Timeout == b.Timeout &&
		a.SchedulingTimeout == b.SchedulingTimeout && a.User == b.User &&
		a.Priority == b.Priority && a.Band == b.Band && a.Retries == b.Retries &&
		maps.Equal(a.Labels, b.Labels) &&
		slices.Equal(a.DependsOn, b.DependsOn) && slices.Equal(a.Uses, b.Uses) &&
		equalResources(&a.Resources, &b.Resources) &&
		equalEnvironments(&a.Environment, &b.Environment) &&
		equalHealth(a.HealthCheck, b.HealthCheck) &&
		equalBeforeStop(a.BeforeStop, b.BeforeStop) && EqualSchedules(a.Schedule, b.Schedule)
}

func equalResources(a, b *Resources) bool {
	return a.Provider == b.Provider && a.Reservation == b.Reservation && a.TPU == b.TPU && a.GPU == b.GPU &&
		a.CPU == b.CPU && a.Memory == b.Memory && a.Disk == b.Disk && a.MachineType == b.MachineType &&
		a.Slices == b.Slices && a.Packed == b.Packed && a.Preemptible == b.Preemptible && a.Cloud == b.Cloud &&
		slices.Equal(a.Zones, b.Zones) && slices.Equal(a.Regions, b.Regions) && slices.Equal(a.Ports, b.Ports) &&
		slices.Equal(a.Accelerators, b.Accelerators)
}

// SameTexts reports whether two environments have the same variables. Of a job that was
// copied they are one map, which costs nothing to compare.
func SameTexts(a, b map[string]Text) bool {
	return reflect.ValueOf(a).UnsafePointer() == reflect.ValueOf(b).UnsafePointer() || maps.Equal(a, b)
}

func equalEnvironments(a, b *Environment) bool {
	if a.Project != b.Project || a.Bundle != b.Bundle || a.Image != b.Image || a.Callable != b.Callable || !SameTexts(a.Env, b.Env) {
		return false
	}
	if a.UV == nil || b.UV == nil {
		return a.UV == b.UV
	}
	return a.UV.Python == b.UV.Python && slices.Equal(a.UV.Extras, b.UV.Extras) && slices.Equal(a.UV.Groups, b.UV.Groups)
}

func equalHealth(a, b *Health) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.HTTP == b.HTTP && a.TCP == b.TCP && slices.Equal(a.Exec, b.Exec) && a.Port == b.Port &&
		a.Interval == b.Interval && a.Timeout == b.Timeout && a.Threshold == b.Threshold && a.StartPeriod == b.StartPeriod
}
