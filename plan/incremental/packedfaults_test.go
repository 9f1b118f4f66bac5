package incremental

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
)

// drawPacked makes a configuration whose jobs share the machines of a reservation.
func drawPacked(t *rapid.T) schema.Desired {
	var jobs []schema.Job
	for i := range rapid.IntRange(1, 7).Draw(t, "jobs") {
		cpu := rapid.SampledFrom([]float64{0.5, 1, 2, 4}).Draw(t, "cpu")
		j := newJob(fmt.Sprintf("j%d", i), packed("pool", cpu, rapid.IntRange(1, 3).Draw(t, "tasks")),
			failures(rapid.SampledFrom([]int{0, 1, schema.Unlimited}).Draw(t, "failures")),
			preemptions(rapid.SampledFrom([]int{1, 100, schema.Unlimited}).Draw(t, "preemptions")))
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			j = newJob(j.Addr.Name, from("pool"))
		case 1, 2:
			j.Addr.Group = "g"
		case 3:
			onPort(80)(&j)
		case 4:
			withMemory(schema.Bytes(rapid.IntRange(1, 8).Draw(t, "memory")) << 30)(&j)
		}
		j.Lifecycle.CreateBeforeDestroy = rapid.IntRange(0, 2).Draw(t, "first") == 0
		j.Band = drawBand(t)
		jobs = append(jobs, j)
	}
	pool := cpuPool("pool", 4, rapid.IntRange(3, 5).Draw(t, "max"))
	pool.Min.Slices -= rapid.IntRange(0, 2).Draw(t, "less")
	pool.Min.Memory, pool.Max.Memory = 8<<30, 8<<30
	pool.Preemptible = rapid.Bool().Draw(t, "preemptible")
	for { // what never fits is refused
		desired := withPools(configuration(jobs...), pool)
		if len(capacity.Check(&desired)) == 0 {
			return desired
		}
		jobs = jobs[:len(jobs)-1]
	}
}

// drawBand is one of all, so that some make room for others.
func drawBand(t *rapid.T) schema.Band {
	return rapid.SampledFrom([]schema.Band{schema.BandProduction, schema.BandInteractive, schema.BandBatch, schema.BandBatch}).Draw(t, "band")
}

// changePacked is what users do meanwhile.
func changePacked(t *rapid.T, w *world) {
	desired := w.doc.Desired
	desired.Jobs = slices.Clone(desired.Jobs)
	if len(desired.Jobs) == 0 {
		return
	}
	i := rapid.IntRange(0, len(desired.Jobs)-1).Draw(t, "job")
	r := &desired.Jobs[i].Resources
	switch rapid.IntRange(0, 6).Draw(t, "change") {
	case 0:
		if r.Packed {
			r.CPU = rapid.SampledFrom([]float64{0.5, 1, 2, 4}).Draw(t, "cpu")
		}
	case 1:
		desired.Jobs = slices.Delete(desired.Jobs, i, i+1)
	case 2:
		if r.Packed {
			r.Slices = rapid.IntRange(1, 3).Draw(t, "tasks")
		}
	case 3:
		pool := desired.Reservations[0]
		pool.Max.Slices = rapid.IntRange(3, 5).Draw(t, "max")
		pool.Min.Slices = pool.Max.Slices - rapid.IntRange(0, 2).Draw(t, "less")
		desired.Reservations = []schema.Reservation{pool}
	case 4:
		pool := desired.Reservations[0]
		pool.Min.CPU = rapid.SampledFrom([]float64{4, 8}).Draw(t, "machine")
		pool.Max.CPU = pool.Min.CPU
		desired = withPools(desired, pool)
	case 5:
		desired.Jobs[i].Band = drawBand(t)
	case 6: // a job comes that may end others
		j := newJob(fmt.Sprintf("k%d", len(desired.Jobs)), packed("pool", 2, 1), inBand(schema.BandProduction))
		if !slices.ContainsFunc(desired.Jobs, func(of schema.Job) bool { return of.Addr == j.Addr }) {
			desired.Jobs = append(desired.Jobs, j)
			slices.SortFunc(desired.Jobs, func(a, b schema.Job) int { return a.Addr.Compare(b.Addr) })
		}
	}
	if settled := change.Settled(desired, w.doc); len(capacity.Check(&desired))+len(capacity.Check(&settled)) == 0 {
		w.accept(desired)
	}
}

func TestPackedWorldComesToRestAfterAnyFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.wayward = true
		w.program = drawPrograms(t)
		w.accept(drawPacked(t))
		for range rapid.IntRange(0, 60).Draw(t, "faults") {
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0:
				changePacked(t, w)
			case 1:
				if live := w.packedTasks(); len(live) > 0 {
					w.fail(rapid.SampledFrom(live).Draw(t, "packed task"), 0, 1)
				}
			default:
				fault(t, w)
			}
			w.step(time.Duration(rapid.SampledFrom([]int{40, 500, 3000}).Draw(t, "ms")) * time.Millisecond)
		}
		w.clear()
		w.rest()
		w.atRest()
	})
}

// packedTasks are the packed tasks on which tasks live, sorted.
func (w *world) packedTasks() []string {
	var live []string
	for name, s := range w.slices {
		if isPacked(s) && s.hosts[0].live {
			live = append(live, name)
		}
	}
	slices.Sort(live)
	return live
}
