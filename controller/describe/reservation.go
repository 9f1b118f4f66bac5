package describe

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Reservation is a recorded reservation as a message.
func Reservation(v *access.View, addr schema.Address) *clusterapi.ReservationInfo {
	r := v.Doc.Resources[addr]
	spec := r.Reservation
	info := &clusterapi.ReservationInfo{ReservationId: addr.Scoped(), Config: reservationConfig(addr, r)}
	info.Released = r.Launch != nil && !r.Launch.ReleasedAt.IsZero()
	stand := capacity.ReservationStatus(&schema.Desired{Reservations: []schema.Reservation{*spec}}, &plan.Plan{Next: v.Doc, Pending: v.Plan.Pending}, v.At)[0]
	info.Allocated, info.Pending = amountOf(spec, spec.Max, stand.Allocated), amountOf(spec, spec.Max, stand.Pending)
	info.Free, info.PendingReasons, info.ExpiresAt = int32(stand.Free), stand.Reasons, stamp(stand.ExpiresAt)
	for _, holder := range stand.Jobs {
		if j := v.Doc.Jobs[holder]; j != nil {
			info.JobIds = append(info.JobIds, j.ID)
		}
	}
	return info
}

// amountOf is a number of slices of a shape of a reservation, which may be none.
func amountOf(of *schema.Reservation, shape schema.Capacity, n int) *clusterapi.Resources {
	r := &clusterapi.Resources{
		Tpu: shape.TPU, Cpu: shape.CPU, Memory: int64(shape.Memory), Disk: int64(shape.Disk), Slices: int32(n), Preemptible: new(of.Preemptible),
	}
	if shape.GPU.Count > 0 {
		r.Gpu = &clusterapi.Gpu{Type: shape.GPU.Type, Count: int32(shape.GPU.Count)}
	}
	return r
}

func reservationConfig(addr schema.Address, r state.Resource) *clusterapi.ReservationConfig {
	spec := r.Reservation
	config := &clusterapi.ReservationConfig{
		Name: addr.Name, Min: amountOf(spec, spec.Min, spec.Min.Slices), Max: amountOf(spec, spec.Max, spec.Max.Slices),
		Priority: int32(spec.Priority), Ttl: durationpb.New(time.Duration(spec.TTL)), Preemptible: spec.Preemptible, Namespace: spec.Namespace,
	}
	config.Max.Provider, config.Max.Zones, config.Max.Regions = string(spec.Provider), spec.Zones, spec.Regions
	if r.Launch != nil {
		config.Name, config.Detached = r.Launch.Name, r.Launch.Detached
	}
	return config
}
