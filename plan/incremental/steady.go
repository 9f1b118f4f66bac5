package incremental

import (
	"math"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A job that runs is steady if Diff, asked again, would find the same about it
// and do nothing, until something is seen to differ of the slices that it has:
// what their provider says of them, their assignments, or what their hosts
// report, heartbeats apart; or until a host of them has been silent for too long.
// In a large stack nearly all jobs are, nearly always.

// steadiness is what was seen of a steady job.
type observation []observedSlice

type observedSlice struct {
	name     string
	status   *schema.SliceStatus // when its job was found to be steady; nil: as it is in list
	assigned state.Generation
	hosts    []plan.Host

	// What focus knows of it.
	job      int // its owner
	shape    capacity.Shape
	holder   snapshot.Holder
	load     snapshot.Load // that counts for the holder
	all      snapshot.Load // that counts for all that there is to share
	place    string        // where its capacity comes from
	pool     string        // that it belongs to, "" for none
	first    time.Duration // when its first host was heard last, see [plan.Heartbeat]; never: it is known to live
	earliest time.Duration // the same of the host that has been silent for longest
	list     *listing      // that has it, nil: none was compared since its job was found to be steady
	row      int           // of list
	listed   int           // in which look a list was begun that has it
}

// never is when a host was heard last that is known to live.
const never = time.Duration(math.MaxInt64)

// hear takes in what the hosts of a slice report.
func (s *observedSlice) hear(hosts []plan.Host) {
	s.hosts, s.first, s.earliest = hosts, never, never
	for i := range hosts {
		if hosts[i].Lives() {
			continue
		}
		heard := hosts[i].Heartbeat.HeardAt()
		s.earliest = min(s.earliest, heard)
		if i == 0 {
			s.first = heard
		}
	}
}

// observationOf returns what is to stay as it is for a job to be steady, nil for
// one that is not.
func observationOf(d *reconcile.Reconciler, j *state.Job) observation {
	last := j.Last()
	if !j.Ready || j.Status != schema.JobRunning || last.StopGeneration != 0 || len(j.Staged) > 0 || len(last.Slices) == 0 {
		return nil
	}
	seen := make(observation, 0, len(last.Slices))
	for _, name := range last.Slices {
		st, listed := d.Listed[name]
		_, acting := d.Acting[name]
		hosts := d.Obs.Hosts[name]
		if !listed || acting || len(st.Down) > 0 || st.Spec.On != "" || len(hosts) == 0 ||
			lifecycle.Unheard(st, hosts) >= 0 || d.Next.Slices[name] != d.Doc.Slices[name] {
			return nil
		}
		s := observedSlice{name: name, status: st, assigned: d.Obs.Assignments[name].Object}
		s.hear(hosts)
		seen = append(seen, s)
	}
	return seen
}

// isUnchanged reports whether a steady job is as it was seen. It notes when time
// alone will change that.
func isUnchanged(d *snapshot.Evidence, seen observation) bool {
	for i := range seen {
		s := &seen[i]
		st, listed := d.Listed[s.name]
		if !listed || !sameStatus(st, s.last()) || d.Obs.Assignments[s.name].Object != s.assigned {
			return false
		}
		if s.list == nil {
			s.status = st // the list before need not be kept
		}
		hosts := d.Obs.Hosts[s.name]
		if len(hosts) != len(s.hosts) {
			return false
		}
		same := state.SameSlice(hosts, s.hosts)
		for n := range hosts {
			if !same && !hosts[n].SameReport(&s.hosts[n]) {
				return false
			}
			if hosts[n].Lives() {
				continue
			}
			silent := hosts[n].SilentFor(d.Obs.Monitored)
			if silent >= snapshot.HostTimeout {
				return false
			}
			d.WakeAt(d.Now.Add(snapshot.HostTimeout - silent))
		}
	}
	return true
}

func sameStatus(a, b *schema.SliceStatus) bool {
	return a == b || a.Spec == b.Spec && a.Phase == b.Phase && a.Reason == b.Reason && a.Cause == b.Cause &&
		a.Waiting == b.Waiting && a.CreatedAt.Equal(b.CreatedAt) && slices.Equal(a.Down, b.Down) &&
		slices.Equal(a.Agents, b.Agents) && slices.Equal(a.Edited, b.Edited)
}
