package plan

import (
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// A job that runs is steady if Diff, asked again, would find the same about it
// and do nothing, until something is seen to differ of the slices that it has:
// what their provider says of them, their assignments, or what their hosts
// report, heartbeats apart; or until a host of them has been silent for too long.
// In a large stack nearly all jobs are, nearly always.

// steadiness is what was seen of a steady job.
type steadiness []steadySlice

type steadySlice struct {
	name     string
	status   schema.SliceStatus
	assigned store.Generation
	hosts    []Host
}

// steadiness returns what is to stay as it is for a job to be steady, nil for
// one that is not.
func (d *differ) steadiness(j *state.Job) steadiness {
	last := j.Last()
	if !j.Ready || j.Status != schema.JobRunning || last.StopGeneration != 0 || len(j.Staged) > 0 || len(last.Slices) == 0 {
		return nil
	}
	seen := make(steadiness, 0, len(last.Slices))
	for _, name := range last.Slices {
		st, listed := d.slices[name]
		_, acting := d.acting[name]
		hosts := d.obs.Hosts[name]
		if !listed || acting || len(st.Down) > 0 || st.Spec.On != "" || len(hosts) == 0 ||
			unheard(st, hosts) >= 0 || d.next.Slices[name] != d.doc.Slices[name] {
			return nil
		}
		seen = append(seen, steadySlice{name: name, status: *st, assigned: d.obs.Assignments[name].Object, hosts: hosts})
	}
	return seen
}

// isStill reports whether a steady job is as it was seen. It notes when time
// alone will change that.
func (d *differ) isStill(seen steadiness) bool {
	for i := range seen {
		s := &seen[i]
		st, listed := d.slices[s.name]
		if !listed || !sameStatus(st, &s.status) || d.obs.Assignments[s.name].Object != s.assigned {
			return false
		}
		hosts := d.obs.Hosts[s.name]
		if len(hosts) != len(s.hosts) || &hosts[0] != &s.hosts[0] {
			return false
		}
		for n := range hosts {
			silent := hosts[n].SilentAt(d.obs.Attended)
			if silent >= HostTimeout {
				return false
			}
			d.wakeAt(d.now.Add(HostTimeout - silent))
		}
	}
	return true
}

func sameStatus(a, b *schema.SliceStatus) bool {
	return a == b || a.Spec == b.Spec && a.Phase == b.Phase && a.Reason == b.Reason && a.Cause == b.Cause &&
		a.Waiting == b.Waiting && a.CreatedAt.Equal(b.CreatedAt) && slices.Equal(a.Down, b.Down) &&
		slices.Equal(a.Agents, b.Agents)
}
