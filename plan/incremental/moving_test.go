package incremental

import (
	"strconv"
	"testing"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// changed are jobs after the changes of some of them, by name.
func changed(jobs []schema.Job, changes map[string]func(*schema.Job)) []schema.Job {
	var are []schema.Job
	for _, j := range jobs {
		if change := changes[j.Addr.Name]; change != nil {
			change(&j)
		}
		are = append(are, j)
	}
	return are
}

// wantMoves checks how a plan changes jobs, by name, and why it replaces one, if that
// is not "".
func wantMoves(t *testing.T, p *plan.Plan, verbs map[string]plan.Verb, why string) {
	t.Helper()
	for _, change := range p.Changes {
		want, told := verbs[change.Addr.Name]
		if change.Addr.Kind != schema.KindJob || !told {
			continue
		}
		if change.Verb != want || want == plan.VerbReplace && why != "" && change.Reason != why {
			t.Errorf("%s: got %s, %q, want %s, %q", change.Addr, change.Verb, change.Reason, want, why)
		}
	}
}

// What a namespace may have at most holds for those that move into it with what they
// have.
func TestNamespaceLimitsHoldForWhoMovesIn(t *testing.T) {
	tpu := onTPU("v5litepod-8")
	to := func(space string, options ...jobOption) func(*schema.Job) {
		return func(j *schema.Job) {
			j.Namespace = space
			for _, o := range options {
				o(j)
			}
		}
	}
	staged := func(j *schema.Job) { j.Lifecycle.CreateBeforeDestroy = true }
	spaces := []schema.Namespace{
		newSpace("wide", nil),
		newSpace("one", func(n *schema.Namespace) { n.MaxChips = 8 }),
		newSpace("two", func(n *schema.Namespace) {
			n.MaxChips = 16
			n.Users = []schema.UserShare{{Name: "ann", MaxChips: 8}}
		}),
	}
	for name, c := range map[string]struct {
		held   []schema.Job
		change map[string]func(*schema.Job)
		want   map[string]plan.Verb // those that change, as the plan shows it
		why    string               // of one that is replaced
		runs   map[string]int       // attempts of those that run in the end
		waits  map[string]string
	}{
		"into room: in place": {
			[]schema.Job{newJob("a", tpu, inSpace("wide"))}, map[string]func(*schema.Job){"a": to("one")},
			map[string]plan.Verb{"a": plan.VerbRestart}, "", map[string]int{"a": 2}, nil,
		},
		"into none: it gives up what it has": {
			[]schema.Job{newJob("a", tpu, inSpace("wide")), newJob("b", tpu, inSpace("one"))}, map[string]func(*schema.Job){"a": to("one")},
			map[string]plan.Verb{"a": plan.VerbReplace}, "namespace.one: needs 8 more chips, 8 of its max_chips 8 are held; it gives up what it has, and waits there",
			map[string]int{"b": 1}, map[string]string{"a": "namespace.one: needs 8 more chips, 8 of its max_chips 8 are held"},
		},
		"two at once where one fits": {
			[]schema.Job{newJob("a", tpu, inSpace("wide")), newJob("b", tpu, inSpace("wide"))}, map[string]func(*schema.Job){"a": to("one"), "b": to("one")},
			map[string]plan.Verb{"a": plan.VerbRestart, "b": plan.VerbReplace}, "namespace.one: needs 8 more chips, 8 of its max_chips 8 are held; it gives up what it has, and waits there",
			map[string]int{"a": 2}, map[string]string{"b": "max_chips 8"},
		},
		"two change places": {
			[]schema.Job{newJob("a", tpu, inSpace("one")), newJob("b", tpu, onSlices(2), inSpace("two")), newJob("c", tpu, inSpace("wide"))},
			map[string]func(*schema.Job){"a": to("two"), "b": to("wide"), "c": to("one")},
			map[string]plan.Verb{"a": plan.VerbReplace, "b": plan.VerbRestart, "c": plan.VerbReplace}, "", map[string]int{"a": 2, "b": 2, "c": 2}, nil,
		},
		"to a user who has no more": {
			[]schema.Job{newJob("a", tpu, inSpace("two")), newJob("b", tpu, inSpace("two"), ofUserNamed("ann"))},
			map[string]func(*schema.Job){"a": to("two", ofUserNamed("ann"))},
			map[string]plan.Verb{"a": plan.VerbReplace}, `user "ann" of namespace.two: needs 8 more chips, 8 of its max_chips 8 are held; it gives up what it has, and waits there`,
			map[string]int{"b": 1}, map[string]string{"a": `user "ann" of namespace.two`},
		},
		"to a user of the same full namespace": {
			[]schema.Job{newJob("a", tpu, inSpace("two")), newJob("b", tpu, inSpace("two"))},
			map[string]func(*schema.Job){"a": to("two", ofUserNamed("ann"))},
			map[string]plan.Verb{"a": plan.VerbUpdate}, "", map[string]int{"a": 1, "b": 1}, nil,
		},
		"new slices first": {
			[]schema.Job{newJob("a", tpu, inSpace("wide"), staged), newJob("b", tpu, inSpace("one"))}, map[string]func(*schema.Job){"a": to("one")},
			map[string]plan.Verb{"a": plan.VerbReplace}, "",
			map[string]int{"b": 1}, map[string]string{"a": "max_chips 8"},
		},
		"new slices first, in a namespace that holds one of them": {
			[]schema.Job{newJob("a", tpu, inSpace("one"), staged)}, map[string]func(*schema.Job){"a": to("one", onTPU("v5litepod-4"))},
			map[string]plan.Verb{"a": plan.VerbReplace}, "", map[string]int{"a": 2}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.accept(withSpaces(configuration(c.held...), spaces...))
			w.settle(time.Minute)
			w.accept(withSpaces(configuration(changed(c.held, c.change)...), spaces...))
			wantMoves(t, w.step(500*time.Millisecond), c.want, c.why)
			for range 240 {
				w.step(500 * time.Millisecond)
				w.wantWithinLimits()
			}
			for name, attempts := range c.runs {
				w.wantJob(jobAddr(name), schema.JobRunning, attempts, 0, 0)
			}
			for name, why := range c.waits {
				w.wantReason(jobAddr(name), why)
			}
		})
	}
}

// What is to take over in another namespace is counted there, with the shape that it
// has, and so is still within its limit when it does.
func TestNamespaceLimitsHoldForWhatIsStaged(t *testing.T) {
	for name, c := range map[string]struct {
		space string // that it moves to
		max   int    // chips
	}{
		"in another namespace": {"two", 8},
		"in its own":           {"one", 12},
	} {
		t.Run(name, func(t *testing.T) {
			limit := func(n *schema.Namespace) { n.MaxChips = c.max }
			spaces := []schema.Namespace{newSpace("one", limit), newSpace("two", limit)}
			a := newJob("a", onTPU("v5litepod-4"), inSpace("one"), newFirst)
			w := newWorld(t)
			w.accept(withSpaces(configuration(a), spaces...))
			w.settle(time.Minute)
			w.bootTakes = 20 * time.Second
			is := newJob("a", onTPU("v5litepod-8"), inSpace(c.space), newFirst)
			w.accept(withSpaces(configuration(is), spaces...))
			w.run(2 * time.Second)
			if len(w.job(a.Addr).Staged) != 1 {
				t.Fatalf("nothing is staged\n%s", w.describe())
			}
			b := newJob("b", onTPU("v5litepod-4"), inSpace(c.space))
			w.accept(withSpaces(configuration(is, b), spaces...))
			w.run(2 * time.Second)
			w.wantReason(b.Addr, "needs 4 more chips, "+strconv.Itoa(c.max)+" of its max_chips")
			w.until(2*time.Minute, "taken over", func(*plan.Plan) bool {
				w.wantWithinLimits()
				return w.job(a.Addr).Ready && w.job(a.Addr).Attempt == 2
			})
		})
	}
}

// wantWithinLimits finds namespaces and users that hold more than they may.
func (w *world) wantWithinLimits() {
	w.t.Helper()
	chips := map[[2]string]int{}
	for _, j := range w.doc.Jobs {
		acc, err := accelerators.Parse(j.Spec.Resources.TPU)
		if err != nil {
			w.t.Fatal(err)
		}
		n := acc.Chips * (len(j.Slices) + len(j.Staged))
		chips[[2]string{j.Spec.Namespace, ""}] += n
		chips[[2]string{j.Spec.Namespace, j.Spec.User}] += n * min(1, len(j.Spec.User))
	}
	for i := range w.doc.Desired.Namespaces {
		space := &w.doc.Desired.Namespaces[i]
		if held := chips[[2]string{space.Addr.Name, ""}]; space.MaxChips > 0 && held > space.MaxChips {
			w.t.Fatalf("%s holds %d chips, its max is %d\n%s", space.Addr, held, space.MaxChips, w.describe())
		}
		for _, u := range space.Users {
			if held := chips[[2]string{space.Addr.Name, u.Name}]; held > u.MaxChips {
				w.t.Fatalf("user %s of %s holds %d chips, the max is %d\n%s", u.Name, space.Addr, held, u.MaxChips, w.describe())
			}
		}
	}
}
