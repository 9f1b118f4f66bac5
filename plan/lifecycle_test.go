package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

func under(l schema.Lifecycle) jobOption { return func(j *schema.Job) { j.Lifecycle = l } }

func protected(j *schema.Job) { j.Lifecycle.PreventDestroy = true }
func ignoringPaths(paths ...string) jobOption {
	return func(j *schema.Job) { j.Lifecycle.Ignore = paths }
}
func triggeredBy(digest string) jobOption {
	return func(j *schema.Job) { j.Lifecycle.Trigger = digest }
}

// changeOn is the last plan's change of an address.
func changeOn(p *Plan, addr schema.Address) Change {
	for _, c := range p.Changes {
		if c.Addr == addr {
			return c
		}
	}
	return Change{}
}

// Another lifecycle touches nothing and is remembered at once.
func TestLifecycleTakesEffectWithoutAChange(t *testing.T) {
	a := jobAddr("a")
	pool := newPool("p", "", 1)
	w := up(t, withPools(configuration(newJob("a")), pool))
	want := schema.Lifecycle{PreventDestroy: true, CreateBeforeDestroy: true, Ignore: []string{"command"}, Trigger: "t"}
	pool.Lifecycle = want
	w.accept(withPools(configuration(newJob("a", under(want))), pool))
	if Remembers(w.doc) {
		t.Error("what was only accepted counts as remembered")
	}
	if p := w.step(time.Second); !p.Empty() || p.Next == w.saved {
		t.Errorf("got changes %v, actions %v, a new state %t; want none, none, true", p.Changes, p.Actions, p.Next != w.saved)
	}
	w.wantJob(a, schema.JobRunning, 1, 0, 0)
	if got := w.job(a).Spec.Lifecycle; !equalLifecycles(&got, &want) || !Remembers(w.doc) {
		t.Errorf("the state remembers %+v, want %+v", got, want)
	}
	if got := w.doc.Resources[pool.Addr].Reservation.Lifecycle; !equalLifecycles(&got, &want) {
		t.Errorf("the state remembers %+v of the reservation, want %+v", got, want)
	}
	if digest, err := schema.DigestOf(w.job(a).Spec); err != nil || digest != w.job(a).Digest {
		t.Errorf("the recorded digest is not that of the recorded spec (%v)", err)
	}
}

// A lifecycle that was accepted by an apply which died is remembered by the next.
func TestLifecycleOutlivesTheApplyThatBroughtIt(t *testing.T) {
	pool := newPool("p", "", 1)
	w := up(t, withPools(configuration(newJob("a")), pool))
	pool.Lifecycle.PreventDestroy = true
	w.accept(withPools(configuration(newJob("a", protected)), pool))
	w.accept(schema.Desired{}) // no step between
	p := w.step(time.Second)
	if len(p.Refusals) != 2 {
		t.Errorf("got refusals %+v, want one of the job and one of the reservation", p.Refusals)
	}
}

func TestTriggerReplaces(t *testing.T) {
	for name, c := range map[string]struct {
		was, is string
		want    Verb
		kept    string
	}{
		"another one":   {"a", "b", VerbReplace, "b"},
		"the same":      {"a", "a", VerbNone, "a"},
		"a new one":     {"", "b", VerbNone, "b"},
		"not known yet": {"a", "", VerbNone, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			a := jobAddr("a")
			w := up(t, configuration(newJob("a", triggeredBy(c.was))))
			w.accept(configuration(newJob("a", triggeredBy(c.is))))
			got := changeOn(w.step(time.Second), a)
			if got.Verb != c.want || (got.Reason == replaceTriggeredBy) != (c.want == VerbReplace) {
				t.Errorf("got %s (%s), want %s", got.Verb, got.Reason, c.want)
			}
			w.follow(time.Minute, func() {
				for _, waits := range w.last.Pending {
					if was := w.job(a).Spec.Lifecycle.Trigger != c.is; was && c.want == VerbReplace && slices.ContainsFunc(waits.Reasons, func(r string) bool { return strings.HasPrefix(r, "the old slice") }) {
						t.Fatalf("it is placed while it is being replaced: %v", waits.Reasons)
					}
				}
			})
			attempts := map[Verb]int{VerbReplace: 2, VerbNone: 1}[c.want]
			w.wantJob(a, schema.JobRunning, attempts, 0, 0)
			if got := w.job(a).Spec.Lifecycle.Trigger; got != c.kept {
				t.Errorf("the state remembers trigger %q, want %q", got, c.kept)
			}
		})
	}
}

func onChangeOf(addr schema.Address, path string) jobOption {
	return func(j *schema.Job) {
		j.Lifecycle.TriggeredBy = append(j.Lifecycle.TriggeredBy, schema.Trigger{Addr: addr, Path: path})
	}
}

// TestTriggeredByThings: a change of what is named replaces, once, also where it is
// accepted long before it is seen.
func TestTriggeredByThings(t *testing.T) {
	data, pool := jobAddr("data"), newPool("p", "", 1)
	inst := func(n int, options ...jobOption) schema.Job { return newJob("data", append(options, instance(n))...) }
	larger := newPool("p", "", 2)
	unknown := func(j *schema.Job) { j.Environment.Env = map[string]schema.Text{"A": schema.UnknownText()} }
	for name, c := range map[string]struct {
		by      []jobOption
		was, is []schema.Job
		pool    schema.Reservation
		want    Verb
	}{
		"a change":                  {[]jobOption{onChangeOf(data, "")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", withEnv("A", "b"))}, pool, VerbReplace},
		"an update":                 {[]jobOption{onChangeOf(data, "")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", withPriority("", 3))}, pool, VerbReplace},
		"no change":                 {[]jobOption{onChangeOf(data, "")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data")}, pool, VerbNone},
		"a lifecycle":               {[]jobOption{onChangeOf(data, "")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", protected)}, pool, VerbNone},
		"of an instance":            {[]jobOption{onChangeOf(data, "")}, []schema.Job{inst(0), inst(1)}, []schema.Job{inst(0), inst(1, withEnv("A", "b"))}, pool, VerbReplace},
		"of another instance":       {[]jobOption{onChangeOf(inst(0).Addr, "")}, []schema.Job{inst(0), inst(1)}, []schema.Job{inst(0), inst(1, withEnv("A", "b"))}, pool, VerbNone},
		"an instance more":          {[]jobOption{onChangeOf(data, "")}, []schema.Job{inst(0)}, []schema.Job{inst(0), inst(1)}, pool, VerbNone},
		"an instance less":          {[]jobOption{onChangeOf(data, "")}, []schema.Job{inst(0), inst(1)}, []schema.Job{inst(0)}, pool, VerbNone},
		"an attribute":              {[]jobOption{onChangeOf(data, "environment.env")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", withEnv("A", "b"))}, pool, VerbReplace},
		"another attribute":         {[]jobOption{onChangeOf(data, "command")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", withEnv("A", "b"))}, pool, VerbNone},
		"what it ignores":           {[]jobOption{onChangeOf(data, "")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", withEnv("A", "b"), ignoringPaths("environment"))}, pool, VerbNone},
		"a value that is not known": {[]jobOption{onChangeOf(data, "")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", unknown)}, pool, VerbNone},
		"a reservation":             {[]jobOption{onChangeOf(pool.Addr, "min.slices")}, nil, nil, larger, VerbReplace},
		"itself":                    {[]jobOption{onChangeOf(jobAddr("a"), "")}, nil, nil, pool, VerbNone},
	} {
		t.Run(name, func(t *testing.T) {
			a := newJob("a", c.by...)
			w := up(t, withPools(configuration(append(c.was, a)...), pool))
			w.accept(withPools(configuration(append(c.is, a)...), c.pool))
			w.accept(withPools(configuration(append(c.is, a)...), c.pool)) // again, before anything was done
			got := changeOn(w.step(time.Second), a.Addr)
			if got.Verb != c.want || (got.Reason == replaceTriggeredBy) != (c.want == VerbReplace) {
				t.Errorf("got %s (%s), want %s", got.Verb, got.Reason, c.want)
			}
			w.run(time.Minute)
			w.wantJob(a.Addr, schema.JobRunning, map[Verb]int{VerbReplace: 2, VerbNone: 1}[c.want], 0, 0)
			if !Remembers(w.doc) {
				t.Error("the trigger is not remembered")
			}
		})
	}
}

// A change is not missed for being unknown for a while.
func TestTriggerThatBecomesKnown(t *testing.T) {
	a := newJob("a", onChangeOf(jobAddr("data"), ""))
	w := up(t, configuration(newJob("data", withEnv("A", "1")), a))
	for _, value := range []schema.Text{schema.UnknownText(), schema.Plain("2")} {
		desired := configuration(newJob("data", func(j *schema.Job) { j.Environment.Env = map[string]schema.Text{"A": value} }), a)
		w.doc = w.planner.Refined(w.doc, &desired)
		w.run(5 * time.Second)
	}
	w.settle(time.Minute)
	w.wantJob(a.Addr, schema.JobRunning, 2, 0, 0)
}

// What has not run has seen nothing of what triggers it.
func TestTriggerOfWhatHasNotRun(t *testing.T) {
	a := jobAddr("a")
	w := newWorld(t)
	w.capacity = 1 // the foreign slice's
	w.accept(configuration(newJob("a", triggeredBy("a"))))
	w.run(5 * time.Second)
	w.accept(configuration(newJob("a", triggeredBy("b"))))
	if got := changeOn(w.step(time.Second), a); got.Verb != VerbNone {
		t.Errorf("got %s, want no change", got.Verb)
	}
	if got := w.job(a).Spec.Lifecycle.Trigger; got != "b" {
		t.Errorf("the state remembers trigger %q, want b", got)
	}
}

// The reason is left out where the attributes tell.
func TestTriggerBesideAttributes(t *testing.T) {
	for name, c := range map[string]struct {
		change jobOption
		reason string
	}{
		"restart": {withEnv("A", "b"), replaceTriggeredBy},
		"replace": {onTPU("v5litepod-4"), ""},
	} {
		w := up(t, configuration(newJob("a", triggeredBy("a"))))
		w.accept(configuration(newJob("a", triggeredBy("b"), c.change)))
		if got := changeOn(w.step(time.Second), jobAddr("a")); got.Verb != VerbReplace || got.Reason != c.reason || len(got.Attrs) == 0 {
			t.Errorf("%s: got %s (%s), want replace (%s)", name, got.Verb, got.Reason, c.reason)
		}
	}
}

// TestProtectedIsKept: whatever would destroy something protected is shown,
// refused, and not done, while everything else is.
func TestProtectedIsKept(t *testing.T) {
	a, pool := jobAddr("a"), newPool("p", "v5litepod-4", 2)
	pool.Lifecycle.PreventDestroy = true
	reshaped := newPool("p", "v5litepod-16", 2)
	reshaped.Lifecycle.PreventDestroy = true
	start := withPools(configuration(newJob("a", protected), newJob("drawer", from("p")), newJob("other")), pool)
	asks := func(j *state.Job) { j.Replace = true }
	for name, c := range map[string]struct {
		desired schema.Desired
		mark    func(*state.Job)
		want    map[schema.Address]Refusal
	}{
		"another shape": {
			desired: withPools(configuration(newJob("a", protected, onTPU("v5litepod-8")), newJob("drawer", from("p"))), pool),
			want:    map[schema.Address]Refusal{a: {Verb: VerbReplace, By: ByFiles, Detail: "resources.tpu"}},
		},
		"--replace": {
			desired: start, mark: asks,
			want: map[schema.Address]Refusal{a: {Verb: VerbReplace, By: ByFiles, Detail: "--replace"}},
		},
		"--replace of what the block is gone from": {
			desired: configuration(), mark: asks,
			want: map[schema.Address]Refusal{
				a:         {Verb: VerbDelete, By: ByState, Detail: "prevent_destroy = false"},
				pool.Addr: {Verb: VerbDelete, By: ByState, Detail: "destroy = false"},
			},
		},
		"not declared any more": {
			desired: withPools(configuration(newJob("drawer", from("p"))), pool),
			want:    map[schema.Address]Refusal{a: {Verb: VerbDelete, By: ByState, Detail: "fray state rm job.a"}},
		},
		"a reservation of another shape": {
			desired: withPools(configuration(newJob("a", protected), newJob("drawer", from("p"))), reshaped),
			want:    map[schema.Address]Refusal{pool.Addr: {Verb: VerbReplace, By: ByFiles, Detail: "min.tpu"}},
		},
		"everything destroyed": {
			want: map[schema.Address]Refusal{a: {Verb: VerbDelete, By: ByState}, pool.Addr: {Verb: VerbDelete, By: ByState}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, start)
			protectedSlices := map[string]*simSlice{w.sliceOf(a, 0): nil}
			for slice, s := range w.slices {
				if _, mine := protectedSlices[slice]; mine || s.spec.Owner == pool.Addr {
					protectedSlices[slice] = s
				}
			}
			w.acceptWith(c.desired, func(doc *state.Document) {
				if c.mark != nil {
					j := *doc.Jobs[a]
					c.mark(&j)
					doc.Jobs[a] = &j
				}
			})
			p := w.step(time.Second)
			if len(p.Refusals) != len(c.want) {
				t.Fatalf("got %+v, want %+v", p.Refusals, c.want)
			}
			for _, r := range p.Refusals {
				want := c.want[r.Addr]
				if r.Verb != want.Verb || r.By != want.By || !strings.Contains(r.Detail, want.Detail) {
					t.Errorf("got %+v, want %+v", r, want)
				}
				if shown := changeOn(p, r.Addr); shown.Verb != r.Verb || len(shown.Attrs) == 0 {
					t.Errorf("%s: the plan shows %+v, want what is refused", r.Addr, shown)
				}
			}
			w.run(time.Minute)
			w.wantJob(a, schema.JobRunning, 1, 0, 0)
			for slice, s := range protectedSlices {
				if w.slices[slice] != s {
					t.Errorf("slice %s was destroyed", slice)
				}
			}
			if _, left := w.doc.Jobs[jobAddr("other")]; left != slices.ContainsFunc(c.desired.Jobs, func(j schema.Job) bool { return j.Addr == jobAddr("other") }) {
				t.Errorf("job.other is left: %t; what is not protected is not as asked for", left)
			}
		})
	}
}

// What is protected is looked after like anything else, also when the files say
// nothing of it any more: a lost slice is made again.
func TestProtectedRecovers(t *testing.T) {
	for name, desired := range map[string]schema.Desired{
		"declared":   configuration(newJob("a", protected, onTPU("v5litepod-4"))),
		"undeclared": configuration(),
		"reshaped":   configuration(newJob("a", protected, onTPU("v5litepod-8"))),
	} {
		t.Run(name, func(t *testing.T) {
			a := jobAddr("a")
			w := up(t, configuration(newJob("a", protected, onTPU("v5litepod-4"))))
			w.accept(desired)
			w.preempt(w.sliceOf(a, 0))
			w.run(time.Minute)
			w.wantJob(a, schema.JobRunning, 2, 0, 1)
			if got := w.slices[w.sliceOf(a, 0)].spec.TPU; got != "v5litepod-4" {
				t.Errorf("its slice is %s, want v5litepod-4", got)
			}
		})
	}
}

// Members of a group go on in it when only they are protected.
func TestProtectedMemberKeepsItsGroup(t *testing.T) {
	kept := memberAddr("g", "kept")
	w := up(t, configuration(newJob("kept", inGroup("g"), protected), newJob("gone", inGroup("g"))))
	w.accept(schema.Desired{})
	w.run(time.Minute)
	w.wantJob(kept, schema.JobRunning, 1, 0, 0)
	if _, there := w.doc.Resources[kept.GroupAddress()]; !there || len(w.doc.Jobs) != 1 {
		t.Errorf("the group is there: %t; jobs: %d; want true and one", there, len(w.doc.Jobs))
	}
}

// TestProtectedMayChange: what destroys nothing is not refused.
func TestProtectedMayChange(t *testing.T) {
	a := jobAddr("a")
	pool := newPool("p", "", 3)
	pool.Lifecycle.PreventDestroy = true
	smaller := newPool("p", "", 1)
	smaller.Lifecycle.PreventDestroy = true
	for name, c := range map[string]struct {
		desired schema.Desired
		gone    bool
	}{
		"a restart":                    {withPools(configuration(newJob("a", protected, withEnv("A", "b"))), pool), false},
		"a smaller reservation":        {withPools(configuration(newJob("a", protected)), smaller), false},
		"replaced, as the files allow": {withPools(configuration(newJob("a", onTPU("v5litepod-4"))), pool), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t, withPools(configuration(newJob("a", protected)), pool))
			w.accept(c.desired)
			if p := w.step(time.Second); len(p.Refusals) > 0 {
				t.Errorf("refused: %+v", p.Refusals)
			}
			w.settle(time.Minute)
			if n := c.desired.Reservations[0].Min.Slices; len(w.doc.Slices) != n+1 {
				t.Errorf("%d slices are there, want %d of the pool and one", len(w.doc.Slices), n)
			}
			if j := w.job(a); !equalJobs(j.Spec, &c.desired.Jobs[0]) || !j.Ready {
				t.Errorf("the job is not as declared: %+v", j.Spec)
			}
		})
	}
	w := up(t, withPools(configuration(newJob("a", protected)), pool))
	w.accept(withPools(configuration(newJob("a")), newPool("p", "", 3)))
	w.step(time.Second)
	w.accept(schema.Desired{})
	w.settle(time.Minute)
	if len(w.doc.Jobs)+len(w.doc.Resources) > 0 {
		t.Errorf("left: %v, %v", w.doc.Jobs, w.doc.Resources)
	}
}

// What was never given anything may change as it likes.
func TestProtectedBeforeItIsThere(t *testing.T) {
	a := jobAddr("a")
	w := newWorld(t)
	w.capacity = 1 // the foreign slice's
	w.accept(configuration(newJob("a", protected, onTPU("v5litepod-16"))))
	w.run(5 * time.Second)
	w.accept(configuration(newJob("a", protected)))
	if p := w.step(time.Second); len(p.Refusals) > 0 {
		t.Errorf("refused: %+v", p.Refusals)
	}
	w.capacity = 0
	w.settle(10 * time.Minute)
	w.wantJob(a, schema.JobRunning, 1, 0, 0)
}

// A state that was lost and a job that is found running: it is protected as declared.
func TestProtectedIsFoundRunning(t *testing.T) {
	a := jobAddr("a")
	w := up(t, configuration(newJob("a", protected)))
	slice := w.slices[w.sliceOf(a, 0)]
	w.doc = &state.Document{FormatVersion: state.FormatVersion, Lineage: testLineage}
	w.accept(configuration(newJob("a", protected, onTPU("v5litepod-8"))))
	w.run(30 * time.Second)
	w.wantJob(a, schema.JobRunning, 1, 0, 0)
	if w.slices[slice.spec.Name] != slice || len(w.last.Refusals) != 1 {
		t.Errorf("the slice is the same: %t, refusals: %+v", w.slices[slice.spec.Name] == slice, w.last.Refusals)
	}
}

// An attempt of another shape that is found, of a protected job which was passed
// over, is kept.
func TestPlannerKeepsWhatItFinds(t *testing.T) {
	a, b := jobAddr("a"), jobAddr("b")
	w := newWorld(t)
	w.accept(configuration(newJob("a"), newJob("b", after(a), protected)))
	w.run(10 * time.Second)
	waiting := w.job(b)
	if len(waiting.Slices) > 0 || w.planner.last != w.doc {
		t.Fatalf("b holds %v", waiting.Slices)
	}
	spec := *waiting.Spec
	onTPU("v5litepod-4")(&spec)
	w.assignments["elsewhere"] = Assigned{Assignment: store.Assignment{
		Slice: "elsewhere", Generation: 1,
		Run: &store.Run{Job: b, JobID: waiting.ID, Attempt: 1, Spec: spec, Digest: "v1:other", Peers: []store.Peer{{Slice: "elsewhere"}}},
	}, Object: 1}
	if p := w.step(time.Second); len(p.Refusals) != 1 {
		t.Errorf("refusals: %+v, want one of b", p.Refusals)
	}
}

// A Planner looks at everything as long as something is refused, and passes over
// what is quiet as before when nothing is.
func TestPlannerWithProtectedJobs(t *testing.T) {
	w := newWorld(t)
	w.accept(configuration(newJob("a", protected), newJob("b", after(jobAddr("a")))))
	w.step(time.Second)
	w.step(time.Second)
	if w.planner.last != w.doc {
		t.Error("everything is looked at although nothing is refused")
	}
	w.run(10 * time.Second)
	w.accept(configuration(newJob("a", protected, onTPU("v5litepod-8")), newJob("b", after(jobAddr("a")))))
	w.step(time.Second)
	w.step(time.Second)
	if w.planner.last != nil {
		t.Error("something is passed over although something is refused")
	}
}
