package incremental

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

func TestFirstZoneFirst(t *testing.T) {
	w := newCloud(t, nil)
	w.accept(zoned(configuration(newJob("a", inCloud), newJob("b", inZones(south)), newJob("c", inCloud, onSlices(2))), west, central))
	w.settle(time.Minute)
	w.wantZone(jobAddr("a"), west)
	w.wantZone(jobAddr("b"), south)
	for _, name := range w.job(jobAddr("c")).Slices {
		if got := w.slices[name].spec; got.Zone != west || got.Cloud.Engine != schema.EngineTPU {
			t.Errorf("got %+v, want it in %s by engine tpu", got, west)
		}
	}
}

func TestFailover(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
		says string
	}{
		"stockout fails over to the next zone":               {errStockout, central, "stockout"},
		"quota fails over to another region":                 {errQuota, south, "quota"},
		"what passes is tried again in the same zone":        {errUnavailable, west, ""},
		"preempted during create fails over to the next one": {errTakenAgain, central, "die young"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloud(t, map[string]error{west: c.err})
			a := jobAddr("a")
			// A quota is the region's: its second zone is as shut as the first.
			zones := []string{west, central}
			if c.want == south {
				w.shut = map[string]error{central: c.err}
				zones = []string{central, central2, south}
			}
			w.accept(zoned(configuration(newJob("a", inCloud)), zones...))
			w.run(5 * time.Second)
			if c.says == "" {
				w.wantZone(a, west)
				w.shut = nil
				w.settle(5 * time.Minute)
				w.wantZone(a, west)
				return
			}
			w.settle(time.Minute)
			w.wantZone(a, c.want)
			if len(w.doc.ZoneHealth) != 1 {
				t.Errorf("zone health is %v, want that of one place", w.doc.ZoneHealth)
			}
			for place, faults := range w.doc.ZoneHealth {
				if !strings.Contains(capacity.InWords(faults.Kind), c.says) || faults.Failures != 1 {
					t.Errorf("%s: got %+v, want one failure of %q", place, faults, c.says)
				}
			}
		})
	}
}

// Every place where a job could be says why it is not there, and when it is tried.
func TestPendingSaysWhyForEachZone(t *testing.T) {
	w := newCloud(t, map[string]error{west: errStockout, south: errQuota})
	w.accept(zoned(configuration(newJob("a", inCloud)), west, south))
	var reasons []string
	w.until(time.Minute, "refused in both zones", func(p *plan.Plan) bool {
		reasons = nil
		for _, pending := range p.Pending {
			reasons = append(reasons, pending.Reasons...)
		}
		text := strings.Join(reasons, "\n")
		return strings.Contains(text, west+": stockout: "+errStockout.Error()+"; next try in ") &&
			strings.Contains(text, south+": quota: "+errQuota.Error()+"; next try in ")
	})
	w.shut = nil
	w.settle(10 * time.Minute)
	w.wantZone(jobAddr("a"), west)
	if len(w.doc.ZoneHealth) > 1 {
		t.Errorf("zone health is %v, want none where capacity was had", w.doc.ZoneHealth)
	}
}

// A place that stays bad is asked less and less.
func TestStockoutIsNotStormed(t *testing.T) {
	creates := 0
	w := newCloud(t, map[string]error{west: errStockout})
	w.loses = func(a plan.Action) bool {
		if a.Verb == plan.CreateSlice {
			creates++
		}
		return false
	}
	jobs := make([]schema.Job, 0, 20)
	for i := range 20 {
		jobs = append(jobs, newJob("a", instance(i), inCloud))
	}
	w.accept(zoned(configuration(jobs...), west))
	w.pass(time.Hour)
	// 30 s, 1, 2, 4, 8 min, then every 10 min: at most ten tries of a few slices each.
	if most := 10*capacity.ProbeLimit + len(jobs); creates > most || creates < 8 {
		t.Errorf("%d creations in an hour of stockout, want 8 to %d", creates, most)
	}
	w.shut = nil
	w.settle(15 * time.Minute)
}

func TestYoungDeathsCountAgainstTheZone(t *testing.T) {
	w := newCloud(t, nil)
	a := jobAddr("a")
	w.accept(zoned(configuration(newJob("a", inCloud)), west, central))
	w.settle(time.Minute)
	w.preempt(w.sliceOf(a, 0))
	w.settle(time.Minute)
	w.wantZone(a, central)
	w.pass(capacity.EarlyLoss)
	w.pass(capacity.EarlyLoss)
	w.preempt(w.sliceOf(a, 0)) // of old age
	w.settle(time.Minute)
	if faults := w.doc.ZoneHealth; len(faults) != 1 || faults[west+"/v5litepod-16/spot"].Failures != 1 {
		t.Errorf("zone health is %v, want one failure of %s", faults, west)
	}
}

func TestGroupsMoveTogether(t *testing.T) {
	first, second := memberAddr("g", "a"), memberAddr("g", "b")
	jobs := func(zones []string) schema.Desired {
		return configuration(newJob("a", inGroup("g"), inZones(zones...)), newJob("b", inGroup("g"), inZones(zones...), onTPU("v5litepod-4")))
	}
	for name, c := range map[string]struct {
		tie   func(*schema.JobGroup)
		zones []string
		want  [2]string // where a and b are, when a is refused in the first zone
	}{
		"same zone":   {sameZone, []string{west, central}, [2]string{central, central}},
		"same region": {sameRegion, []string{central, central2, south}, [2]string{central2, central}},
		"not tied":    {func(*schema.JobGroup) {}, []string{west, central}, [2]string{central, west}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloud(t, nil)
			w.refuses = stockoutIn(c.zones[0])
			w.accept(together(zoned(jobs(c.zones), c.zones...), c.tie))
			w.settle(5 * time.Minute)
			w.wantZone(first, c.want[0])
			w.wantZone(second, c.want[1])
		})
		// The same once both have run: what runs is only moved when what is missing
		// was refused again and again.
		t.Run(name+", running", func(t *testing.T) {
			w := newCloud(t, nil)
			w.accept(together(zoned(jobs(c.zones), c.zones...), c.tie))
			w.settle(time.Minute)
			w.pass(capacity.EarlyLoss)
			w.refuses = stockoutIn(c.zones[0])
			w.preempt(w.sliceOf(first, 0))
			w.settle(time.Hour)
			w.wantZone(first, c.want[0])
			w.wantZone(second, c.want[1])
			if got := w.job(second); got.Failures+got.Preemptions > 0 {
				t.Errorf("b spent %d failures and %d preemptions on moving, want none", got.Failures, got.Preemptions)
			}
		})
	}
}

// A zone that could not be listed is left as it is: nothing there is gone, and the
// others go on.
func TestUnlistedZone(t *testing.T) {
	w := newCloud(t, nil)
	a, b := jobAddr("a"), jobAddr("b")
	w.accept(zoned(configuration(newJob("a", inZones(west)), newJob("b", inZones(central))), west, central))
	w.settle(time.Minute)
	w.unlisted = map[string]string{west: "unreachable"}
	w.preempt(w.sliceOf(b, 0))
	w.run(2 * time.Minute)
	if j := w.job(a); j.Attempt != 1 || !j.Ready {
		t.Errorf("a is at attempt %d, ready %t, want the first one, running on", j.Attempt, j.Ready)
	}
	if j := w.job(b); j.Attempt != 2 {
		t.Errorf("b is at attempt %d, want 2: its zone was listed", j.Attempt)
	}
	w.unlisted = nil
	w.settle(time.Minute)
	if j := w.job(a); j.Attempt != 1 {
		t.Errorf("a is at attempt %d after its zone was listed again, want 1", j.Attempt)
	}
}

// Slices that a job is not to have any more are replaced; another order of zones
// changes nothing.
func TestZonesChange(t *testing.T) {
	for name, c := range map[string]struct {
		zones []string
		want  plan.Verb
	}{
		"another order": {[]string{central, west}, plan.VerbUpdate},
		"one more":      {[]string{west, south}, plan.VerbUpdate},
		"elsewhere":     {[]string{central}, plan.VerbReplace},
	} {
		w := newCloud(t, nil)
		w.accept(zoned(configuration(newJob("a", inZones(west, central))), west))
		w.settle(time.Minute)
		w.accept(zoned(configuration(newJob("a", inZones(c.zones...))), west))
		p := w.step(time.Second)
		if got := p.Changes[0].Verb; got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		w.settle(time.Minute)
		if zone := w.zoneOf(jobAddr("a")); !slices.Contains(c.zones, zone) {
			t.Errorf("%s: it is in %s, want one of %v", name, zone, c.zones)
		}
	}
}

// Labels, tags and external addresses are changed where they are.
func TestLiveChanges(t *testing.T) {
	w := newCloud(t, nil)
	a := jobAddr("a")
	w.accept(zoned(configuration(newJob("a", inCloud)), west))
	w.settle(time.Minute)
	slice, hosts := w.sliceOf(a, 0), w.slices[w.sliceOf(a, 0)].hosts
	changed := newJob("a", inCloud)
	changed.Labels = map[string]string{"team": "rl"}
	changed.Resources.Cloud.Live = schema.CloudLive{Tags: "web", InternalIPs: true, Labels: "owner=me,team=all"}
	w.accept(zoned(configuration(changed), west))
	w.settle(time.Minute)
	want := schema.CloudLive{Tags: "web", InternalIPs: true, Labels: "owner=me,team=rl"}
	if got := w.slices[slice].spec.Cloud.Live; got != want || w.job(a).Attempt != 1 || &w.slices[slice].hosts[0] != &hosts[0] {
		t.Errorf("got %+v at attempt %d, want %+v on the same slice at attempt 1", got, w.job(a).Attempt, want)
	}
}

// What waits in the cloud's queue has as long as it was asked for, and its hosts
// their time from then on.
func TestQueueTime(t *testing.T) {
	for name, c := range map[string]struct {
		provisioning schema.Provisioning
		gives        time.Duration // up after
	}{
		"at once":    {"", time.Hour},
		"reserved":   {schema.ProvisioningReserved, 4 * time.Hour},
		"queued":     {schema.ProvisioningQueued, 0},
		"flex-start": {schema.ProvisioningFlexStart, 0},
	} {
		w := newCloud(t, nil)
		w.createTakes, w.bootTakes = 100*time.Hour, 100*time.Hour
		w.accept(zoned(configuration(newJob("a", inCloud, func(j *schema.Job) { j.Resources.Cloud.Provisioning = c.provisioning })), west))
		w.step(time.Second)
		slice := w.sliceOf(jobAddr("a"), 0)
		w.slices[slice].waiting = true
		w.step(time.Second)
		patient := c.gives
		if patient == 0 {
			patient = 20 * time.Hour
		}
		w.now = w.now.Add(patient - time.Minute)
		w.step(time.Second)
		if s := w.doc.Slices[slice]; s == nil || !s.Terminating.IsZero() {
			t.Errorf("%s: given up before its time: %+v", name, s)
		}
		if c.gives == 0 { // it gets its machines, and these their time
			w.slices[slice].waiting = false
			w.step(time.Second)
			w.now = w.now.Add(plan.BootTimeout - time.Minute)
			w.step(time.Second)
			if s := w.doc.Slices[slice]; s == nil || !s.Terminating.IsZero() {
				t.Errorf("%s: given up before its hosts had their time: %+v", name, s)
			}
		}
		w.now = w.now.Add(2 * time.Minute)
		w.step(time.Second)
		if s := w.doc.Slices[slice]; s != nil && s.Terminating.IsZero() {
			t.Errorf("%s: not given up when its time was over: %+v", name, s)
		}
	}
}

func TestPoolFailsOver(t *testing.T) {
	pool := newPool("p", "v5litepod-16", 2)
	pool.Provider, pool.Preemptible = schema.ProviderGCP, true
	w := newCloud(t, map[string]error{west: errStockout})
	desired := configuration(newJob("a", from("p")))
	desired.Jobs[0].Resources.Provider, desired.Jobs[0].Resources.TPU = schema.ProviderGCP, "v5litepod-16"
	desired.Reservations = []schema.Reservation{pool}
	w.accept(zoned(desired, west, central))
	w.settle(5 * time.Minute)
	var zones []string
	for _, s := range w.slices {
		if s.spec.Owner == pool.Addr {
			zones = append(zones, s.spec.Zone)
		}
	}
	if fmt.Sprint(zones) != fmt.Sprint([]string{central, central}) {
		t.Errorf("the pool is in %v, want all in %s", zones, central)
	}
}

// A slice that does not go away is waited for only so long.
func TestStuckDeletion(t *testing.T) {
	w := newCloud(t, nil)
	a := jobAddr("a")
	w.accept(zoned(configuration(newJob("a", inCloud, onSlices(2))), west))
	w.settle(time.Minute)
	stuck, other := w.sliceOf(a, 0), w.sliceOf(a, 1)
	w.deleteTakes = 2 * time.Hour
	w.preempt(stuck)
	w.until(10*time.Minute, "running again", func(*plan.Plan) bool { return w.job(a).Attempt == 2 && w.job(a).Ready })
	if w.sliceOf(a, 0) == stuck || w.sliceOf(a, 1) != other {
		t.Errorf("it runs on %v, want another slice than %s beside %s", w.job(a).Slices, stuck, other)
	}
	if w.slices[stuck] == nil || w.doc.Slices[stuck] == nil {
		t.Error("the slice that does not go away was forgotten")
	}
	w.pass(2 * time.Hour)
	if w.slices[stuck] != nil || w.doc.Slices[stuck] != nil || w.job(a).Attempt != 2 {
		t.Errorf("at attempt %d, %s is still there", w.job(a).Attempt, stuck)
	}
}

// When many are taken at once, a few try first, and as soon as one of them is up all
// the others follow.
func TestMassPreemption(t *testing.T) {
	w := newCloud(t, nil)
	jobs := make([]schema.Job, 0, 60)
	for i := range 60 {
		jobs = append(jobs, newJob("a", instance(i), inCloud, onTPU("v5litepod-8")))
	}
	w.accept(zoned(configuration(jobs...), west))
	w.settle(time.Minute)
	for i := range 30 {
		w.preempt(w.sliceOf(jobs[i].Addr, 0))
	}
	began := w.now
	w.settle(10 * time.Minute)
	if took := w.now.Sub(began); took > 3*time.Minute {
		t.Errorf("30 preempted slices were back after %s, want about the time that the place is left alone and one slice takes", took)
	}
	// One that dies among many that live does not shut the place.
	for i := 30; i < 34; i++ {
		w.preempt(w.sliceOf(jobs[i].Addr, 0))
		w.settle(15 * time.Second)
	}
}

// A slice that runs and whose coming up was not seen is no probe of its place.
func TestHalfOpenProbesAreThoseThatTry(t *testing.T) {
	w := newCloud(t, nil)
	jobs := make([]schema.Job, 0, capacity.ProbeLimit+1)
	for i := range capacity.ProbeLimit {
		jobs = append(jobs, newJob("a", instance(i), inCloud))
	}
	w.accept(zoned(configuration(jobs...), west))
	w.settle(time.Minute)
	w.doc = &state.Document{FormatVersion: state.FormatVersion, Lineage: testLineage} // the state was lost
	w.save()
	w.planner = w.newPlanner()
	w.shut = map[string]error{west: errStockout}
	w.accept(zoned(configuration(append(jobs, newJob("b", inCloud))...), west))
	w.run(time.Minute)
	w.shut = nil
	w.settle(10 * time.Minute)
	if j := w.job(jobAddr("b")); !j.Ready {
		t.Errorf("b waits: %s", j.Reason)
	}
}
