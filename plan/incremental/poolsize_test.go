package incremental

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
)

// upTo is a pool of one CPU each that may grow.
func upTo(name string, low, high int, options ...func(*schema.Reservation)) schema.Reservation {
	r := newPool(name, "", low)
	r.Max.Slices = high
	for _, o := range options {
		o(&r)
	}
	return r
}

func idleFor(d time.Duration) func(*schema.Reservation) {
	return func(r *schema.Reservation) { r.IdleTimeout = schema.Duration(d) }
}

func offering(r *schema.Reservation) { r.Growth = schema.GrowthOffer }

func lasting(d time.Duration) func(*schema.Reservation) {
	return func(r *schema.Reservation) { r.TTL = schema.Duration(d) }
}

// ofPool are the indices of a reservation's slices that are there, in order.
func (w *world) ofPool(name string) []int {
	var found []int
	for _, s := range w.slices {
		if s.spec.Owner == (schema.Address{Kind: schema.KindReservation, Name: name}) {
			found = append(found, s.spec.Index)
		}
	}
	slices.Sort(found)
	return found
}

func (w *world) wantPool(name string, want ...int) {
	w.t.Helper()
	if got := w.ofPool(name); !slices.Equal(got, want) {
		w.t.Fatalf("%s has slices %v, want %v\n%s", name, got, want, w.describe())
	}
}

// waitsOf are what an address waits for by the last plan.
func (w *world) waitsOf(addr schema.Address) string {
	for _, p := range w.last.Pending {
		if p.Addr == addr {
			return strings.Join(p.Reasons, "; ")
		}
	}
	return ""
}

// drawers are jobs that each draw one slice of pool p.
func drawers(names ...string) []schema.Job {
	var jobs []schema.Job
	for _, name := range names {
		jobs = append(jobs, newJob(name, from("p")))
	}
	return jobs
}

func TestPoolGrowsOnDemandAndShrinks(t *testing.T) {
	w := newWorld(t)
	pool := upTo("p", 1, 4)
	w.accept(withPools(configuration(), pool))
	w.settle(time.Minute)
	w.wantPool("p", 0)

	w.accept(withPools(configuration(drawers("a", "b", "c")...), pool))
	w.settle(time.Minute)
	w.wantPool("p", 0, 1, 2)
	for _, name := range []string{"a", "b", "c"} {
		w.wantJob(jobAddr(name), schema.JobRunning, 1, 0, 0)
	}

	// Of what idles, the highest indices go first; the min and what is held stay.
	inTwo := ""
	for _, name := range []string{"a", "b", "c"} {
		if w.doc.Slices[w.sliceOf(jobAddr(name), 0)].Spec.Index == 1 {
			inTwo = name
		}
	}
	w.accept(withPools(configuration(drawers(inTwo)...), pool))
	w.settle(time.Minute)
	w.pass(schema.DefaultIdleTimeout - time.Minute)
	w.wantPool("p", 0, 1, 2)
	w.pass(2 * time.Minute)
	w.wantPool("p", 1)
	w.wantJob(jobAddr(inTwo), schema.JobRunning, 1, 0, 0)
}

func TestPoolGrowsForWholeGangsOnly(t *testing.T) {
	w := newWorld(t)
	pool := upTo("p", 0, 3)
	w.accept(withPools(configuration(newJob("a", from("p"), onSlices(2)), newJob("b", from("p"), onSlices(2))), pool))
	w.run(time.Minute)
	w.wantPool("p", 0, 1)
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
	w.wantJob(jobAddr("b"), schema.JobPending, 0, 0, 0)
	if got, want := w.waitsOf(jobAddr("b")), "reservation.p: needs 2 of its 3 slices at once, 1 free; used by job.a"; !strings.Contains(got, want) {
		t.Errorf("b waits for %q, want %q", got, want)
	}
}

func TestSemantics18MaximumCountsCreationsInFlight(t *testing.T) {
	w := newCloud(t, nil)
	w.createTakes, w.bootTakes = time.Hour, 20*time.Minute
	pool := upTo("p", 0, 2)
	pool.Provider, pool.Min.CPU, pool.Max.CPU, pool.Min.TPU, pool.Max.TPU = schema.ProviderGCP, 0, 0, "v5litepod-4", "v5litepod-4"
	var jobs []schema.Job
	for i := range 5 {
		jobs = append(jobs, newJob(fmt.Sprintf("j%d", i), from("p"), inCloud))
	}
	w.accept(zoned(withPools(configuration(jobs...), pool), west, central))
	most := 0
	for range 300 {
		w.step(5 * time.Second)
		most = max(most, len(w.ofPool("p")))
		for name, s := range w.slices {
			if s.spec.Owner.Kind == schema.KindReservation && s.spec.Zone != west {
				t.Fatalf("being at the maximum, slice %s was asked for in %s", name, s.spec.Zone)
			}
		}
	}
	if most != 2 {
		t.Errorf("%d slices at once, want the max of 2\n%s", most, w.describe())
	}
}

func TestPoolOffersOneMore(t *testing.T) {
	w := newWorld(t)
	pool := upTo("p", 1, 3, offering, idleFor(time.Minute))
	for held, want := range []int{1, 2, 3, 3} {
		var jobs []schema.Job
		for i := range held {
			jobs = append(jobs, newJob(fmt.Sprintf("j%d", i), from("p")))
		}
		w.accept(withPools(configuration(jobs...), pool))
		w.settle(time.Minute)
		if got := len(w.ofPool("p")); got != want {
			t.Errorf("while %d are held there are %d slices, want %d", held, got, want)
		}
	}
	w.accept(withPools(configuration(), pool))
	w.pass(5 * time.Minute)
	w.wantPool("p", 0)
}

func TestReservationExpires(t *testing.T) {
	w := newWorld(t)
	pool := upTo("p", 2, 3, lasting(10*time.Minute))
	w.accept(withPools(configuration(newJob("a", from("p"))), pool))
	w.settle(time.Minute)
	status := capacity.ReservationStatus(&w.doc.Desired, w.last, w.now)[0]
	if left := status.ExpiresAt.Sub(w.now); left > 10*time.Minute || left < 9*time.Minute {
		t.Errorf("it expires in %s, want a little less than ten minutes", left)
	}
	w.pass(8 * time.Minute)
	w.wantPool("p", 0, 1)
	w.pass(3 * time.Minute)
	held := w.doc.Slices[w.sliceOf(jobAddr("a"), 0)].Spec.Index
	w.wantPool("p", held) // held until it is given back
	w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)

	w.accept(withPools(configuration(newJob("b", from("p"))), pool))
	w.pass(time.Minute)
	w.wantPool("p")
	if got := w.waitsOf(jobAddr("b")); !strings.Contains(got, "reservation.p has expired: its ttl of 10m0s was over at ") {
		t.Errorf("b waits for %q", got)
	}
	if !capacity.ReservationStatus(&w.doc.Desired, w.last, w.now)[0].Expired {
		t.Error("it does not say that it has expired")
	}

	pool.TTL = schema.Duration(20 * time.Minute) // its time begins again
	w.accept(withPools(configuration(newJob("b", from("p"))), pool))
	w.settle(time.Minute)
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
}

func TestReservationsAreServedByPriority(t *testing.T) {
	w := newWorld(t)
	low, high := newPool("a", "", 2), newPool("b", "", 2)
	high.Priority = 1
	w.accept(limited(withPools(configuration(), low, high), 3))
	w.run(time.Minute)
	w.wantPool("b", 0, 1)
	w.wantPool("a", 0)
}

// What is changed of a reservation and not of its slices restarts nothing.
func TestReservationIsUpdatedInPlace(t *testing.T) {
	for name, change := range map[string]func(*schema.Reservation){
		"max":          func(r *schema.Reservation) { r.Max.Slices = 5 },
		"ttl":          lasting(time.Hour),
		"idle_timeout": idleFor(time.Hour),
		"priority":     func(r *schema.Reservation) { r.Priority = 7 },
		"growth":       offering,
	} {
		t.Run(name, func(t *testing.T) {
			pool := upTo("p", 1, 2)
			w := up(t, withPools(configuration(newJob("a", from("p"))), pool))
			change(&pool)
			w.accept(withPools(configuration(newJob("a", from("p"))), pool))
			p := w.step(time.Second)
			if got := changeOn(p, pool.Addr).Verb; got != plan.VerbUpdate {
				t.Errorf("the plan shows %s, want %s", got, plan.VerbUpdate)
			}
			w.settle(time.Minute)
			w.wantJob(jobAddr("a"), schema.JobRunning, 1, 0, 0)
		})
	}
}

// A job does not wait for a slice of its pool while another one is free.
func TestFreeSliceInsteadOfOneThatIsNotUp(t *testing.T) {
	w := newWorld(t)
	pool := upTo("p", 1, 2)
	w.exits(jobAddr("a"), program{runs: 20 * time.Second})
	w.accept(withPools(configuration(newJob("a", from("p"))), pool))
	w.until(time.Minute, "running", func(*plan.Plan) bool { return w.doc.Jobs[jobAddr("a")].Ready })
	w.refuses = func(schema.SliceSpec) error { return errStockout }
	w.accept(withPools(configuration(newJob("a", from("p")), newJob("b", from("p"))), pool))
	w.run(time.Minute)
	w.wantJob(jobAddr("b"), schema.JobRunning, 1, 0, 0)
	w.wantPool("p", 0)
	if len(w.doc.Slices) != 1 {
		t.Errorf("slices are still asked for that no job needs: %v", slices.Collect(maps.Keys(w.doc.Slices)))
	}
}

// No job is kept waiting for room by slices that idle.
func TestIdleSlicesOfAPoolMakeRoom(t *testing.T) {
	w := newWorld(t)
	pool := upTo("p", 1, 3)
	w.accept(limited(withPools(configuration(drawers("a", "b", "c")...), pool), 3))
	w.settle(time.Minute)
	w.accept(limited(withPools(configuration(newJob("own")), pool), 3))
	w.settle(time.Minute)
	w.wantJob(jobAddr("own"), schema.JobRunning, 1, 0, 0)
	w.wantPool("p", 0, 1)
}

func TestReservationStatus(t *testing.T) {
	pool := upTo("p", 1, 4)
	w := up(t, withPools(configuration(drawers("a", "b")...), pool))
	w.accept(withPools(configuration(drawers("b")...), pool))
	w.settle(time.Minute)
	w.createTakes, w.bootTakes = time.Hour, time.Hour
	w.accept(withPools(configuration(newJob("b", from("p")), newJob("wide", from("p"), onSlices(2))), pool))
	w.run(5 * time.Second)
	got := capacity.ReservationStatus(&w.doc.Desired, w.last, w.now)
	if len(got) != 1 || got[0].Allocated != 2 || got[0].Pending != 1 || got[0].Free != 0 {
		t.Fatalf("got %+v, want 2 up, 1 asked for, none free", got)
	}
	if want := []schema.Address{jobAddr("b"), jobAddr("wide")}; !slices.Equal(got[0].Jobs, want) {
		t.Errorf("held by %v, want %v", got[0].Jobs, want)
	}
	for _, s := range got[0].Slices {
		if len(s.Jobs) != 1 || !s.IdleSince.IsZero() || s.Up != (w.slices[s.Name].phase == schema.SliceReady) {
			t.Errorf("slice %+v", s)
		}
	}
}
