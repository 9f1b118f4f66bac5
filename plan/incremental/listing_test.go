package incremental

import (
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// listFault is what lists, and hosts of a job, are for a while.
type listFault struct {
	begin func(w *world)
	lasts time.Duration
}

// ofA is where a slice of job a is listed.
func ofA(list []schema.SliceStatus) int {
	return slices.IndexFunc(list, func(st schema.SliceStatus) bool { return st.Spec.Owner.Name == "a" })
}

func listFaults() map[string]listFault {
	edit := func(change func(list []schema.SliceStatus) []schema.SliceStatus) func(*world) {
		return func(w *world) {
			w.misreads = func(inv schema.Inventory) schema.Inventory {
				inv.Slices = change(slices.Clone(inv.Slices))
				return inv
			}
		}
	}
	status := func(change func(st *schema.SliceStatus)) func(*world) {
		return edit(func(list []schema.SliceStatus) []schema.SliceStatus {
			change(&list[ofA(list)])
			return list
		})
	}
	return map[string]listFault{
		"nothing": {func(*world) {}, time.Second},
		"another order": {edit(func(list []schema.SliceStatus) []schema.SliceStatus {
			slices.Reverse(list)
			return list
		}), 3 * time.Second},
		"another order, and one is down": {edit(func(list []schema.SliceStatus) []schema.SliceStatus {
			slices.Reverse(list)
			list[ofA(list)].Down = []int{0}
			return list
		}), 3 * time.Second},
		"one is missing": {edit(func(list []schema.SliceStatus) []schema.SliceStatus {
			return slices.Delete(list, ofA(list), ofA(list)+1)
		}), 3 * time.Second},
		"all are": {edit(func([]schema.SliceStatus) []schema.SliceStatus { return nil }), time.Second},
		"one is in place of another": {edit(func(list []schema.SliceStatus) []schema.SliceStatus {
			list[ofA(list)] = list[(ofA(list)+1)%len(list)]
			return list
		}), time.Second},
		"one is there twice": {edit(func(list []schema.SliceStatus) []schema.SliceStatus {
			return append(list, list[ofA(list)])
		}), 3 * time.Second},
		"one dies":            {status(func(st *schema.SliceStatus) { st.Phase = schema.SliceDead }), 3 * time.Second},
		"one is down":         {status(func(st *schema.SliceStatus) { st.Down = []int{0} }), time.Second},
		"one is another's":    {status(func(st *schema.SliceStatus) { st.Spec.Stack = "another" }), time.Second},
		"one is made anew":    {status(func(st *schema.SliceStatus) { st.CreatedAt = st.CreatedAt.Add(time.Hour) }), time.Second},
		"no provider answers": {func(w *world) { w.unreachable = true }, 3 * time.Second},
		"a host is silent":    {func(w *world) { w.mute(w.sliceOf(w.jobNamed("b"), 1), 0, true) }, time.Minute},
	}
}

// during has a fault happen.
func (f listFault) during(w *world) {
	f.begin(w)
	w.run(f.lasts)
	w.misreads, w.unreachable = nil, false
	for _, s := range w.slices {
		for _, h := range s.hosts {
			h.muted = false
		}
	}
	w.run(time.Second)
}

// Whatever a list has otherwise than the one before, and whenever a host falls silent, a Planner
// finds what Diff finds: each step compares them.
func TestListsOfSteadyJobs(t *testing.T) {
	for name, fault := range listFaults() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.program = func(*state.Run, int) program { return program{} }
			w.accept(configuration(newJob("a"), newJob("b", onSlices(2)), newJob("c")))
			w.run(20 * time.Second)
			if f := &w.planner.focus; len(f.steady) != 4 || f.lists[schema.ProviderLocal] == nil || f.lists[schema.ProviderLocal].held != 4 {
				t.Fatalf("got %d slices of steady jobs, want 4 that are listed\n%s", len(f.steady), w.describe())
			}
			for range 2 {
				fault.during(w)
			}
			w.run(time.Minute)
			if n := len(w.planner.focus.steady); n != 4 {
				t.Errorf("got %d slices of steady jobs in the end, want 4\n%s", n, w.describe())
			}
		})
	}
}

// The same of jobs that are held while those go that use them.
func TestListsInATakedown(t *testing.T) {
	a, b := schema.Address{Kind: schema.KindActorService, Name: "a"}, schema.Address{Kind: schema.KindActorService, Name: "b"}
	for name, fault := range listFaults() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.program = func(*state.Run, int) program { return program{} }
			w.accept(configuration(newJob("a", asService), newJob("b", asService, onSlices(2), using(a)), newJob("c", using(b))))
			w.run(20 * time.Second)
			w.deleteTakes = 5 * time.Minute
			w.accept(configuration())
			w.run(2 * time.Second)
			if w.planner.takedown == nil || held(w.planner.takedown) != 2 {
				t.Fatalf("want a takedown with 2 jobs that are held\n%s", w.describe())
			}
			fault.during(w)
			w.run(10 * time.Second)
		})
	}
}

// jobNamed is the address of a job or a service.
func (w *world) jobNamed(name string) schema.Address {
	for addr := range w.doc.Jobs {
		if addr.Name == name {
			return addr
		}
	}
	return schema.Address{}
}
