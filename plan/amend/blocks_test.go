package amend_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/amend"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// written is a configuration with blocks, one to a line: "FROM -> TO",
// "forget ADDR", "destroy ADDR", "import ADDR SLICE,…".
func written(t tester, desired schema.Desired, lines ...string) *schema.Config {
	t.Helper()
	cfg := &schema.Config{Desired: desired, Ranges: map[string]hcl.Range{}}
	for i := range desired.Jobs {
		cfg.Ranges[desired.Jobs[i].Addr.Base().String()] = hcl.Range{Filename: "jobs.hcl", Start: hcl.Pos{Line: i + 1}}
	}
	for i, line := range lines {
		rng := hcl.Range{Filename: "main.hcl", Start: hcl.Pos{Line: i + 1}}
		if from, to, ok := strings.Cut(line, " -> "); ok {
			cfg.Moves = append(cfg.Moves, schema.Move{From: address(t, from), To: address(t, to), Range: rng})
			continue
		}
		words := strings.SplitN(line, " ", 3)
		addr := address(t, words[1])
		switch words[0] {
		case "forget", "destroy":
			cfg.Removals = append(cfg.Removals, schema.Removal{From: addr, Destroy: words[0] == "destroy", Range: rng})
		case "import":
			cfg.Imports = append(cfg.Imports, schema.Import{To: addr, ID: words[2], Range: rng})
		default:
			t.Fatalf("no such block: %s", line)
		}
	}
	return cfg
}

// amend carries out the blocks and returns what that was, a line for each.
func (w *world) amend(blocks amend.Blocks, desired schema.Desired) ([]string, hcl.Diagnostics) {
	w.t.Helper()
	if diags := amend.Check(blocks.Config); diags.HasErrors() {
		w.t.Fatalf("check: %v", diags)
	}
	blocks.At, blocks.By = w.now, "ann"
	before := encoded(w.t, w.doc)
	next, done, diags := blocks.Relocate(w.doc)
	if !diags.HasErrors() {
		after, taken, more := blocks.TakeOver(next, &desired, w.observe())
		next, done, diags = after, append(done, taken...), append(diags, more...)
	}
	if got := encoded(w.t, w.doc); got != before {
		w.t.Errorf("the given document was changed:\n%s\nwas\n%s", got, before)
	}
	if !maps.EqualFunc(next.Jobs, w.doc.Jobs, func(x, y *state.Job) bool { return x.Spec.Addr == y.Spec.Addr }) && len(done) == 0 {
		w.t.Errorf("nothing is said to be done, and the document is\n%s\nwas\n%s", encoded(w.t, next), before)
	}
	w.doc = next
	return lines(done), diags
}

func lines(done []plan.Amendment) []string {
	var out []string
	for _, a := range done {
		switch a.Verb {
		case plan.AmendMove:
			out = append(out, fmt.Sprintf("%s -> %s", a.From, a.Addr))
		case plan.AmendForget, plan.AmendImport:
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", a.Verb, a.Addr, strings.Join(a.Slices, ","))))
		}
	}
	return out
}

func inModule(t tester, path string, d schema.Desired) schema.Desired {
	t.Helper()
	out := schema.Desired{}
	scoped := func(name string) string {
		if name == "" {
			return ""
		}
		return path + "." + name
	}
	for _, n := range d.Namespaces {
		n.Addr.Module = path
		out.Namespaces = append(out.Namespaces, n)
	}
	for _, r := range d.Reservations {
		r.Addr.Module = path
		out.Reservations = append(out.Reservations, r)
	}
	for _, g := range d.Groups {
		g.Addr.Module, g.Namespace = path, scoped(g.Namespace)
		out.Groups = append(out.Groups, g)
	}
	for _, j := range d.Jobs {
		j.Addr.Module, j.Namespace, j.Resources.Reservation = path, scoped(j.Namespace), scoped(j.Resources.Reservation)
		j.DependsOn = slices.Clone(j.DependsOn)
		for i := range j.DependsOn {
			j.DependsOn[i].Module = path
		}
		out.Jobs = append(out.Jobs, j)
	}
	return out
}

// movedBlocks are configurations before and after, and the blocks between them.
type movedBlocks struct {
	name          string
	before, after schema.Desired
	blocks, done  []string
}

func allMovedBlocks(t *testing.T) []movedBlocks {
	dep := func(s string) func(*schema.Job) { return needs(address(t, s)) }
	rich := files([]schema.Job{
		at(t, "job.a", from("p", 2)), at(t, "job.b", in("rl"), dep("job.a")), at(t, "job_group.g.job.x[0]"), at(t, "job_group.g.job.x[1]"),
		at(t, "actor_service.s[0]", dep("job_group.g")),
	}, pool("p", 3))
	rich.Namespaces = []schema.Namespace{{Addr: address(t, "namespace.rl"), MaxChips: 8}}
	return []movedBlocks{
		{"a chain", jobs(at(t, "job.a")), jobs(at(t, "job.d")), []string{"job.b -> job.c", "job.c -> job.d", "job.a -> job.b"}, []string{"job.a -> job.d"}},
		{"the end of a chain", jobs(at(t, "job.c")), jobs(at(t, "job.d")), []string{"job.b -> job.c", "job.c -> job.d", "job.a -> job.b"}, []string{"job.c -> job.d"}},
		{"done before", jobs(at(t, "job.b")), jobs(at(t, "job.b")), []string{"job.a -> job.b", "job.a -> job.b"}, nil},
		{"count to keys", jobs(at(t, "job.a[0]"), at(t, "job.a[1]", gang(1)), at(t, "job.z", dep("job.a"))),
			jobs(at(t, `job.a["x"]`), at(t, `job.a["y"]`, gang(1)), at(t, "job.z", dep("job.a"))),
			[]string{`job.a[0] -> job.a["x"]`, `job.a[1] -> job.a["y"]`}, []string{`job.a[0] -> job.a["x"]`, `job.a[1] -> job.a["y"]`}},
		{"one to a count", jobs(at(t, "job.a", gang(1)), at(t, "job.z", dep("job.a"))), jobs(at(t, "job.a[2]", gang(1)), at(t, "job.z", dep("job.a"))),
			[]string{"job.a -> job.a[2]"}, []string{"job.a -> job.a[2]"}},
		{"one to a count without a block", jobs(at(t, "job.a", gang(1))), jobs(at(t, "job.a[0]", gang(1))), nil, []string{"job.a -> job.a[0]"}},
		{"a count to one without a block", jobs(at(t, "job_group.g.job.a[0]")), jobs(at(t, "job_group.g.job.a")), nil,
			[]string{"job_group.g.job.a[0] -> job_group.g.job.a"}},
		{"renamed, then counted", jobs(at(t, "job.a")), jobs(at(t, `job.b["k"]`)), []string{`job.b -> job.b["k"]`, "job.a -> job.b"},
			[]string{`job.a -> job.b["k"]`}},
		{"into a module", rich, inModule(t, "module.m", rich),
			[]string{
				"job.a -> module.m.job.a", "job.b -> module.m.job.b", "job_group.g -> module.m.job_group.g", "reservation.p -> module.m.reservation.p",
				"namespace.rl -> module.m.namespace.rl", "actor_service.s -> module.m.actor_service.s",
			},
			[]string{
				"namespace.rl -> module.m.namespace.rl", "reservation.p -> module.m.reservation.p", "job_group.g -> module.m.job_group.g",
				"job.a -> module.m.job.a", "job.b -> module.m.job.b", "job_group.g.job.x[0] -> module.m.job_group.g.job.x[0]",
				"job_group.g.job.x[1] -> module.m.job_group.g.job.x[1]", "actor_service.s[0] -> module.m.actor_service.s[0]",
			}},
		{"a module", inModule(t, "module.m", rich), inModule(t, `module.n["k"].module.o`, rich),
			[]string{`module.n["k"].module.m -> module.n["k"].module.o`, `module.m -> module.n["k"].module.m`},
			[]string{
				`module.m.namespace.rl -> module.n["k"].module.o.namespace.rl`, `module.m.reservation.p -> module.n["k"].module.o.reservation.p`,
				`module.m.job_group.g -> module.n["k"].module.o.job_group.g`, `module.m.job.a -> module.n["k"].module.o.job.a`,
				`module.m.job.b -> module.n["k"].module.o.job.b`, `module.m.job_group.g.job.x[0] -> module.n["k"].module.o.job_group.g.job.x[0]`,
				`module.m.job_group.g.job.x[1] -> module.n["k"].module.o.job_group.g.job.x[1]`, `module.m.actor_service.s[0] -> module.n["k"].module.o.actor_service.s[0]`,
			}},
		{"within a module that moves", inModule(t, "module.m", jobs(at(t, "job.a"))), inModule(t, "module.n", jobs(at(t, "job.b"))),
			[]string{"module.m -> module.n", "module.m.job.a -> module.m.job.b"}, []string{"module.m.job.a -> module.n.job.b"}},
		{"into a module that moves", jobs(at(t, "job.a")), inModule(t, "module.n", jobs(at(t, "job.a"))),
			[]string{"module.m -> module.n", "job.a -> module.m.job.a"}, []string{"job.a -> module.n.job.a"}},
		{"one of those that move", jobs(at(t, "job.a[0]"), at(t, "job.a[1]")), jobs(at(t, "job.b[0]"), at(t, "job.c")),
			[]string{"job.a -> job.b", "job.a[1] -> job.c"}, []string{"job.a[0] -> job.b[0]", "job.a[1] -> job.c"}},
	}
}

func TestNothingFollowsFromMovedBlocks(t *testing.T) {
	for _, test := range allMovedBlocks(t) {
		for turn := range 2 { // in any order
			t.Run(fmt.Sprintf("%s %d", test.name, turn), func(t *testing.T) {
				w := newWorld(t, test.before)
				w.settle()
				starts := len(w.starts)
				blocks := slices.Clone(test.blocks)
				if turn > 0 {
					slices.Reverse(blocks)
				}
				cfg := written(t, test.after, blocks...)
				got, diags := w.amend(amend.Blocks{Config: cfg}, test.after)
				if len(diags) > 0 || !slices.Equal(got, test.done) {
					t.Errorf("done: %q, %v, want %q", got, diags, test.done)
				}
				w.mustStay("with the new files", test.after)
				w.apply(test.after)
				if len(w.starts) != starts || len(w.ended) > 0 {
					t.Errorf("started %v, ended %v, want nothing", w.starts[starts:], w.ended)
				}
				if got, diags := w.amend(amend.Blocks{Config: cfg}, test.after); len(got)+len(diags) > 0 {
					t.Errorf("done again: %q, %v, want nothing", got, diags)
				}
			})
		}
	}
}

func TestMoveToWhatIsThereWarns(t *testing.T) {
	before := jobs(at(t, "job.a[0]"), at(t, "job.a[1]"), at(t, "job.b[1]"))
	after := jobs(at(t, "job.b[0]"), at(t, "job.b[1]"))
	w := newWorld(t, before)
	w.settle()
	got, diags := w.amend(amend.Blocks{Config: written(t, after, "job.a -> job.b")}, after)
	if want := []string{"job.a[0] -> job.b[0]"}; !slices.Equal(got, want) {
		t.Errorf("done: %q, want %q", got, want)
	}
	if len(diags) != 1 || diags.HasErrors() || diags[0].Subject.Start.Line != 1 || !strings.Contains(diags[0].Detail, "job.a[1] to job.b[1]") {
		t.Errorf("got %v, want a warning at line 1 that names job.a[1] and job.b[1]", diags)
	}
}

// What is at the new address may be on its way out: it is still there.
func TestMoveToWhatIsDesiredNoMoreWarns(t *testing.T) {
	w := newWorld(t, jobs(at(t, "job.a"), at(t, "job.b")))
	w.settle()
	after := jobs(at(t, "job.b"))
	w.accept(schema.Desired{})
	got, diags := w.amend(amend.Blocks{Config: written(t, after, "job.a -> job.b")}, after)
	if len(got) > 0 || len(diags) != 1 || diags.HasErrors() {
		t.Errorf("done: %q, %v, want nothing and a warning", got, diags)
	}
}

// A trigger under another address does not count as changed.
func TestMovedTriggerReplacesNothing(t *testing.T) {
	by := func(s string) func(*schema.Job) {
		return func(j *schema.Job) { j.Lifecycle.TriggeredBy = []schema.Trigger{{Addr: address(t, s)}} }
	}
	w := newWorld(t, schema.Desired{})
	w.apply(jobs(at(t, "job.a", gang(1)), at(t, "job.z", by("job.a"))))
	starts := len(w.starts)
	after := inModule(t, "module.m", jobs(at(t, "job.b", gang(1))))
	after.Jobs = append(jobs(at(t, "job.z", by("module.m.job.b"))).Jobs, after.Jobs...)
	if got, diags := w.amend(amend.Blocks{Config: written(t, after, "job.a -> module.m.job.b")}, after); len(got) != 1 || len(diags) > 0 {
		t.Fatalf("done: %q, %v, want one move", got, diags)
	}
	if got := w.job(address(t, "job.z")).Spec.Lifecycle.TriggeredBy; len(got) != 1 || got[0].Addr != address(t, "module.m.job.b") {
		t.Errorf("job.z is triggered by %+v, want module.m.job.b", got)
	}
	w.apply(after)
	if len(w.starts) != starts || len(w.ended) > 0 {
		t.Errorf("started %v, ended %v, want nothing", w.starts[starts:], w.ended)
	}
}

// A block comes before what a count implies.
func TestBlockOutweighsCount(t *testing.T) {
	w := newWorld(t, jobs(at(t, "job.a", gang(1))))
	w.settle()
	after := jobs(at(t, "job.a[0]", gang(1)), at(t, "job.a[1]", gang(1)))
	got, diags := w.amend(amend.Blocks{Config: written(t, after, "job.a[2] -> job.a[1]")}, after)
	if len(got)+len(diags) > 0 {
		t.Errorf("done: %q, %v, want nothing: a block is about the job", got, diags)
	}
}

func TestTargetsNarrowBlocks(t *testing.T) {
	before := files([]schema.Job{at(t, "job.a"), at(t, "job.c", in("k")), at(t, "job_group.g.job.x"), at(t, "job_group.g.job.y"), at(t, "job.old")})
	after := files([]schema.Job{at(t, "job.b"), at(t, "job.d", in("k")), at(t, "job_group.h.job.x"), at(t, "job_group.h.job.y")})
	blocks := []string{"job.a -> job.m", "job.m -> job.b", "job.c -> job.d", "job_group.g -> job_group.h", "forget job.old"}
	tests := []struct {
		wanted string
		done   []string
	}{
		{"job.b", []string{"job.a -> job.b"}},
		{"job.a", []string{"job.a -> job.b"}},
		{"job.m", nil},
		{"job_group.h", []string{"job_group.g -> job_group.h", "job_group.g.job.x -> job_group.h.job.x", "job_group.g.job.y -> job_group.h.job.y"}},
		{"job.old", []string{"forget job.old " + plan.SliceName(lineage[:12], address(t, "job.old"), 0)}},
	}
	for _, test := range tests {
		w := newWorld(t, before)
		w.settle()
		wanted := address(t, test.wanted)
		got, diags := w.amend(amend.Blocks{Config: written(t, after, blocks...), Wanted: func(a schema.Address) bool { return a == wanted }}, after)
		if len(diags) > 0 || !slices.Equal(got, test.done) {
			t.Errorf("with target %s: %q, %v, want %q", test.wanted, got, diags, test.done)
		}
	}
}

func TestRemovedIsLetGo(t *testing.T) {
	before := inModule(t, "module.m", files([]schema.Job{at(t, "job.a[0]"), at(t, "job.a[1]"), at(t, "job.p", from("p", 1)), at(t, "job.k")}, pool("p", 1)))
	kept := inModule(t, "module.m", jobs(at(t, "job.k")))
	tests := []struct {
		name   string
		blocks []string
		done   []string // addresses
		ended  int
	}{
		{"a job", []string{"forget module.m.job.a", "forget module.m.job.p", "forget module.m.reservation.p"},
			[]string{"module.m.reservation.p", "module.m.job.a[0]", "module.m.job.a[1]", "module.m.job.p"}, 0},
		{"moved before", []string{"module.m.job.a -> module.m.job.b", "forget module.m.job.b", "destroy module.m.job.p", "destroy module.m.reservation.p"},
			[]string{"module.m.job.b[0]", "module.m.job.b[1]", "module.m.job.b[0]", "module.m.job.b[1]"}, 5},
		{"destroyed", []string{"destroy module.m.job.a"}, nil, 7},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, before)
			w.settle()
			cfg := written(t, kept, test.blocks...)
			done, diags := w.amend(amend.Blocks{Config: cfg}, kept)
			var addrs []string
			for _, line := range done {
				if words := strings.Fields(line); words[0] == "forget" {
					addrs = append(addrs, words[1])
				} else {
					addrs = append(addrs, words[2])
				}
			}
			if slices.Sort(addrs); len(diags) > 0 || !slices.Equal(addrs, slices.Sorted(slices.Values(test.done))) {
				t.Errorf("done: %q, %v, want %q", done, diags, test.done)
			}
			w.apply(kept)
			if len(w.ended) != test.ended {
				t.Errorf("ended %v, want %d", w.ended, test.ended)
			}
			if again, diags := w.amend(amend.Blocks{Config: cfg}, kept); len(again)+len(diags) > 0 {
				t.Errorf("done again: %q, %v, want nothing", again, diags)
			}
		})
	}
}

func TestRemovedReservationThatIsHeld(t *testing.T) {
	before := files([]schema.Job{at(t, "job.p", from("p", 1))}, pool("p", 1))
	w := newWorld(t, before)
	w.settle()
	got, diags := w.amend(amend.Blocks{Config: written(t, schema.Desired{}, "forget reservation.p")}, schema.Desired{})
	if len(got) > 0 || !diags.HasErrors() || diags[0].Subject == nil || !strings.Contains(diags[0].Detail, "job.p holds slices of it") {
		t.Errorf("got %q, %v, want an error that names job.p", got, diags)
	}
}

// Whatever moves: nothing ends, what ran has one address, and the blocks are
// without effect afterwards.
func TestMovedBlocksInAnyFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, drawFiles(t))
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			w.step()
		}
		ends := []string{
			"job.j0", "job.f", "job.f[0]", "job.f[1]", "job_group.g", "job_group.h", "job_group.g.job.m0", "job.m0", "module.m", "module.n[0]",
			"module.m.job.f", "module.m.job_group.g", "module.m.job_group.h", "reservation.p", "module.m.reservation.q", "actor_service.s", `job.f["x"]`,
		}
		var blocks []string
		for range rapid.IntRange(1, 6).Draw(t, "blocks") {
			blocks = append(blocks, rapid.SampledFrom(ends).Draw(t, "from")+" -> "+rapid.SampledFrom(ends).Draw(t, "to"))
		}
		cfg := written(t, schema.Desired{}, blocks...)
		if amend.Check(cfg).HasErrors() {
			return
		}
		ids, recorded := map[string]bool{}, len(w.doc.Jobs)
		got, unresolved := w.amend(amend.Blocks{Config: cfg}, w.doc.Desired)
		w.mustStayOrGoOn()
		for a, j := range w.doc.Jobs {
			if j.Spec.Addr != a || ids[j.ID] {
				t.Errorf("%s is recorded as %s with id %s", a, j.Spec.Addr, j.ID)
			}
			ids[j.ID] = true
		}
		if len(w.doc.Jobs) != recorded {
			t.Errorf("%d jobs are recorded, want %d", len(w.doc.Jobs), recorded)
		}
		w.twoOnAHost()
		if len(unresolved) > 0 {
			return // what stays is deleted where these blocks are allowed
		}
		if again, _ := w.amend(amend.Blocks{Config: cfg}, w.doc.Desired); len(again) > 0 {
			t.Errorf("%q moved %q and then %q, want nothing the second time", blocks, got, again)
		}
	})
}
