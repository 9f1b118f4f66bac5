package incremental

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A zone whose machines never come up fails like one that has none.
func TestHostsThatNeverComeUpCountAgainstTheZone(t *testing.T) {
	w := newCloud(t, nil)
	a := jobAddr("a")
	w.bootTakes = 100 * time.Hour
	w.accept(zoned(configuration(newJob("a", inCloud)), west, central))
	w.step(time.Second)
	w.wantZone(a, west)
	w.until(plan.BootTimeout+time.Minute, "given up", func(*plan.Plan) bool {
		s := w.doc.Slices[w.sliceOf(a, 0)]
		return !s.Terminating.IsZero()
	})
	w.bootTakes = time.Second
	w.settle(5 * time.Minute)
	w.wantZone(a, central)
}

// The backstops that practice has.
func TestHostsHaveTheirTimeToComeUp(t *testing.T) {
	for name, c := range map[string]struct {
		hosts        int
		provider     schema.ProviderName
		provisioning schema.Provisioning
		boots, waits time.Duration // 0: as long as it is valid
	}{
		"one host":     {1, schema.ProviderGCP, "", time.Hour, time.Hour},
		"63 hosts":     {63, schema.ProviderGCP, "", time.Hour, time.Hour},
		"64 hosts":     {64, schema.ProviderGCP, "", 2 * time.Hour, 2 * time.Hour},
		"256 hosts":    {256, schema.ProviderGCP, "", 3 * time.Hour, 3 * time.Hour},
		"reserved":     {4, schema.ProviderGCP, schema.ProvisioningReserved, 2 * time.Hour, 4 * time.Hour},
		"all reserved": {256, schema.ProviderGCP, schema.ProvisioningReserved, 3 * time.Hour, 4 * time.Hour},
		"queued":       {4, schema.ProviderGCP, schema.ProvisioningQueued, time.Hour, 0},
		"local":        {4, schema.ProviderLocal, "", 5 * time.Minute, 5 * time.Minute},
		"many local":   {256, schema.ProviderLocal, "", 5 * time.Minute, 5 * time.Minute},
		"flex-start":   {4, schema.ProviderGCP, schema.ProvisioningFlexStart, time.Hour, 0},
	} {
		spec := schema.SliceSpec{Hosts: c.hosts, Provider: c.provider, Cloud: schema.CloudSpec{Provisioning: c.provisioning}}
		if boots, waits := plan.BootBudget(&spec), plan.QueueBudget(&spec); boots != c.boots || waits != c.waits {
			t.Errorf("%s: hosts have %s after %s in the queue, want %s after %s", name, boots, waits, c.boots, c.waits)
		}
	}
}

// What is refused is not asked for again at once, even where its place stays open.
func TestRefusedAtAnOpenPlace(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	spec := schema.SliceSpec{Name: "one", Zone: west, TPU: "v5litepod-16", Preemptible: true}
	doc := &state.Document{
		Slices:     map[string]*state.Slice{"one": {Spec: spec, PendingSince: now}},
		ZoneHealth: map[string]state.ZoneHealth{plan.StockPlace(&spec): {Kind: schema.ErrorPreempted, Failures: 1, At: now, Until: now, Succeeded: true}},
	}
	now = now.Add(time.Second)
	next := capacity.Folded(doc, plan.Action{Verb: plan.CreateSlice, Slice: &spec}, &capacity.Failure{Kind: schema.ErrorCapacity, Text: "stockout"}, now)
	if at := next.Slices["one"].RetryAt; !at.After(now) {
		t.Errorf("it is tried again %s after it was refused", at.Sub(now))
	}
}

// newTiedGroup is a world where jobs a and b of a group, tied to one zone, have run in
// west for long. Of a's kind there is no more there.
func newTiedGroup(t *testing.T) (w *world, a, b schema.Address) {
	t.Helper()
	w = newCloud(t, nil)
	w.accept(together(zoned(configuration(
		newJob("a", inGroup("g"), inCloud), newJob("b", inGroup("g"), inCloud, onTPU("v5litepod-4")),
	), west, central), sameZone))
	w.settle(time.Minute)
	w.pass(capacity.EarlyLoss)
	w.refuses = stockoutIn(west)
	return w, memberAddr("g", "a"), memberAddr("g", "b")
}

func (w *world) wantTogether(a, b schema.Address) {
	w.t.Helper()
	if x, y := w.zoneOf(a), w.zoneOf(b); x != y {
		w.t.Fatalf("%s is in %s and %s in %s, want both in one", a, x, b, y)
	}
}

// A job of a group waits for its dead slice to go, and will be where that was: the
// others do not move away from it alone.
func TestGroupStaysTogetherWhileADeadSliceGoes(t *testing.T) {
	w, first, second := newTiedGroup(t)
	slow := w.sliceOf(second, 0)
	w.preempt(w.sliceOf(first, 0))
	w.preempt(slow)
	w.step(time.Second)
	w.until(time.Minute, "being deleted", func(*plan.Plan) bool {
		s := w.slices[slow]
		return s != nil && s.phase == schema.SliceDeleting
	})
	w.slices[slow].changesAt = w.now.Add(time.Minute)
	w.settle(time.Hour)
	w.wantTogether(first, second)
}

// A group has more slices than may try at a time a place that failed. Some of them try it,
// and the group stays until these are up: it does not leave for another place, to come
// back once none of its slices tries.
func TestGroupStaysWhileItsSlicesTryAPlace(t *testing.T) {
	w := newCloud(t, map[string]error{west: errStockout})
	w.accept(zoned(configuration(newJob("first", inZones(west))), west, central))
	w.run(time.Second)
	w.shut = nil
	w.accept(zoned(configuration(), west, central))
	w.pass(5 * time.Minute)
	w.createTakes = time.Minute
	deleted := 0
	w.loses = func(a plan.Action) bool {
		if a.Verb == plan.DeleteSlice {
			deleted++
		}
		return false
	}
	group := configuration(newJob("a", inGroup("g"), inZones(west, central), onSlices(capacity.ProbeLimit+2)))
	w.accept(together(zoned(group, west, central), sameRegion))
	w.settle(10 * time.Minute)
	w.wantZone(memberAddr("g", "a"), west)
	if deleted > 0 {
		t.Errorf("%d slices were deleted on the way, want none", deleted)
	}
}

// What has begun to move is not kept from it by a slice that dies on the way.
func TestGroupMovesThoughASliceDies(t *testing.T) {
	w, first, second := newTiedGroup(t)
	w.preempt(w.sliceOf(first, 0))
	other := w.sliceOf(second, 0)
	w.until(time.Hour, "b is being stopped", func(*plan.Plan) bool {
		last := w.job(second).Last()
		return last.StopGeneration != 0
	})
	w.preempt(other)
	w.refuses = func(spec schema.SliceSpec) error { // and then a little of a's kind is to be had
		if spec.Zone == west && spec.TPU == "v5litepod-16" && len(w.slices) > 0 {
			return errStockout
		}
		return nil
	}
	w.settle(time.Hour)
	w.wantTogether(first, second)
}

// A slice that does not go away keeps no group from moving on without it.
func TestGroupMovesOnFromASliceThatDoesNotGoAway(t *testing.T) {
	first, second := memberAddr("g", "a"), memberAddr("g", "b")
	w := newCloud(t, nil)
	w.accept(together(zoned(configuration(newJob("a", inGroup("g"), inCloud), newJob("b", inGroup("g"), inCloud)), west, central), sameZone))
	w.settle(time.Minute)
	w.pass(capacity.EarlyLoss)
	stuck := w.sliceOf(second, 0)
	w.shut = map[string]error{west: errStockout}
	w.preempt(w.sliceOf(first, 0))
	w.until(time.Hour, "moving", func(*plan.Plan) bool {
		s := w.slices[stuck]
		return s != nil && s.phase == schema.SliceDeleting
	})
	w.slices[stuck].changesAt = w.now.Add(2 * time.Hour)
	w.until(15*time.Minute, "running elsewhere", func(p *plan.Plan) bool {
		for _, addr := range []schema.Address{first, second} {
			if _, waits := place(p.Pending, addr); !waits && !w.job(addr).Running() {
				t.Fatalf("%s waits without a reason\n%s", addr, w.describe())
			}
		}
		return w.job(first).Ready && w.job(second).Ready && w.zoneOf(first) == central && w.zoneOf(second) == central
	})
	if w.slices[stuck] == nil || w.doc.Slices[stuck] == nil {
		t.Error("the slice that does not go away was forgotten")
	}
	w.run(2 * time.Hour)
	if w.slices[stuck] != nil || w.doc.Slices[stuck] != nil {
		t.Error("the slice is still there")
	}
}

// A zone that cannot be listed is no place for what is not there yet.
func TestUnlistedZoneIsAvoided(t *testing.T) {
	pool := newPool("p", "v5litepod-16", 1)
	pool.Provider, pool.Preemptible = schema.ProviderGCP, true
	a, b := jobAddr("a"), jobAddr("b")
	w := newCloud(t, map[string]error{west: errStockout, central: errStockout})
	w.accept(zoned(configuration(newJob("a", inCloud)), west, central))
	w.until(time.Minute, "refused in both zones", func(*plan.Plan) bool { return len(w.doc.ZoneHealth) == 2 })
	w.unlisted, w.shut = map[string]string{west: "unreachable"}, map[string]error{west: errStockout}
	desired := configuration(newJob("a", inCloud), newJob("b", inCloud))
	desired.Reservations = []schema.Reservation{pool}
	w.accept(zoned(desired, west, central))
	w.settle(15 * time.Minute)
	w.wantZone(a, central)
	w.wantZone(b, central)
	for name, s := range w.slices {
		if s.spec.Owner == pool.Addr && s.spec.Zone != central {
			t.Errorf("slice %s of the pool is in %s, want it in %s", name, s.spec.Zone, central)
		}
	}
}

// Where it is the only one, it is waited for.
func TestUnlistedZoneIsWaitedFor(t *testing.T) {
	w := newCloud(t, nil)
	a := jobAddr("a")
	w.unlisted = map[string]string{west: "unreachable"}
	w.accept(zoned(configuration(newJob("a", inCloud)), west))
	p := w.step(time.Second)
	if len(p.Pending) != 1 || p.Pending[0].Reasons[0] != "what is in us-west4-a could not be listed: unreachable" {
		t.Errorf("got %+v, want that its zone could not be listed", p.Pending)
	}
	w.unlisted = nil
	w.settle(time.Minute)
	w.wantZone(a, west)
}

// What was accepted and does not come is looked for elsewhere in the end.
func TestSliceThatDoesNotCome(t *testing.T) {
	w := newCloud(t, nil)
	a := jobAddr("a")
	w.loses = func(action plan.Action) bool { return action.Verb == plan.CreateSlice && action.Slice.Zone == west }
	w.accept(zoned(configuration(newJob("a", inCloud)), west, central))
	w.run(plan.BootTimeout - time.Minute)
	w.wantZone(a, west)
	w.run(time.Minute)
	w.settle(5 * time.Minute)
	w.wantZone(a, central)
}

// What was there and cannot be listed now may live, though a change of it failed.
func TestUnlistedSliceIsNotForgotten(t *testing.T) {
	w := newCloud(t, nil)
	a := jobAddr("a")
	w.accept(zoned(configuration(newJob("a", inCloud)), west, central))
	w.settle(time.Minute)
	slice := w.sliceOf(a, 0)
	w.unlisted = map[string]string{west: "unreachable"}
	w.acceptWith(w.doc.Desired, func(doc *state.Document) {
		job, changed := *doc.Jobs[a], *doc.Slices[slice]
		job.Replace, changed.Error = true, "the network cannot be changed"
		doc.Jobs[a], doc.Slices[slice] = &job, &changed
	})
	w.run(time.Minute)
	if w.doc.Slices[slice] == nil || w.job(a).Attempt != 1 {
		t.Errorf("its slice was given up while its zone was not listed\n%s", w.describe())
	}
	w.unlisted = nil
	w.settle(time.Minute)
}

// A job does not move away from slices that live, only because they cannot be listed.
func TestUnlistedSlicesAreWaitedFor(t *testing.T) {
	w := newCloud(t, nil)
	a := jobAddr("a")
	w.accept(zoned(configuration(newJob("a", inCloud, onSlices(2))), west, central))
	w.settle(time.Minute)
	lost, lives := w.sliceOf(a, 0), w.sliceOf(a, 1)
	w.loses = func(action plan.Action) bool { return action.Verb == plan.CreateSlice }
	w.pass(capacity.EarlyLoss)
	w.preempt(lost)
	w.until(time.Minute, "gone", func(*plan.Plan) bool { return w.slices[lost] == nil && !w.job(a).Running() })
	w.acceptWith(w.doc.Desired, func(doc *state.Document) { doc.Slices[lost] = &state.Slice{Spec: doc.Slices[lost].Spec} })
	w.loses = func(plan.Action) bool { return false }
	w.unlisted = map[string]string{west: "unreachable"}
	w.run(time.Minute)
	w.unlisted = nil
	w.settle(time.Minute)
	if got := w.sliceOf(a, 1); got != lives {
		t.Errorf("it runs on %v, want it to keep %s", w.job(a).Slices, lives)
	}
}

// When most hosts fall silent together the network is the likelier cause: they are waited for,
// and only those that go on being silent are lost. One among many is lost as ever.
func TestManySilentHostsAreNotLostAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		mute  int // of 6 slices
		takes time.Duration
	}{
		"one": {1, snapshot.HostTimeout}, "half": {3, snapshot.HostTimeout}, "most": {4, snapshot.MassSilenceTimeout}, "all": {6, snapshot.MassSilenceTimeout},
	} {
		w := newCloud(t, nil)
		jobs := make([]schema.Job, 0, 6)
		for i := range 6 {
			jobs = append(jobs, newJob("a", instance(i), inCloud, onTPU("v5litepod-8")))
		}
		w.accept(zoned(configuration(jobs...), west))
		w.settle(time.Minute)
		for i := range c.mute {
			w.mute(w.sliceOf(jobs[i].Addr, 0), 0, true)
		}
		w.run(c.takes - 5*time.Second)
		for _, job := range jobs {
			if j := w.job(job.Addr); j.Attempt != 1 || j.Last().StopGeneration != 0 {
				t.Errorf("%s: %s was given up before %s", name, job.Addr, c.takes)
			}
		}
		w.run(20 * time.Second)
		if w.job(jobs[0].Addr).Last().StopGeneration == 0 && w.job(jobs[0].Addr).Attempt == 1 {
			t.Errorf("%s: a silent host is not lost after %s", name, c.takes)
		}
	}
}
