package plan

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// EqualJobs reports whether two specs are the same, field by field. It spares
// most jobs of most Diffs the digest, which costs a hundred times as much.
func EqualJobs(a, b *schema.Job) bool {
	return a.Addr == b.Addr && a.Namespace == b.Namespace &&
		a.StopGrace == b.StopGrace && a.Timeout == b.Timeout &&
		a.SchedulingTimeout == b.SchedulingTimeout && a.User == b.User &&
		a.Priority == b.Priority && a.Band == b.Band && a.Retries == b.Retries &&
		slices.Equal(a.Command, b.Command) && maps.Equal(a.Labels, b.Labels) &&
		slices.Equal(a.DependsOn, b.DependsOn) && slices.Equal(a.Uses, b.Uses) &&
		equalResources(&a.Resources, &b.Resources) &&
		equalEnvironments(&a.Environment, &b.Environment) &&
		equalHealth(a.HealthCheck, b.HealthCheck)
}

func equalResources(a, b *schema.Resources) bool {
	return a.Provider == b.Provider && a.Reservation == b.Reservation && a.TPU == b.TPU &&
		a.CPU == b.CPU && a.Memory == b.Memory && a.Disk == b.Disk && a.MachineType == b.MachineType &&
		a.Slices == b.Slices && a.Packed == b.Packed && a.Preemptible == b.Preemptible && a.Cloud == b.Cloud &&
		slices.Equal(a.Zones, b.Zones) && slices.Equal(a.Regions, b.Regions) && slices.Equal(a.Ports, b.Ports)
}

func equalEnvironments(a, b *schema.Environment) bool {
	if a.Project != b.Project || a.Bundle != b.Bundle || a.Image != b.Image || a.Callable != b.Callable || !maps.Equal(a.Env, b.Env) {
		return false
	}
	if a.UV == nil || b.UV == nil {
		return a.UV == b.UV
	}
	return a.UV.Python == b.UV.Python && slices.Equal(a.UV.Extras, b.UV.Extras) && slices.Equal(a.UV.Groups, b.UV.Groups)
}

func equalHealth(a, b *schema.Health) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.HTTP == b.HTTP && a.TCP == b.TCP && slices.Equal(a.Exec, b.Exec) && a.Port == b.Port &&
		a.Interval == b.Interval && a.Timeout == b.Timeout && a.Threshold == b.Threshold && a.StartPeriod == b.StartPeriod
}

// EqualReservations leaves out the lifecycle, as equalJobs does: it is no part of
// the reservation's spec.
func EqualReservations(a, b *schema.Reservation) bool {
	return a.Addr == b.Addr && a.Provider == b.Provider && a.Min == b.Min && a.Max == b.Max &&
		a.Priority == b.Priority && a.TTL == b.TTL && a.IdleTimeout == b.IdleTimeout && a.Growth == b.Growth && a.Namespace == b.Namespace && a.Preemptible == b.Preemptible && a.Cloud == b.Cloud &&
		slices.Equal(a.Zones, b.Zones) && slices.Equal(a.Regions, b.Regions)
}

func equalNamespaces(a, b *schema.Namespace) bool {
	return a.Addr == b.Addr && a.MaxChips == b.MaxChips && a.MaxCPU == b.MaxCPU && a.Budget == b.Budget &&
		a.Weight == b.Weight && a.IdleTimeout == b.IdleTimeout && slices.Equal(a.Users, b.Users)
}

// SameResource reports whether two declarations are the same.
func SameResource(a, b state.Resource) bool {
	switch {
	case a.Namespace != nil && b.Namespace != nil:
		return equalNamespaces(a.Namespace, b.Namespace)
	case a.Reservation != nil && b.Reservation != nil:
		return EqualReservations(a.Reservation, b.Reservation)
	case a.Group != nil && b.Group != nil:
		return *a.Group == *b.Group
	}
	return false
}
