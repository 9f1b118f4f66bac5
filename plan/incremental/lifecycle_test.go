package incremental

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
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
func changeOn(p *plan.Plan, addr schema.Address) plan.Change {
	for _, c := range p.Changes {
		if c.Addr == addr {
			return c
		}
	}
	return plan.Change{}
}

// Another lifecycle touches nothing and is remembered at once.
func TestLifecycleTakesEffectWithoutAChange(t *testing.T) {
	a := jobAddr("a")
	pool := newPool("p", "", 1)
	w := up(t, withPools(configuration(newJob("a")), pool))
	want := schema.Lifecycle{PreventDestroy: true, CreateBeforeDestroy: true, Ignore: []string{"command"}, Trigger: "t"}
	pool.Lifecycle = want
	w.accept(withPools(configuration(newJob("a", under(want))), pool))
	if change.Remembers(w.doc) {
		t.Error("what was only accepted counts as remembered")
	}
	if p := w.step(time.Second); !p.Empty() || p.Next == w.saved {
		t.Errorf("got changes %v, actions %v, a new state %t; want none, none, true", p.Changes, p.Actions, p.Next != w.saved)
	}
	w.wantJob(a, schema.JobRunning, 1, 0, 0)
	if got := w.job(a).Spec.Lifecycle; !change.EqualLifecycles(&got, &want) || !change.Remembers(w.doc) {
		t.Errorf("the state remembers %+v, want %+v", got, want)
	}
	if got := w.doc.Resources[pool.Addr].Reservation.Lifecycle; !change.EqualLifecycles(&got, &want) {
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
	if len(p.Blocked) != 2 {
		t.Errorf("got blocked changes %+v, want one of the job and one of the reservation", p.Blocked)
	}
}

func TestTriggerReplaces(t *testing.T) {
	for name, c := range map[string]struct {
		was, is string
		want    plan.Verb
		kept    string
	}{
		"another one":   {"a", "b", plan.VerbReplace, "b"},
		"the same":      {"a", "a", plan.VerbNone, "a"},
		"a new one":     {"", "b", plan.VerbNone, "b"},
		"not known yet": {"a", "", plan.VerbNone, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			a := jobAddr("a")
			w := up(t, configuration(newJob("a", triggeredBy(c.was))))
			w.accept(configuration(newJob("a", triggeredBy(c.is))))
			got := changeOn(w.step(time.Second), a)
			if got.Verb != c.want || (got.Reason == change.ReplaceTriggeredBy) != (c.want == plan.VerbReplace) {
				t.Errorf("got %s (%s), want %s", got.Verb, got.Reason, c.want)
			}
			w.settle(time.Minute)
			attempts := map[plan.Verb]int{plan.VerbReplace: 2, plan.VerbNone: 1}[c.want]
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

// TestTriggeredByDeclarations: a change of what is named replaces, once, also where it is
// accepted long before it is seen.
func TestTriggeredByDeclarations(t *testing.T) {
	data, pool := jobAddr("data"), newPool("p", "", 1)
	inst := func(n int, options ...jobOption) schema.Job { return newJob("data", append(options, instance(n))...) }
	larger := newPool("p", "", 2)
	unknown := func(j *schema.Job) { j.Environment.Env = map[string]schema.Text{"A": schema.UnknownText()} }
	for name, c := range map[string]struct {
		by      []jobOption
		was, is []schema.Job
		pool    schema.Reservation
		want    plan.Verb
	}{
		"a change":                  {[]jobOption{onChangeOf(data, "")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", withEnv("A", "b"))}, pool, plan.VerbReplace},
		"an update":                 {[]jobOption{onChangeOf(data, "")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", withPriority("", 3))}, pool, plan.VerbReplace},
		"no change":                 {[]jobOption{onChangeOf(data, "")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data")}, pool, plan.VerbNone},
		"a lifecycle":               {[]jobOption{onChangeOf(data, "")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", protected)}, pool, plan.VerbNone},
		"of an instance":            {[]jobOption{onChangeOf(data, "")}, []schema.Job{inst(0), inst(1)}, []schema.Job{inst(0), inst(1, withEnv("A", "b"))}, pool, plan.VerbReplace},
		"of another instance":       {[]jobOption{onChangeOf(inst(0).Addr, "")}, []schema.Job{inst(0), inst(1)}, []schema.Job{inst(0), inst(1, withEnv("A", "b"))}, pool, plan.VerbNone},
		"an instance more":          {[]jobOption{onChangeOf(data, "")}, []schema.Job{inst(0)}, []schema.Job{inst(0), inst(1)}, pool, plan.VerbNone},
		"an instance less":          {[]jobOption{onChangeOf(data, "")}, []schema.Job{inst(0), inst(1)}, []schema.Job{inst(0)}, pool, plan.VerbNone},
		"an attribute":              {[]jobOption{onChangeOf(data, "environment.env")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", withEnv("A", "b"))}, pool, plan.VerbReplace},
		"another attribute":         {[]jobOption{onChangeOf(data, "command")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", withEnv("A", "b"))}, pool, plan.VerbNone},
		"what it ignores":           {[]jobOption{onChangeOf(data, "")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", withEnv("A", "b"), ignoringPaths("environment"))}, pool, plan.VerbNone},
		"a value that is not known": {[]jobOption{onChangeOf(data, "")}, []schema.Job{newJob("data")}, []schema.Job{newJob("data", unknown)}, pool, plan.VerbNone},
		"a reservation":             {[]jobOption{onChangeOf(pool.Addr, "min.slices")}, nil, nil, larger, plan.VerbReplace},
		"itself":                    {[]jobOption{onChangeOf(jobAddr("a"), "")}, nil, nil, pool, plan.VerbNone},
	} {
		t.Run(name, func(t *testing.T) {
			a := newJob("a", c.by...)
			w := up(t, withPools(configuration(append(c.was, a)...), pool))
			w.accept(withPools(configuration(append(c.is, a)...), c.pool))
			w.accept(withPools(configuration(append(c.is, a)...), c.pool)) // again, before anything was done
			got := changeOn(w.step(time.Second), a.Addr)
			if got.Verb != c.want || (got.Reason == change.ReplaceTriggeredBy) != (c.want == plan.VerbReplace) {
				t.Errorf("got %s (%s), want %s", got.Verb, got.Reason, c.want)
			}
			w.run(time.Minute)
			w.wantJob(a.Addr, schema.JobRunning, map[plan.Verb]int{plan.VerbReplace: 2, plan.VerbNone: 1}[c.want], 0, 0)
			if !change.Remembers(w.doc) {
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

// What is still to be replaced is given nothing, although its spec reads the same.
func TestTriggeredIsNotPlaced(t *testing.T) {
	a := newJob("a", triggeredBy("b"))
	for trigger, want := range map[string]bool{"a": false, "b": true} {
		spec := newJob("a", triggeredBy(trigger))
		doc := &state.Document{Lineage: testLineage, Jobs: map[schema.Address]*state.Job{a.Addr: {Spec: &spec, Attempt: 1}}}
		d := lifecycle.Begin(snapshot.Take(snapshot.Input{Desired: &schema.Desired{Jobs: []schema.Job{a}}, Doc: doc, Obs: &plan.Observed{}}))
		d.Verbs[a.Addr] = plan.VerbReplace
		if got := d.Placeable(&a); got != want {
			t.Errorf("carried out under trigger %q: placeable %t, want %t", trigger, got, want)
		}
	}
}

// What has not run has seen nothing of what triggers it.
func TestTriggerOfWhatHasNotRun(t *testing.T) {
	a := jobAddr("a")
	w := newWorld(t)
	w.capacity = 1 // the foreign slice's
	w.accept(configuration(newJob("a", triggeredBy("a"))))
	w.run(5 * time.Second)
	w.accept(configuration(newJob("a", triggeredBy("b"))))
	if got := changeOn(w.step(time.Second), a); got.Verb != plan.VerbNone {
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
		"restart": {withEnv("A", "b"), change.ReplaceTriggeredBy},
		"replace": {onTPU("v5litepod-4"), ""},
	} {
		w := up(t, configuration(newJob("a", triggeredBy("a"))))
		w.accept(configuration(newJob("a", triggeredBy("b"), c.change)))
		if got := changeOn(w.step(time.Second), jobAddr("a")); got.Verb != plan.VerbReplace || got.Reason != c.reason || len(got.Attrs) == 0 {
			t.Errorf("%s: got %s (%s), want replace (%s)", name, got.Verb, got.Reason, c.reason)
		}
	}
}
