package amend_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/schema"
)

func (w *world) remove(addrs ...string) amend.Removed {
	w.t.Helper()
	before := encoded(w.t, w.doc)
	var parsed []schema.Address
	for _, a := range addrs {
		parsed = append(parsed, address(w.t, a))
	}
	next, removed, err := amend.Remove(w.doc, parsed, w.now, "ann")
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	if encoded(w.t, w.doc) != before {
		w.t.Errorf("Remove changed the given document")
	}
	w.doc = next
	return removed
}

func (w *world) importAs(desired schema.Desired, addr string, names ...string) {
	w.t.Helper()
	before := encoded(w.t, w.doc)
	next, err := amend.Import(w.doc, amend.ImportInput{
		Addr: address(w.t, addr), Desired: &desired, Slices: names, Observed: w.observe(), At: w.now,
	})
	if err != nil {
		w.t.Fatalf("%v", err)
	}
	if encoded(w.t, w.doc) != before {
		w.t.Errorf("Import changed the given document")
	}
	w.doc = next
}

func TestRemovedIsLeftAlone(t *testing.T) {
	tests := []struct {
		name   string
		before schema.Desired
		remove []string
		left   schema.Desired
		slices int
	}{
		{"a job", jobs(at(t, "job.a", gang(2)), at(t, "job.b")), []string{"job.a"}, jobs(at(t, "job.b")), 2},
		{"an instance", jobs(at(t, "job.a[0]"), at(t, "job.a[1]")), []string{"job.a[1]"}, jobs(at(t, "job.a[0]")), 1},
		{"a family", jobs(at(t, "job.a[0]"), at(t, "job.a[1]")), []string{"job.a"}, jobs(), 2},
		{"a group", jobs(at(t, "job_group.g.job.x"), at(t, "job_group.g.job.y"), at(t, "job.b")), []string{"job_group.g"}, jobs(at(t, "job.b")), 2},
		{"a job on a pool", files([]schema.Job{at(t, "job.a", from("p", 2)), at(t, "job.b", from("p", 1))}, pool("p", 3)), []string{"job.a"},
			files([]schema.Job{at(t, "job.b", from("p", 1))}, pool("p", 1)), 2},
		{"a pool with its jobs", files([]schema.Job{at(t, "job.a", from("p", 2)), at(t, "job.b")}, pool("p", 3)), []string{"reservation.p", "job.a"}, jobs(at(t, "job.b")), 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.before)
			w.settle()
			there := len(w.slices)
			removed := w.remove(test.remove...)
			if len(removed.Slices) != test.slices || len(w.doc.Unmanaged) != test.slices || w.doc.Unmanaged[removed.Slices[0]].By != "ann" {
				t.Errorf("removed %+v, unmanaged %v, want %d slices", removed, w.doc.Unmanaged, test.slices)
			}
			w.apply(test.left)
			w.mustStay("afterwards", test.left)
			if len(w.ended) > 0 || len(w.slices) != there {
				t.Errorf("ended %v, %d slices of %d are left, want nothing touched", w.ended, len(w.slices), there)
			}
			for _, name := range removed.Slices {
				if _, ok := w.assignments[name]; ok != (w.hosts[name][0].Task != nil) {
					t.Errorf("the mailbox of %s was touched", name)
				}
			}
			// Declared again, it is another job, and elsewhere.
			starts := len(w.starts)
			w.apply(test.before)
			w.twoOnAHost()
			if len(w.ended) > 0 || len(w.doc.Unmanaged) != test.slices {
				t.Errorf("ended %v, unmanaged %v, want what was removed untouched", w.ended, w.doc.Unmanaged)
			}
			for _, start := range w.starts[starts:] {
				if slices.Contains(w.starts[:starts], start) {
					t.Errorf("started again: %s", start)
				}
			}
			if len(w.starts) == starts {
				t.Error("nothing was started for what was declared again")
			}
		})
	}
}

func TestUnmanagedIsForgottenOnceGone(t *testing.T) {
	tests := []struct {
		name   string
		listed bool
		after  time.Duration
		kept   bool
	}{
		{"not listed yet, perhaps", false, time.Minute, true},
		{"there for long", true, 2 * time.Hour, true},
		{"gone", false, 2 * time.Hour, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, jobs(at(t, "job.a"), at(t, "job.b")))
			w.settle()
			name := w.remove("job.a").Slices[0]
			if !test.listed {
				delete(w.slices, name)
			}
			w.now = w.now.Add(test.after)
			w.settle()
			_, unmanaged := w.doc.Unmanaged[name]
			if _, mailbox := w.hosts[name]; unmanaged != test.kept || mailbox != test.kept {
				t.Errorf("unmanaged: %t, its mailbox there: %t, want %t", unmanaged, mailbox, test.kept)
			}
		})
	}
}

func TestUnmanagedTakesRoom(t *testing.T) {
	desired := jobs(at(t, "job.a"), at(t, "job.b"))
	desired.Providers = []schema.Provider{{Name: schema.ProviderLocal, Slices: 2}}
	w := newWorld(t, desired)
	w.settle()
	w.remove("job.a")
	w.doc.Desired = desired
	for range 5 {
		w.step()
	}
	p := w.diff(desired)
	if len(p.Pending) != 1 || !strings.Contains(p.Pending[0].Reasons[0], "2 of 2 are in use") || p.Capacity[0].Before.Slices != 2 || p.Capacity[0].After.Slices != 3 {
		t.Errorf("got %+v, %+v, want job.a to wait for room", p.Pending, p.Capacity)
	}
}

func TestRemoveRefuses(t *testing.T) {
	w := newWorld(t, files([]schema.Job{at(t, "job.a", from("p", 1))}, pool("p", 1)))
	w.settle()
	for _, test := range []struct{ addr, says string }{
		{"job.b", "no such address"}, {"job.a[0]", "no such address"}, {"reservation.p", "job.a holds slices of it"},
	} {
		next, _, err := amend.Remove(w.doc, []schema.Address{address(t, test.addr)}, w.now, "ann")
		if err == nil || !strings.Contains(err.Error(), test.says) || next != nil {
			t.Errorf("%s: got %v, want an error that says %q", test.addr, err, test.says)
		}
	}
}

func TestImportUndoesRemove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		desired := drawFiles(t)
		w := newWorld(t, desired)
		w.settle()
		if rapid.Bool().Draw(t, "retried") && len(w.slices) > 0 {
			w.preempt(slices.Sorted(maps.Keys(w.slices))[0])
			w.settle()
		}
		was := w.doc
		starts := len(w.starts)
		w.ended = nil
		removed := w.remove(everything(desired)...)
		if rapid.Bool().Draw(t, "between") {
			w.settle()
		}
		if len(desired.Reservations) > 0 {
			w.importAs(desired, "reservation.p", ownedBy(w, "reservation.p")...)
		}
		for _, addr := range removed.Jobs {
			if w.doc.Jobs[addr] == nil {
				w.importAs(desired, addr.String(), was.Jobs[addr].Slices...)
			}
		}
		w.mustStay("taken up again", desired)
		w.apply(desired)
		if len(w.starts) > starts || len(w.ended) > 0 || len(w.doc.Unmanaged) > 0 {
			t.Fatalf("started %v, ended %v, unmanaged %v, want nothing", w.starts[starts:], w.ended, w.doc.Unmanaged)
		}
		for addr, j := range was.Jobs {
			is := w.job(addr)
			if is.ID != j.ID || is.Attempt != j.Attempt || is.Preemptions != j.Preemptions || is.Digest != j.Digest || is.Status != j.Status ||
				!is.Ready || !slices.Equal(is.Slices, j.Slices) || is.Last().Generation != j.Last().Generation {
				t.Fatalf("%s is %+v, was %+v", addr, is, j)
			}
		}
		for name, s := range was.Slices {
			if is := w.doc.Slices[name]; is == nil || is.Spec != s.Spec {
				t.Fatalf("slice %s is %+v, was %+v", name, is, s)
			}
		}
	})
}

// everything is all addresses of a configuration.
func everything(d schema.Desired) []string {
	var addrs []string
	for i := range d.Reservations {
		addrs = append(addrs, d.Reservations[i].Addr.String())
	}
	for i := range d.Groups {
		addrs = append(addrs, d.Groups[i].Addr.String())
	}
	for i := range d.Jobs {
		addrs = append(addrs, d.Jobs[i].Addr.String())
	}
	return addrs
}

func ownedBy(w *world, owner string) []string {
	var names []string
	for name, s := range w.doc.Unmanaged {
		if s.Spec.Owner == address(w.t, owner) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A moved job that was removed comes back under its new name.
func TestImportOfAMovedJob(t *testing.T) {
	w := newWorld(t, files([]schema.Job{at(t, "job.a", from("p", 1)), at(t, "job.c", gang(2)), at(t, "job.e", needs(address(t, "job.c")))}, pool("p", 1)))
	w.settle()
	w.move("reservation.p", "reservation.q")
	w.move("job.c", "job_group.g.job.d")
	after := files([]schema.Job{at(t, "job.a", from("q", 1)), at(t, "job_group.g.job.d", gang(2)), at(t, "job.e", needs(address(t, "job_group.g.job.d")))}, pool("q", 1))
	w.apply(after)
	held, heldByE := w.job(address(t, "job_group.g.job.d")).Slices, w.job(address(t, "job.e")).Slices
	w.remove("reservation.q", "job.a", "job_group.g.job.d", "job.e")
	w.importAs(after, "reservation.q", ownedBy(w, "reservation.q")...)
	w.importAs(after, "job_group.g.job.d", held...)
	w.importAs(after, "job.e", heldByE...)
	w.mustStay("taken up again", after)
	starts := len(w.starts)
	w.apply(after)
	if len(w.ended) > 0 || len(w.starts) > starts {
		t.Errorf("started %v, ended %v, want nothing", w.starts[starts:], w.ended)
	}
}

// What was never asked for is no slice that could be unmanaged.
func TestRemoveBeforeAnythingIsAskedFor(t *testing.T) {
	w := newWorld(t, jobs(at(t, "job.a", gang(2))))
	w.doc = w.diff(w.doc.Desired).Next
	names := w.job(address(t, "job.a")).Slices
	planned := *w.doc.Slices[names[1]]
	planned.PendingSince = time.Time{}
	w.doc.Slices[names[1]] = &planned
	removed := w.remove("job.a")
	if _, unmanaged := w.doc.Unmanaged[names[1]]; unmanaged || !slices.Equal(removed.Slices, names[:1]) || len(w.doc.Slices) > 0 {
		t.Errorf("removed %+v, left %v, want only %s unmanaged", removed, w.doc.Slices, names[0])
	}
}

func TestImportOfIdleSlices(t *testing.T) {
	desired := jobs(at(t, "job.a", gang(2)), at(t, "job.b"))
	w := newWorld(t, desired)
	w.step() // the slices are there, nothing runs
	was := w.job(address(t, "job.a")).ID
	removed := w.remove("job.a")
	if len(w.starts) > 0 || len(removed.Slices) != 2 {
		t.Fatalf("started %v, removed %+v; this test wants idle slices", w.starts, removed)
	}
	w.settle()
	w.importAs(desired, "job.a", removed.Slices...)
	w.apply(desired)
	j := w.job(address(t, "job.a"))
	if !j.Ready || j.Attempt != 1 || !slices.Equal(j.Slices, removed.Slices) || len(w.ended) > 0 || j.ID == was {
		t.Errorf("got %+v, ended %v, want it started on %v with another id", j, w.ended, removed.Slices)
	}
}

// Slices of any of a job's alternatives are its own.
func TestImportOfAnAlternative(t *testing.T) {
	desired := jobs(at(t, "job.a", gang(2)), at(t, "job.b"))
	w := newWorld(t, desired)
	w.settle()
	names := w.remove("job.a").Slices
	after := jobs(at(t, "job.a", gang(2), func(j *schema.Job) {
		j.Resources.Accelerators, j.Resources.TPU = []schema.Accelerator{"v5litepod-8", "v5litepod-16"}, "v5litepod-8"
	}), at(t, "job.b"))
	w.importAs(after, "job.a", names...)
	w.apply(after)
	if j := w.job(address(t, "job.a")); !slices.Equal(j.Slices, names) || j.Attempt != 1 || len(w.ended) > 0 {
		t.Errorf("got %+v, ended %v, want it to go on", j, w.ended)
	}
}

func TestImportToAnotherAddress(t *testing.T) {
	w := newWorld(t, jobs(at(t, "job.a", gang(2))))
	w.settle()
	names := w.remove("job.a").Slices
	starts := len(w.starts)
	after := jobs(at(t, "job.a", gang(1)), at(t, "job.b", gang(2)))
	w.importAs(after, "job.b", names[1], names[0]) // the attempt knows the order
	for i, name := range names {
		if got := w.doc.Slices[name].Spec.Index; got != i {
			t.Errorf("slice %s has index %d, want %d as before", name, got, i)
		}
	}
	w.apply(after)
	w.twoOnAHost()
	if j := w.job(address(t, "job.b")); j.Attempt != 1 || !slices.Equal(j.Slices, names) || len(w.ended) > 0 || len(w.starts) != starts+4 {
		t.Errorf("job.b is %+v, started %v, ended %v, want it to go on and job.a to start", j, w.starts[starts:], w.ended)
	}
}

func TestImportRefuses(t *testing.T) {
	desired := files([]schema.Job{
		at(t, "job.a", gang(2)), at(t, "job.b"), at(t, "job.c"), at(t, "job.p", from("p", 1)), at(t, "job.d", gang(2)),
	}, pool("p", 2))
	w := newWorld(t, desired)
	w.settle()
	a, b := w.remove("job.a").Slices, w.remove("job.b").Slices
	c, d := w.job(address(t, "job.c")).Slices[0], w.remove("job.d").Slices
	p := w.job(address(t, "job.p")).Slices[0]
	w.preempt(d[1])
	more := files(append(slices.Clone(desired.Jobs), at(t, "job.e", gang(1)), at(t, "job.q", from("p", 1)), at(t, "job.r", from("r", 1))), pool("p", 2), pool("r", 1))
	tests := []struct {
		name, addr string
		slices     []string
		says       string
		unread     string // a slice of which the assignment cannot be read
	}{
		{"nothing", "job.a", nil, "no slice is named", ""},
		{"twice the same", "job.a", []string{a[0], a[0]}, "named twice", ""},
		{"too few", "job.a", a[:1], "declared with 2 slices, and 1 are named", ""},
		{"not declared", "job.z", a, "do not declare it", ""},
		{"not there", "job.b", []string{"x"}, "no provider lists a slice x", ""},
		{"another shape", "job.e", b, "another shape", ""},
		{"part of a gang", "job.e", a[:1], "also runs on slice " + a[1], ""},
		{"of two gangs", "job.a", []string{a[0], d[0]}, "they cannot be one job's", ""},
		{"dead", "job.d", d, "is dead", ""},
		{"another job's", "job.b", []string{c}, "belongs to job.c", ""},
		{"one that has slices", "job.c", b, "has slices already", ""},
		{"a namespace", "namespace.n", b, "a namespace has no slices", ""},
		{"held in the pool", "job.q", []string{p}, "held by job.p", ""},
		{"of no pool", "job.r", a[:1], "draws from reservation.r, which the state does not have", ""},
		{"a pool that has slices", "reservation.p", a, "has slices already", ""},
		{"more than the pool keeps", "reservation.r", a, "may have 1", ""},
		{"a pool under what is declared elsewhere", "reservation.r", a[:1], "the files do not declare on this reservation", ""},
		{"what cannot be read", "job.b", b, "is to run cannot be read (unexpected end of JSON)", b[0]},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obs := w.observe()
			if test.unread != "" {
				obs.Assignments[test.unread], obs.Damaged = plan.Assigned{}, map[string]string{test.unread: "unexpected end of JSON"}
			}
			next, err := amend.Import(w.doc, amend.ImportInput{
				Addr: address(t, test.addr), Desired: &more, Slices: test.slices, Observed: obs, At: w.now,
			})
			if err == nil || !strings.Contains(err.Error(), test.says) || next != nil {
				t.Errorf("got %v, want an error that says %q", err, test.says)
			}
		})
	}
}
