package incremental

import (
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// keeping declares a namespace that keeps idle slices for a time.
func keeping(desired schema.Desired, timeout time.Duration) schema.Desired {
	desired.Namespaces = []schema.Namespace{{
		Addr: schema.Address{Kind: schema.KindNamespace, Name: "default"}, IdleTimeout: schema.Duration(timeout),
	}}
	return desired
}

// idling is a world in which a job has ended and its slices idle.
func idling(t *testing.T, options ...jobOption) *world {
	t.Helper()
	w := newWorld(t)
	w.exits(jobAddr("a"), program{runs: 5 * time.Second})
	w.accept(keeping(configuration(newJob("a", options...)), 3*time.Minute))
	w.settle(time.Minute)
	w.wantJob(jobAddr("a"), schema.JobSucceeded, 1, 0, 0)
	return w
}

// own are the slices of the stack that are there.
func (w *world) own() []string {
	var names []string
	for name, s := range w.slices {
		if s.spec.Stack == w.doc.Stack() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestNextJobStartsOnIdleSlices(t *testing.T) {
	for name, options := range map[string][]jobOption{
		"one host":  nil,
		"TPU slice": {onTPU("v5litepod-16")},
		"gang":      {onTPU("v5litepod-16"), onSlices(2)},
	} {
		t.Run(name, func(t *testing.T) {
			w := idling(t, options...)
			warm := w.own()
			if len(warm) == 0 {
				t.Fatalf("nothing is kept\n%s", w.describe())
			}
			w.createTakes, w.bootTakes = time.Hour, time.Hour
			jobs := []schema.Job{newJob("a", options...), newJob("b", options...)}
			w.accept(keeping(configuration(jobs...), 3*time.Minute))
			w.until(10*time.Second, "running", func(*plan.Plan) bool { return w.doc.Jobs[jobAddr("b")] != nil && w.job(jobAddr("b")).Ready })
			if got := slices.Sorted(slices.Values(w.job(jobAddr("b")).Slices)); !slices.Equal(got, warm) {
				t.Errorf("b runs on %v, want %v", got, warm)
			}
			for _, slice := range warm {
				if s := w.doc.Slices[slice]; s.Spec.Owner != jobAddr("b") || !s.IdleSince.IsZero() {
					t.Errorf("slice %s is %+v", slice, s)
				}
			}
			// The first one, when it runs again, takes other names.
			w.createTakes, w.bootTakes = time.Second, time.Second
			w.mark(jobAddr("a"), func(j *state.Job) { j.Replace = true })
			w.settle(time.Minute)
			w.wantJob(jobAddr("a"), schema.JobSucceeded, 2, 0, 0)
			w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
			// When all is removed nothing is left.
			w.accept(schema.Desired{})
			w.settle(time.Minute)
			w.empty()
		})
	}
}

func TestSemantics35PlanStaysEmptyWhileSlicesIdle(t *testing.T) {
	w := idling(t)
	check := func(when string) {
		t.Helper()
		if p := reconcile.Diff(&w.doc.Desired, w.doc, w.observe(), w.now); !p.Empty() || len(p.Pending) > 0 || p.Next != w.doc {
			t.Fatalf("%s: changes %+v, drift %+v, actions %+v, pending %+v", when, p.Counts(), p.Drift, p.Actions, p.Pending)
		}
	}
	check("while they idle")
	w.pass(4 * time.Minute)
	if left := w.own(); len(left) > 0 {
		t.Fatalf("%v are left\n%s", left, w.describe())
	}
	check("when they are gone")
}

// What idles is not taken for what it is not.
func TestIdleSlicesThatDoNotDo(t *testing.T) {
	elsewhere := func(j *schema.Job) { j.Namespace = "other" }
	larger := func(j *schema.Job) { j.Resources.CPU = 2 }
	spot := func(j *schema.Job) { j.Resources.Preemptible = true }
	for name, c := range map[string]struct {
		option jobOption
		before func(*world)
	}{
		"another namespace":     {elsewhere, func(*world) {}},
		"another shape":         {larger, func(*world) {}},
		"another tier":          {spot, func(*world) {}},
		"a dead slice":          {func(*schema.Job) {}, func(w *world) { w.preempt(w.own()[0]) }},
		"a slice that has gone": {func(*schema.Job) {}, func(w *world) { w.vanish(w.own()[0]) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := idling(t)
			warm := w.own()
			c.before(w)
			w.accept(keeping(configuration(newJob("a"), newJob("b", c.option)), 3*time.Minute))
			w.run(30 * time.Second)
			w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
			if got := w.sliceOf(jobAddr("b"), 0); slices.Contains(warm, got) {
				t.Errorf("b runs on %s", got)
			}
		})
	}
}

func TestIdleSlicesGoWithTheirJob(t *testing.T) {
	w := idling(t)
	w.accept(keeping(configuration(), 3*time.Minute))
	p := w.step(500 * time.Millisecond)
	if len(p.Drift) > 0 {
		t.Errorf("shown as drift: %+v", p.Drift)
	}
	w.settle(time.Minute)
	if left := w.own(); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

func TestReplacingGetsNewSlices(t *testing.T) {
	w := idling(t)
	made := w.slices[w.own()[0]]
	w.exits(jobAddr("a"), program{runs: time.Second})
	w.mark(jobAddr("a"), func(j *state.Job) { j.Replace = true })
	w.settle(2 * time.Minute)
	w.wantJob(jobAddr("a"), schema.JobSucceeded, 2, 0, 0)
	if w.slices[w.own()[0]] == made {
		t.Error("it was replaced on the slice that it had")
	}
}

func TestReplacingARunningJobGetsNewSlices(t *testing.T) {
	w := up(t, keeping(configuration(newJob("a")), time.Hour))
	made := w.slices[w.own()[0]]
	w.mark(jobAddr("a"), func(j *state.Job) { j.Replace = true })
	w.settle(time.Minute)
	w.wantJob(jobAddr("a"), schema.JobRunning, 2, 0, 0)
	if w.slices[w.own()[0]] == made {
		t.Error("it was replaced on the slice that it had")
	}
}

// Idle slices never keep others waiting: where a limit is too small they go.
func TestIdleSlicesMakeRoom(t *testing.T) {
	w := idling(t)
	w.accept(limited(keeping(configuration(newJob("a"), newJob("b", onTPU("v5litepod-4"))), 3*time.Minute), 1))
	w.settle(time.Minute)
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
	if got := w.own(); len(got) != 1 {
		t.Errorf("%v are there, want b's only", got)
	}
}

func TestIdleSlicesMakeRoomInAQuota(t *testing.T) {
	w := newCloud(t, nil)
	w.exits(jobAddr("a"), program{runs: 5 * time.Second})
	w.accept(zoned(keeping(configuration(newJob("a", inCloud)), time.Hour), west))
	w.settle(time.Minute)
	w.quota = len(w.slices)
	w.accept(zoned(keeping(configuration(newJob("a", inCloud), newJob("b", inCloud, onTPU("v5litepod-4"))), time.Hour), west))
	w.pass(15 * time.Minute)
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
}

// An idle slice in a zone does where that zone does, whether or not new ones can be had there.
func TestIdleSlicesInZones(t *testing.T) {
	w := newCloud(t, nil)
	w.exits(jobAddr("a"), program{runs: 5 * time.Second})
	w.accept(zoned(keeping(configuration(newJob("a", inCloud)), time.Hour), west, central))
	w.settle(time.Minute)
	warm := w.own()
	w.shut = map[string]error{west: errStockout, central: errStockout}
	inCentral := func(j *schema.Job) { j.Resources.Zones = []string{central} }
	w.accept(zoned(keeping(configuration(newJob("a", inCloud), newJob("b", inCloud, inCentral), newJob("c", inCloud)), time.Hour), west, central))
	w.run(20 * time.Second)
	w.wantJob(jobAddr("c"), schema.JobRunning, 1, 0, 0)
	w.wantJob(jobAddr("b"), schema.JobPending, 0, 0, 0)
	if got := w.job(jobAddr("c")).Slices; !slices.Equal(got, warm) {
		t.Errorf("c runs on %v, want %v", got, warm)
	}
}

// Jobs that share a zone find idle slices in one zone, or none.
func TestIdleSlicesForAGroup(t *testing.T) {
	first, second := memberAddr("g", "a"), memberAddr("g", "b")
	w := newCloud(t, nil)
	w.exits(first, program{runs: 5 * time.Second})
	w.exits(second, program{runs: 5 * time.Second})
	group := func(name string) []schema.Job {
		return []schema.Job{newJob("a", inGroup(name), inCloud), newJob("b", inGroup(name), inCloud)}
	}
	w.accept(together(zoned(keeping(configuration(group("g")...), time.Hour), west, central), sameZone))
	w.settle(time.Minute)
	warm := w.own()
	w.shut = map[string]error{west: errStockout, central: errStockout}
	w.accept(together(zoned(keeping(configuration(append(group("g"), group("h")...)...), time.Hour), west, central), sameZone))
	w.run(20 * time.Second)
	w.wantJob(memberAddr("h", "a"), schema.JobRunning, 1, 0, 0)
	w.wantJob(memberAddr("h", "b"), schema.JobRunning, 1, 0, 0)
	if got := w.own(); !slices.Equal(got, warm) {
		t.Errorf("slices %v, want %v only", got, warm)
	}
}

func TestSemantics21IdleSliceIsEmptyBeforeTheNextJob(t *testing.T) {
	w := newWorld(t)
	w.stopTakes = 20 * time.Second
	w.accept(keeping(configuration(newJob("a"), newJob("b", after(jobAddr("absent")))), time.Hour))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.doc.Jobs[jobAddr("a")].Ready })
	w.mark(jobAddr("a"), func(j *state.Job) { j.Stop = true })
	w.accept(keeping(configuration(newJob("a"), newJob("b")), time.Hour))
	w.settle(2 * time.Minute) // the oracle sees to the rest
	w.wantJob(jobAddr("a"), schema.JobStopped, 1, 0, 0)
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
}

// A job of which an attempt is found on a slice that idles by the state takes that over.
func TestSemantics36AttemptOnAnIdleSliceIsFound(t *testing.T) {
	w := idling(t)
	warm := w.own()
	w.accept(keeping(configuration(newJob("a"), newJob("b")), 3*time.Minute))
	saved := w.doc
	w.until(time.Minute, "assigned", func(*plan.Plan) bool { return w.doc.Jobs[jobAddr("b")] != nil && w.job(jobAddr("b")).Attempt == 1 })
	w.doc = saved
	w.crash()
	w.doc, w.saved, w.written = saved, saved.Clone(), saved
	w.settle(time.Minute)
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
	if got := w.job(jobAddr("b")).Slices; !slices.Equal(got, warm) {
		t.Errorf("b runs on %v, want %v", got, warm)
	}
}

// Without a record a slice that no job holds is unwanted.
func TestIdleSliceWithoutRecordGoes(t *testing.T) {
	w := idling(t)
	doc := w.doc.Clone()
	clear(doc.Slices)
	w.doc = doc
	w.settle(time.Minute)
	if left := w.own(); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
}

// So does a controller that could not list any slice at first, and then planned a slice
// of its own for the job.
func TestSemantics36AttemptOnAnIdleSliceIsFoundLater(t *testing.T) {
	w := idling(t)
	warm := w.own()
	w.accept(keeping(configuration(newJob("a"), newJob("b")), 3*time.Minute))
	saved := w.doc
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.doc.Jobs[jobAddr("b")] != nil && w.job(jobAddr("b")).Ready })
	w.crash()
	w.doc, w.saved, w.written = saved, saved.Clone(), saved
	w.unreachable = true
	w.run(3 * time.Second)
	w.unreachable = false
	w.settle(time.Minute)
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
	if got := w.job(jobAddr("b")).Slices; !slices.Equal(got, warm) {
		t.Errorf("b runs on %v, want %v", got, warm)
	}
	if s := w.doc.Slices[warm[0]]; s.Spec.Owner != jobAddr("b") || !s.IdleSince.IsZero() {
		t.Errorf("slice %s is %+v", warm[0], s)
	}
}
