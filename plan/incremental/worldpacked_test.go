package incremental

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Packed tasks in the small world: each is a slice of its own, which no provider lists.

func isPacked(s *simSlice) bool { return s.spec.On != "" }

// packedOf are the packed tasks of a host, sorted by name.
func (w *world) packedOf(slice string, n int) []*simSlice {
	var found []*simSlice
	for _, name := range slices.Sorted(maps.Keys(w.slices)) {
		if s := w.slices[name]; s.spec.On == slice && s.spec.OnHost == n {
			found = append(found, s)
		}
	}
	return found
}

// smallPacked are jobs of a core each in a pool, which run for a few minutes.
func (w *world) smallPacked(n int) []schema.Job {
	var jobs []schema.Job
	for i := range n {
		j := newJob("small", instance(i), packed("pool", 1, 1))
		w.exits(j.Addr, program{runs: 2*time.Minute + time.Duration(i%5)*20*time.Second})
		jobs = append(jobs, j)
	}
	return jobs
}

// machines counts the slices that have machines of their own.
func (w *world) machines() int {
	n := 0
	for _, s := range w.slices {
		if !isPacked(s) {
			n++
		}
	}
	return n
}

// packedNames is what a host says of its packed tasks.
func (w *world) packedNames(slice string, n int) []string {
	var names []string
	for _, s := range w.packedOf(slice, n) {
		names = append(names, s.spec.Name)
	}
	return names
}

// isTold reports whether a host is to serve a packed task.
func (w *world) isTold(spec *schema.SliceSpec) bool {
	return slices.ContainsFunc(w.assignments[spec.On].PackedTasks, func(g state.PackedTask) bool { return g.Slice == spec.Name && g.Host == spec.OnHost })
}

// takePacked has the agent of a host take in the packed tasks that it is assigned.
func (w *world) takePacked(s *simSlice, n int, h *simHost) {
	if !h.agent || isPacked(s) || s.phase == schema.SliceDead {
		return
	}
	for _, g := range w.assignments[s.spec.Name].PackedTasks {
		if g.Host == n && w.slices[g.Slice] == nil {
			w.slices[g.Slice] = &simSlice{
				spec: snapshot.PackedSpec(g.Owner, g.Index, &s.spec, g), phase: schema.SliceReady, createdAt: w.now,
				hosts: []*simHost{{agent: true, boot: 1}},
			}
		}
	}
}

// livePacked is what a host's agent does for a packed task.
func (w *world) livePacked(s *simSlice) {
	name, g := s.spec.Name, s.hosts[0]
	machine := w.slices[s.spec.On]
	if machine == nil {
		delete(w.slices, name)
		return
	}
	s.phase = schema.SliceReady
	if machine.phase == schema.SliceDead {
		s.phase = schema.SliceDead
	}
	h := machine.hosts[s.spec.OnHost]
	g.agent, g.muted = h.agent && machine.phase != schema.SliceDead, h.muted
	if g.agent && !w.isTold(&s.spec) {
		if !g.live {
			delete(w.slices, name)
			return
		}
		if g.stopsAt.IsZero() {
			g.stopsAt = w.now.Add(w.stopTakes)
		}
		g.seen.generation, g.run = g.task.Generation, nil
	}
	w.liveHost(s, 0, g)
}

// heard replaces a host's report. That of a packed task is written when it changes only.
func (w *world) heard(s *simSlice, report state.HostReport) {
	key := hostKey{report.Slice, report.Host}
	was := w.reports[key]
	was.Seq, was.At = report.Seq, report.At
	if isPacked(s) && marshal(was) == marshal(report) {
		return
	}
	w.reports[key] = report
}

// packedHosts are a slice's own hosts and its packed tasks'.
func (w *world) packedHosts(s *simSlice) []*simHost {
	hosts := slices.Clone(s.hosts)
	for n := range s.hosts {
		for _, g := range w.packedOf(s.spec.Name, n) {
			hosts = append(hosts, g.hosts...)
		}
	}
	return hosts
}

// shared looks for hosts that have more on them than they can hold.
func (o *oracle) shared() {
	w := o.w
	w.t.Helper()
	for name, s := range w.slices {
		if isPacked(s) {
			continue
		}
		for n, h := range s.hosts {
			packed := w.packedOf(name, n)
			if h.live && len(packed) > 0 {
				w.t.Fatalf("host %d of %s runs a task of %s and has packed tasks %v\n%s", n, name, h.task.Job, w.packedNames(name, n), w.describe())
			}
			cpu, memory, ports := 0.0, schema.Bytes(0), map[int]string{}
			for _, g := range packed {
				cpu, memory = cpu+g.spec.CPU, memory+g.spec.Memory
				run := g.hosts[0].taskRun
				if run == nil || !g.hosts[0].live {
					continue
				}
				for _, p := range run.Spec.Resources.Ports {
					if other := ports[p.Number]; p.Number != 0 && other != "" {
						w.t.Fatalf("%s and %s have port %d on one host\n%s", other, g.spec.Name, p.Number, w.describe())
					}
					ports[p.Number] = g.spec.Name
				}
			}
			if cpu > s.spec.CPU || s.spec.Memory > 0 && memory > s.spec.Memory {
				w.t.Fatalf("host %d of %s has packed tasks with %g CPU and %s, and only %g and %s\n%s", n, name, cpu, memory, s.spec.CPU, s.spec.Memory, w.describe())
			}
		}
	}
}

// takesPacked reports whether an assignment takes packed tasks off a host, which
// destroys what they were.
func (w *world) takesPacked(a *state.Assignment) bool {
	for _, g := range w.assignments[a.Slice].PackedTasks {
		if !slices.Contains(a.PackedTasks, g) {
			return true
		}
	}
	return false
}

// yielded finds jobs that are told to make room for others and must not be: of no
// lower band, too young, or at the cost of a budget.
func (o *oracle) yielded(before, after *state.Document) {
	w := o.w
	w.t.Helper()
	for addr, j := range after.Jobs {
		was := before.Jobs[addr]
		if was == nil || was.YieldsTo.IsZero() && j.YieldsTo.IsZero() {
			continue
		}
		if !was.YieldsTo.IsZero() && was.Running() && was.Last().StopGeneration != 0 && (j.Failures > was.Failures || j.Preemptions > was.Preemptions) {
			w.t.Fatalf("%s pays for making room for %s: failures %d after %d, preemptions %d after %d\n%s",
				addr, was.YieldsTo, j.Failures, was.Failures, j.Preemptions, was.Preemptions, w.describe())
		}
		if !was.YieldsTo.IsZero() || j.YieldsTo.IsZero() || j.YieldsTo.Kind == schema.KindNamespace {
			continue
		}
		by, mine := bandAt(after, j.YieldsTo, false), bandAt(after, capacity.UnitOf(was.Spec), true)
		if by >= mine && !isBudgeted(after, was.Spec.Namespace) {
			w.t.Fatalf("%s (band %s) yields to %s (band %s)\n%s", addr, lifecycle.BandName(mine), j.YieldsTo, lifecycle.BandName(by), w.describe())
		}
		free := by == capacity.BandOrder(schema.BandProduction) && (mine == capacity.BandOrder(schema.BandBatch) || isBudgeted(after, was.Spec.Namespace))
		if last := was.Last(); was.Running() && !free && w.now.Sub(last.StartedAt) < 10*time.Minute {
			w.t.Fatalf("%s yields to %s after %s\n%s", addr, j.YieldsTo, w.now.Sub(last.StartedAt), w.describe())
		}
	}
}

// isBudgeted reports whether jobs of a namespace may count as batch.
func isBudgeted(doc *state.Document, space string) bool {
	return slices.ContainsFunc(doc.Desired.Namespaces, func(n schema.Namespace) bool { return n.Addr.Scoped() == space && n.Budget > 0 })
}

// bandAt is the best band of a job, or of the jobs of a group. Of members that may be ended for
// others those count that have not ended, nor are asked to, whether they hold something or wait. It counts as
// it is after the look: what users change is taken over before any victim is chosen.
func bandAt(after *state.Document, addr schema.Address, victim bool) int {
	best := capacity.BandCount - 1
	for a, j := range after.Jobs {
		if victim && (j.Status.Ended() || j.Stop) {
			continue
		}
		if a == addr || addr.Kind == schema.KindJobGroup && a.GroupAddress() == addr {
			best = min(best, capacity.BandOrder(j.Spec.Band))
		}
	}
	return best
}

// packed asks for a part of a host of a reservation for each task.
func packed(pool string, cpu float64, tasks int) jobOption {
	return func(j *schema.Job) {
		r := &j.Resources
		r.Reservation, r.Packed, r.CPU, r.Slices = pool, true, cpu, tasks
	}
}

func onPort(numbers ...int) jobOption {
	return func(j *schema.Job) {
		for _, n := range numbers {
			j.Resources.Ports = append(j.Resources.Ports, schema.Port{Name: fmt.Sprintf("p%d", n), Number: n})
		}
	}
}

// cpuPool is a reservation of so many machines with these cores.
func cpuPool(name string, cpu float64, n int) schema.Reservation {
	pool := newPool(name, "", n)
	pool.Min.CPU, pool.Max.CPU = cpu, cpu
	return pool
}
