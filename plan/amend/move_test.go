package amend_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// moved is the world after a move; the document before must be as it was.
func (w *world) move(from, to string) {
	w.t.Helper()
	before := encoded(w.t, w.doc)
	next, err := amend.Move(w.doc, address(w.t, from), address(w.t, to))
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	if got := encoded(w.t, w.doc); got != before {
		w.t.Errorf("Move changed the given document:\n%s\nwas\n%s", got, before)
	}
	w.doc = next
}

func encoded(t tester, doc *state.Document) string {
	t.Helper()
	data, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return string(data)
}

func TestNothingFollowsFromAMove(t *testing.T) {
	dep := func(s string) func(*schema.Job) { return needs(address(t, s)) }
	declared := schema.Namespace{Addr: address(t, "namespace.rl")}
	other := schema.Namespace{Addr: address(t, "namespace.ml")}
	tests := []struct {
		name, from, to string
		before, after  schema.Desired
	}{
		{"a job", "job.a", "job.b", jobs(at(t, "job.a", gang(2))), jobs(at(t, "job.b", gang(2)))},
		{"one that others name", "job.a", "job.z",
			jobs(at(t, "job.a"), at(t, "job.c", dep("job.a"))), jobs(at(t, "job.z"), at(t, "job.c", dep("job.z")))},
		{"a family", "job.a", "job.b", jobs(at(t, "job.a[0]"), at(t, "job.a[1]", gang(1)), at(t, "job.c", dep("job.a"))),
			jobs(at(t, "job.b[0]"), at(t, "job.b[1]", gang(1)), at(t, "job.c", dep("job.b")))},
		{"an instance to another key", "job.a[0]", `job.b["x"]`, jobs(at(t, "job.a[0]"), at(t, "job.a[1]")), jobs(at(t, "job.a[1]"), at(t, `job.b["x"]`))},
		{"the only instance", "job.a[0]", "job.b[0]", jobs(at(t, "job.a[0]"), at(t, "job.c", dep("job.a"))),
			jobs(at(t, "job.b[0]"), at(t, "job.c", dep("job.b")))},
		{"a job becomes an instance", "job.a", "job.a[0]", jobs(at(t, "job.a", gang(2))), jobs(at(t, "job.a[0]", gang(2)))},
		{"into a group", "job.a", "job_group.g.job.a",
			jobs(at(t, "job.a"), at(t, "job_group.g.job.x")), jobs(at(t, "job_group.g.job.a"), at(t, "job_group.g.job.x"))},
		{"out of a group", "job_group.g.job.a", "job.a",
			jobs(at(t, "job_group.g.job.a", gang(1)), at(t, "job_group.g.job.x")), jobs(at(t, "job.a", gang(1)), at(t, "job_group.g.job.x"))},
		{"a group", "job_group.g", "job_group.h", jobs(at(t, "job_group.g.job.a[0]"), at(t, "job_group.g.job.x"), at(t, "job.c", dep("job_group.g"))),
			jobs(at(t, "job_group.h.job.a[0]"), at(t, "job_group.h.job.x"), at(t, "job.c", dep("job_group.h")))},
		{"a service", "actor_service.s", "actor_service.r", jobs(at(t, "actor_service.s[0]"), at(t, "actor_service.s[1]")),
			jobs(at(t, "actor_service.r[0]"), at(t, "actor_service.r[1]"))},
		{"a reservation", "reservation.p", "reservation.q", files([]schema.Job{at(t, "job.a", from("p", 2))}, pool("p", 3)),
			files([]schema.Job{at(t, "job.a", from("q", 2))}, pool("q", 3))},
		{"a job on a reservation", "job.a", "job.b", files([]schema.Job{at(t, "job.a", from("p", 2))}, pool("p", 3)),
			files([]schema.Job{at(t, "job.b", from("p", 2))}, pool("p", 3))},
		{"a namespace", "namespace.rl", "namespace.ml",
			schema.Desired{Namespaces: []schema.Namespace{declared}, Jobs: []schema.Job{at(t, "job.a", in("rl"))}},
			schema.Desired{Namespaces: []schema.Namespace{other}, Jobs: []schema.Job{at(t, "job.a", in("ml"))}}},
		{"a job in a declared namespace", "job.a", "job.b",
			schema.Desired{Namespaces: []schema.Namespace{declared}, Jobs: []schema.Job{at(t, "job.a", in("rl"))}},
			schema.Desired{Namespaces: []schema.Namespace{declared}, Jobs: []schema.Job{at(t, "job.b", in("rl"))}}},
		{"a job in a declared namespace of its own name", "job.rl", "job.b",
			schema.Desired{Namespaces: []schema.Namespace{declared}, Jobs: []schema.Job{at(t, "job.rl")}},
			schema.Desired{Namespaces: []schema.Namespace{declared}, Jobs: []schema.Job{at(t, "job.b", in("rl"))}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.before)
			w.settle()
			starts := len(w.starts)
			w.move(test.from, test.to)
			w.mustStay("with the new snapshot", w.doc.Desired)
			w.mustStay("with the new files", test.after)
			if got, want := normal(t, w.doc.Desired), normal(t, test.after); got != want {
				t.Errorf("the snapshot is\n%s\nwant\n%s", got, want)
			}
			w.apply(test.after)
			if len(w.starts) != starts || len(w.ended) > 0 {
				t.Errorf("started %v, ended %v after the move, want nothing", w.starts[starts:], w.ended)
			}
			w.move(test.to, test.from)
			w.mustStay("back again", test.before)
		})
	}
}

func normal(t *testing.T, d schema.Desired) string {
	t.Helper()
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestMovedJobRecovers(t *testing.T) {
	for _, back := range []bool{false, true} {
		w := newWorld(t, jobs(at(t, "job.a", gang(2))))
		w.settle()
		w.preempt(w.job(address(t, "job.a")).Slices[0])
		w.settle()
		id := w.job(address(t, "job.a")).ID
		w.move("job.a", "job.b")
		now := "job.b"
		if back {
			w.move("job.b", "job.c")
			now = "job.c"
		}
		b := address(t, now)
		w.apply(jobs(at(t, now, gang(2))))
		before := slices.Clone(w.job(b).Slices)
		w.preempt(before[1])
		w.settle()
		j := w.job(b)
		if j.Preemptions != 2 || j.Attempt != 3 || j.Failures != 0 || !j.Ready || len(j.Attempts) != 3 || j.ID != id {
			t.Errorf("after another preemption: %+v, want attempt 3 of %s after 2 preemptions", j, id)
		}
		run := w.assignments[before[0]].Run
		if run == nil || run.Job != b || run.Attempt != 3 {
			t.Errorf("assigned %+v, want attempt 3 as %s", run, b)
		}
		w.mustStay("afterwards", w.doc.Desired)
		// New slices are named after the new address.
		w.apply(jobs(at(t, now, gang(2), func(j *schema.Job) { j.Resources.TPU = "v5litepod-8" })))
		if got := w.job(b).Slices; got[0] != plan.SliceName(w.doc.Stack(), b, 0) {
			t.Errorf("replaced on %v, want slices of %s", got, b)
		}
	}
}

func TestVacatedAddressIsFree(t *testing.T) {
	tests := []struct {
		name, from, to string
		before         schema.Desired
		after          schema.Desired
	}{
		{"of a job", "job.a", "job.b", jobs(at(t, "job.a", gang(2))), jobs(at(t, "job.a", gang(3)), at(t, "job.b", gang(2)))},
		{"of a reservation", "reservation.p", "reservation.q", files([]schema.Job{at(t, "job.a", from("p", 2))}, pool("p", 3)),
			files([]schema.Job{at(t, "job.a", from("q", 2)), at(t, "job.n", from("p", 1))}, pool("p", 2), pool("q", 3))},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.before)
			w.settle()
			w.move(test.from, test.to)
			w.apply(test.after)
			if len(w.ended) > 0 {
				t.Errorf("ended %v, want nothing", w.ended)
			}
			w.twoOnAHost()
			ids := map[string]schema.Address{}
			for addr, j := range w.doc.Jobs {
				if other, taken := ids[j.ID]; taken {
					t.Errorf("%s and %s share the id %s, and so their logs", addr, other, j.ID)
				}
				ids[j.ID] = addr
				if !j.Ready {
					t.Errorf("%s is %s (%s), want it running", addr, j.Status, j.Reason)
				}
			}
			// What is taken away comes back to whom it belonged, or else a free one
			// of the pool takes its place.
			for addr, j := range w.doc.Jobs {
				held := slices.Clone(j.Slices)
				w.preempt(held[0])
				w.settle()
				got := w.job(addr)
				same := slices.Equal(got.Slices, held) || got.Spec.Resources.Reservation != "" && len(got.Slices) == len(held)
				if !got.Ready || !same || got.Preemptions != 1 {
					t.Errorf("%s after a preemption: on %v, %d preemptions, want %v and 1", addr, got.Slices, got.Preemptions, held)
				}
			}
			w.twoOnAHost()
			w.mustStay("in the end", test.after)
		})
	}
}

// A pool's slice whose assignment still named the job would run it again.
func TestMovedJobGivesItsSlicesBack(t *testing.T) {
	w := newWorld(t, files([]schema.Job{at(t, "job.a", from("p", 1))}, pool("p", 1)))
	w.settle()
	w.move("job.a", "job.b")
	w.ends = func(*state.Run) schema.TaskState { return schema.TaskSucceeded }
	w.step()
	w.settle()
	j := w.job(address(t, "job.b"))
	if j.Status != schema.JobSucceeded || len(j.Slices) > 0 {
		t.Fatalf("job.b is %+v, want it succeeded and without slices", j)
	}
	for name, a := range w.assignments {
		if a.Run != nil {
			t.Errorf("slice %s is still told to run %s", name, a.Run.Job)
		}
	}
}

// A step assigned an attempt and died before it saved: the job is found under
// its new name all the same.
func TestMovedJobIsAdopted(t *testing.T) {
	for _, slicesToo := range []bool{false, true} {
		w := newWorld(t, jobs(at(t, "job.a", gang(2))))
		w.step()
		early := w.doc
		w.settle()
		if slicesToo { // not even the slices were recorded
			bare := early.Clone()
			a := *bare.Jobs[address(t, "job.a")]
			a.Slices = nil
			bare.Jobs[address(t, "job.a")], bare.Slices = &a, map[string]*state.Slice{}
			early = bare
		}
		starts := len(w.starts)
		w.doc = early
		w.move("job.a", "job.b")
		w.apply(jobs(at(t, "job.a", gang(1)), at(t, "job.b", gang(2), in("a"))))
		if len(w.ended) > 0 {
			t.Errorf("ended %v, want nothing", w.ended)
		}
		if j := w.job(address(t, "job.b")); j.Attempt != 1 || !j.Ready {
			t.Errorf("adopted as %+v, want attempt 1 running", j)
		}
		if n := len(w.starts) - starts; n != 4 {
			t.Errorf("started %v, want only the four tasks of the new job.a", w.starts[starts:])
		}
		w.twoOnAHost()
	}
}

func TestMoveRefuses(t *testing.T) {
	w := newWorld(t, files([]schema.Job{
		at(t, "job.a"), at(t, "job.b"), at(t, "job.f[0]"), at(t, "job.f[1]"), at(t, "job_group.g.job.x"), at(t, "job_group.h.job.x"),
	}, pool("p", 1), pool("q", 1)))
	w.settle()
	tests := []struct{ from, to, says string }{
		{"job.a", "job.a", "the same"},
		{"job.a", "job.b", "job.b is there already"},
		{"job.c", "job.d", "no job.c in the state"},
		{"job.f[7]", "job.d", "no job.f[7] in the state"},
		{"job.f", "job.d[0]", "has instances"},
		{"job.f[0]", "job.f[1]", "job.f[1] is there already"},
		{"job.a", "actor_service.a[0]", "a job cannot become an actor_service"},
		{"job_group.g", "job_group.h", "one by one"},
		{"job_group.g.job.x", "job_group.h.job.x", "there already"},
		{"reservation.p", "reservation.q", "there already"},
		{"reservation.p", "reservation.r[0]", "leave the key out"},
	}
	for _, test := range tests {
		next, err := amend.Move(w.doc, address(t, test.from), address(t, test.to))
		if err == nil || !strings.Contains(err.Error(), test.says) || next != nil {
			t.Errorf("%s to %s: got %v, want an error that says %q", test.from, test.to, err, test.says)
		}
	}
}

// The files were renamed and applied first: the old job is on its way out, and
// the new one is desired already.
func TestMoveToWhatIsDesiredAlready(t *testing.T) {
	w := newWorld(t, jobs(at(t, "job.a", gang(1))))
	w.settle()
	next := w.doc.Clone()
	next.Revision++
	next.Desired = jobs(at(t, "job.b", gang(1)))
	w.doc = next
	w.move("job.a", "job.b")
	w.mustStay("after the rescue", jobs(at(t, "job.b", gang(1))))
}

func TestMovingBackIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drawFiles(t))
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			w.step()
		}
		kinds := []string{"job.j0", "job.f", "job.f[1]", "job_group.g", "job_group.g.job.m0", "reservation.p", "actor_service.s"}
		targets := map[string]string{
			"job.j0": "job.k", "job.f": "job_group.g.job.f", "job.f[1]": `job.h["x"]`, "job_group.g": "job_group.e",
			"job_group.g.job.m0": "job.m0", "reservation.p": "reservation.q", "actor_service.s": "actor_service.r",
		}
		before := encoded(t, w.doc)
		var done [][2]string
		for _, from := range rapid.Permutation(kinds).Draw(t, "moves") {
			next, err := amend.Move(w.doc, address(t, from), address(t, targets[from]))
			if err != nil {
				continue // not drawn, or moved away with its group
			}
			w.doc = next
			w.mustStayOrGoOn()
			done = append(done, [2]string{from, targets[from]})
		}
		for _, pair := range slices.Backward(done) {
			w.move(pair[1], pair[0])
		}
		if got := encoded(t, w.doc); got != before {
			t.Fatalf("moved there and back %v:\n%s\nwas\n%s", done, got, before)
		}
	})
}

// mustStayOrGoOn fails if a move made anything end.
func (w *world) mustStayOrGoOn() {
	w.t.Helper()
	for _, a := range w.diff(w.doc.Desired).Actions {
		if a.Verb == plan.DeleteSlice || a.Verb == plan.Assign && a.Assignment.Run == nil {
			w.t.Errorf("%s of %s (%+v), want nothing to end", a.Verb, a.Slice.Name, a.Assignment)
		}
	}
	for _, c := range w.diff(w.doc.Desired).Changes {
		if c.Verb != plan.VerbNone && c.Verb != plan.VerbCreate {
			w.t.Errorf("%s of %s, want no change", c.Verb, c.Addr)
		}
	}
}

// drawFiles declares some of a job, a family, a group, a service and a pool.
func drawFiles(t *rapid.T) schema.Desired {
	var js []schema.Job
	var pools []schema.Reservation
	pooled := rapid.Bool().Draw(t, "pool")
	if pooled {
		pools = append(pools, pool("p", rapid.IntRange(2, 4).Draw(t, "min")))
	}
	for _, addr := range []string{"job.j0", "job.f[0]", "job.f[1]", "job_group.g.job.m0", "job_group.g.job.m1", "actor_service.s[0]"} {
		shape := rapid.IntRange(0, 4).Draw(t, addr)
		switch {
		case shape == 0:
		case shape == 1:
			js = append(js, at(t, addr))
		case shape == 2 && pooled && len(js) == 0:
			js = append(js, at(t, addr, from("p", 2)))
		case shape == 3 && len(js) > 0:
			on := js[0].Addr
			if on.Base() != address(t, addr).Base() {
				on = on.Base()
			}
			js = append(js, at(t, addr, gang(1), needs(on)))
		default:
			js = append(js, at(t, addr, gang(2)))
		}
	}
	return files(js, pools...)
}
