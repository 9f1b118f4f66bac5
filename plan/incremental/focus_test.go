package incremental

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// drawPlain makes a configuration of jobs that share nothing but dependencies.
func drawPlain(t *rapid.T) schema.Desired {
	var jobs []schema.Job
	for i := range rapid.IntRange(1, 10).Draw(t, "jobs") {
		j := newJob(fmt.Sprintf("n%d", i/2), instance(i%2), failures(rapid.SampledFrom([]int{0, 2}).Draw(t, "failures")))
		if rapid.IntRange(0, 2).Draw(t, "service") == 0 {
			j = newJob(fmt.Sprintf("s%d", i), instance(0), asService)
		}
		for range min(len(jobs), rapid.IntRange(0, 2).Draw(t, "edges")) {
			on := rapid.SampledFrom(jobs[max(0, len(jobs)-3):]).Draw(t, "on").Addr
			if on.Name == j.Addr.Name {
				continue
			}
			if rapid.IntRange(0, 3).Draw(t, "all") == 0 {
				on = on.Base()
			}
			if rapid.IntRange(0, 3).Draw(t, "uses") > 0 {
				using(on)(&j)
			} else {
				after(on)(&j)
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "shape") == 0 {
			j.Resources.Slices = 2
		}
		if rapid.IntRange(0, 3).Draw(t, "healthy") == 0 {
			healthy(&j)
		}
		j.Band = rapid.SampledFrom([]schema.Band{"", "", schema.BandProduction}).Draw(t, "band")
		j.Lifecycle.CreateBeforeDestroy = rapid.IntRange(0, 5).Draw(t, "first") == 0
		jobs = append(jobs, j)
	}
	return configuration(jobs...)
}

// A Planner finds what Diff finds where it plans a part of the stack: each step of a world
// compares them. Faults and other configurations, nothing among them, come in between.
func TestPlannerFindsWhatDiffFindsOfPart(t *testing.T) {
	steps, parts, takedowns := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.wayward = true
		w.program = drawPrograms(t)
		desired := drawPlain(t)
		w.accept(desired)
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 11).Draw(t, "event") {
			case 0:
				plainFault(t, w)
			case 1:
				refine(t, w)
			case 2:
				if rapid.IntRange(0, 2).Draw(t, "new") == 0 {
					desired = drawPlain(t)
				}
				w.accept(desired)
			case 3:
				if rapid.Bool().Draw(t, "nothing") {
					w.accept(configuration())
				}
			}
			w.step(time.Duration(rapid.SampledFrom([]int{40, 500, 3000}).Draw(t, "ms")) * time.Millisecond)
			steps++
			switch {
			case w.planner.takedown != nil:
				takedowns++
			case w.planner.focus.on:
				parts++
			}
		}
	})
	t.Logf("%d of %d steps planned a part, and %d a takedown", parts, steps, takedowns)
}

// TestPartsAndTakedownsArePlanned: what the worlds that are drawn may miss happens in one that is made: after each
// fault most steps plan a part again, and a takedown with faults in it is planned as one.
func TestPartsAndTakedownsArePlanned(t *testing.T) {
	a, b, c, d := schema.Address{Kind: schema.KindActorService, Name: "a"}, jobAddr("b"), jobAddr("c"), jobAddr("d")
	for name, fault := range map[string]func(*world){
		"nothing":               func(*world) {},
		"a task fails":          func(w *world) { w.fail(w.sliceOf(b, 0), 0, 1) },
		"an agent dies":         func(w *world) { w.killAgent(w.sliceOf(a, 0), 0) },
		"a preemption":          func(w *world) { w.preempt(w.sliceOf(d, 1)) },
		"the controller dies":   func(w *world) { w.save(); w.crash() },
		"an outage of a minute": func(w *world) { w.unreachable = true; w.run(time.Minute); w.unreachable = false },
		"the controller dies in one": func(w *world) {
			w.unreachable = true
			w.run(10 * time.Second)
			w.crash()
			w.run(time.Minute)
			w.unreachable = false
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.program = func(*state.Run, int) program { return program{} }
			w.accept(configuration(newJob("a", asService), newJob("b", using(a)), newJob("c", after(b)), newJob("d", onSlices(2))))
			w.run(20 * time.Second)
			fault(w)
			const steps = 60
			parts := 0
			for range steps {
				if w.step(pace); w.planner.focus.partial {
					parts++
				}
			}
			if parts < steps/2 {
				t.Errorf("%d of %d steps planned a part, want most\n%s", parts, steps, w.describe())
			}
			w.wantReason(c, "waits for job.b")
			w.deleteTakes = 10 * time.Second
			w.accept(configuration())
			all, takedowns := 0, 0
			for ; len(w.doc.Jobs) > 0 && all < 2*steps; all++ {
				if w.step(pace); w.planner.takedown != nil {
					takedowns++
				}
			}
			if takedowns < all/2 || len(w.doc.Jobs) > 0 {
				t.Errorf("%d of %d steps planned a takedown, and %d jobs are left; want most, and none", takedowns, all, len(w.doc.Jobs))
			}
		})
	}
}

// plainFault is a fault after which a part of the stack may still be planned.
func plainFault(t *rapid.T, w *world) {
	slice, host, found := drawHost(t, w)
	switch rapid.IntRange(0, 8).Draw(t, "fault") {
	case 0:
		w.crash()
	case 1:
		w.unreachable = !w.unreachable
	case 2:
		w.createTakes = time.Duration(rapid.IntRange(1, 20).Draw(t, "create")) * time.Second
		w.bootTakes = w.createTakes / 2
	case 3:
		w.run(time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second)
	case 4:
		if found {
			w.fail(slice, host, 1)
		}
	case 5:
		if found {
			w.killAgent(slice, host)
		}
	case 6:
		if found {
			w.killHost(slice, host)
		}
	case 7:
		if found {
			w.preempt(slice)
		}
	case 8:
		w.deleteTakes = time.Duration(rapid.IntRange(0, 20).Draw(t, "delete")) * time.Second
	}
}

// TestPlannerLooksAtFew: the steps of a chain are made on a few jobs and slices, however many
// links it has, when it is made and when it is taken down.
func TestPlannerLooksAtFew(t *testing.T) {
	const few = 8
	for _, n := range []int{20, 80} {
		w := newWorld(t)
		w.program = func(*state.Run, int) program { return program{} }
		var jobs []schema.Job
		for i := range n {
			j := newJob("link"+fmt.Sprint(i), asService)
			if i > 0 {
				using(jobs[i-1].Addr)(&j)
			}
			jobs = append(jobs, j)
		}
		w.accept(configuration(jobs...))
		w.step(time.Second)
		for ready := 0; ready < n; {
			w.step(500 * time.Millisecond)
			p := w.planner
			if !p.focus.on || len(p.dirty) > few || len(p.focus.others) > few {
				t.Fatalf("%d links: of a part: %t; %d jobs and %d slices are looked at, want up to %d", n, p.focus.on, len(p.dirty), len(p.focus.others), few)
			}
			ready = 0
			for _, j := range w.doc.Jobs {
				if j.Ready {
					ready++
				}
			}
		}
		w.accept(configuration())
		for range 3 { // why each of them waits is recorded first
			w.step(500 * time.Millisecond)
		}
		for len(w.doc.Jobs) > 0 {
			w.step(500 * time.Millisecond)
			if len(w.doc.Jobs) == 0 {
				break
			}
			down := w.planner.takedown
			if down == nil {
				t.Fatalf("%d links: all are looked at while %d are left", n, len(w.doc.Jobs))
			}
			if looked := down.left - held(down); looked > few || len(down.focus.others) > few {
				t.Fatalf("%d links: %d jobs and %d slices are looked at, want up to %d", n, looked, len(down.focus.others), few)
			}
		}
	}
}

func held(down *takedown) int {
	n := 0
	for i := range down.jobs {
		if down.jobs[i].held {
			n++
		}
	}
	return n
}
