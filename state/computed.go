package state

import "github.com/fray-ml/fray/schema"

// Computed returns what expressions may read of every job that has run: the
// values of its newest attempt that got that far.
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
	return out
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
