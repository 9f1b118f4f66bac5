package schedule

import (
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Claims is what jobs ask of capacity, in the order of the queue.
type Claims struct {
	*lifecycle.Declarations

	stays map[capacity.Bound]snapshot.Load // capacity of jobs that do not end by themselves, see enduring
	byID  map[string]schema.Address        // of jobs, see launcher
}

// launcher is the job that launched another, nil if none did or it is gone.
func (d *Claims) launcher(j *state.Job) *state.Job {
	if j.Launch == nil || j.Launch.Parent == "" {
		return nil
	}
	if d.byID == nil {
		d.byID = make(map[string]schema.Address, len(d.Next.Jobs))
		for addr, j := range d.Next.Jobs {
			d.byID[j.ID] = addr
		}
	}
	return d.Next.Jobs[d.byID[j.Launch.Parent]]
}
