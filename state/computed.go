package state

import (
	"slices"

	"github.com/fray-ml/fray/schema"
)

// Computed returns what expressions may read of every job that has run, the
// values of its newest attempt that got that far, and of every reservation that
// has its slices.
func (d *Document) Computed() map[schema.Address]schema.Computed {
	return d.ComputedOf(func(schema.Address) bool { return true })
}

// ComputedOf is Computed for some addresses only.
func (d *Document) ComputedOf(wanted func(schema.Address) bool) map[schema.Address]schema.Computed {
	out := map[schema.Address]schema.Computed{}
	for addr, j := range d.Jobs {
		if !wanted(addr) {
			continue
		}
		if c, ok := j.Computed(); ok {
			out[addr] = c
		}
	}
	for addr := range d.Resources {
		if addr.Kind == schema.KindReservation && wanted(addr) {
			if c, ok := d.ComputedOfReservation(addr); ok {
				out[addr] = c
			}
		}
	}
	return out
}

// ComputedOfReservation is what may be read of a reservation, and whether it is
// known: the names of its slices, once there are as many as it holds at least.
func (d *Document) ComputedOfReservation(addr schema.Address) (schema.Computed, bool) {
	r := d.Resources[addr].Reservation
	if r == nil {
		return schema.Computed{}, false
	}
	var names []string
	for name, s := range d.Slices {
		if s.Spec.Owner == addr && s.Listed && s.Terminating.IsZero() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return schema.Computed{Slices: names}, len(names) >= r.Min.Slices
}

// Computed is what others may read of the job, and whether that is known: it is
// what holds of the newest attempt of which every task has started.
func (j *Job) Computed() (schema.Computed, bool) {
	for i := len(j.Attempts) - 1; i >= 0; i-- {
		if c, ok := computed(j, &j.Attempts[i]); ok {
			return c, true
		}
	}
	return schema.Computed{}, false
}

func computed(j *Job, a *Attempt) (schema.Computed, bool) {
	c := schema.Computed{ID: j.ID, Slices: a.Slices, Status: j.Status}
	for i := range a.Tasks {
		t := &a.Tasks[i]
		if t.Address == "" || !t.Started {
			return c, false
		}
		c.Addresses = append(c.Addresses, t.Address)
	}
	if len(a.Tasks) > 0 {
		c.Ports = a.Tasks[0].Ports
	}
	return c, len(a.Tasks) > 0
}
