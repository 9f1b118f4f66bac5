package lifecycle

import (
	"fmt"

	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// reapChildren ends launched jobs and reservations together with the attempt that
// launched them, and that the past is forgotten.
func (d *Jobs) reapChildren() {
	oldest := launch.OldestRemembered(d.Doc.Past)
	for id, j := range d.Doc.Past {
		if !d.Now.Before(j.EndedAt.Add(launch.Retention)) || j.EndedAt.Before(oldest) {
			delete(d.Mutable().Past, id)
		}
	}
	var byID map[string]*state.Job
	parentEnded := func(l *state.Launch) bool {
		if byID == nil {
			byID = make(map[string]*state.Job, len(d.Next.Jobs))
			for _, j := range d.Next.Jobs {
				byID[j.ID] = j
			}
		}
		return launch.HasEnded(byID[l.Parent], l.ParentAttempt)
	}
	d.unbind()
	var stopped []schema.Address
	for addr, j := range d.Next.Jobs {
		if l := j.Launch; l != nil && l.Parent != "" && !l.Detached && !j.Status.Ended() && !j.Stop && parentEnded(l) {
			stopped = append(stopped, addr)
		}
	}
	for _, addr := range stopped {
		e := d.Edit(addr)
		e.Stop, e.StopBy = true, fmt.Sprintf("the end of job %s, which launched it", e.Launch.Parent)
	}
	for addr, r := range d.Next.Resources {
		if l := r.Launch; l != nil && l.Parent != "" && !l.Detached && l.ReleasedAt.IsZero() && r.Reservation != nil && parentEnded(l) {
			d.Mutable().Resources[addr] = launch.Released(d.Next, addr, d.Now).Resources[addr]
		}
	}
}

// unbind has launched jobs that wait for a reservation which was given up get
// slices of their own, of the shape that they were to have.
func (d *Jobs) unbind() {
	var free []schema.Address
	for addr, j := range d.Next.Jobs {
		name := j.Spec.Resources.Reservation
		if j.Launch == nil || name == "" || j.Status.Ended() || j.Stop || j.Running() || len(j.Slices)+len(j.Staged) > 0 {
			continue
		}
		r, there := d.Next.Resources[schema.ScopedAddress(schema.KindReservation, name)]
		if there && r.Launch != nil && !r.Launch.ReleasedAt.IsZero() {
			free = append(free, addr)
		}
	}
	for _, addr := range free {
		e := d.Edit(addr)
		spec := *e.Spec
		spec.Resources.Reservation, spec.Resources.Packed = "", false
		e.Spec, e.Digest = &spec, launch.DigestOf(&spec)
	}
}
