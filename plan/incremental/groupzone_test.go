package incremental

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
)

// A reservation and a service of a group are where its jobs are.
func TestReservationsAreNearTheirGroup(t *testing.T) {
	pool := newPool("pool", "v5litepod-4", 1)
	pool.Addr.Group, pool.Provider = "g", schema.ProviderGCP
	trainer, server := memberAddr("g", "trainer"), memberAddr("g", "server")
	server.Kind = schema.KindActorService
	declared := func(zones []string, tie func(*schema.JobGroup)) schema.Desired {
		jobs := []schema.Job{newJob("trainer", inGroup("g"), inZones(zones...)), newJob("server", asService, inGroup("g"), from(pool.Addr.Scoped()))}
		desired := together(zoned(configuration(jobs...), zones...), tie)
		desired.Reservations = []schema.Reservation{pool}
		for i := range desired.Jobs {
			if r := &desired.Jobs[i].Resources; r.Reservation != "" {
				r.Provider, r.TPU, r.Preemptible = schema.ProviderGCP, pool.Max.TPU, pool.Preemptible
			}
		}
		return desired
	}
	for name, c := range map[string]struct {
		tie   func(*schema.JobGroup)
		zones []string
		full  string    // where the trainer is refused
		known bool      // before the group is declared
		want  [2]string // where the trainer and the server are
	}{
		"same zone":          {sameZone, []string{west, central}, "", false, [2]string{west, west}},
		"refused":            {sameZone, []string{west, central}, west, false, [2]string{central, central}},
		"known to be full":   {sameRegion, []string{west, central}, west, true, [2]string{central, central}},
		"in the same region": {sameRegion, []string{central, central2, south}, central, false, [2]string{central2, central}},
		"not tied":           {func(*schema.JobGroup) {}, []string{west, central}, west, false, [2]string{central, west}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCloud(t, nil)
			if c.full != "" {
				w.refuses = stockoutIn(c.full)
			}
			if c.known {
				w.accept(zoned(configuration(newJob("first", inZones(c.zones...))), c.zones...))
				w.settle(time.Minute)
			}
			w.accept(declared(c.zones, c.tie))
			w.settle(10 * time.Minute)
			w.wantZone(trainer, c.want[0])
			w.wantZone(server, c.want[1])
			for _, addr := range []schema.Address{trainer, server} {
				if !w.job(addr).Ready {
					t.Errorf("%s does not run", addr)
				}
			}
			// What runs stays together when its zone is full.
			w.pass(capacity.EarlyLoss)
			w.refuses = stockoutIn(c.want[0])
			w.preempt(w.sliceOf(trainer, 0))
			w.pass(10 * time.Minute)
			if w.zoneOf(server) != c.want[1] {
				t.Errorf("the server left %s while it ran", c.want[1])
			}
			if name == "not tied" || name == "in the same region" {
				return // the trainer has gone elsewhere, or runs where it was
			}
			other := map[string]string{west: central, central: west}[c.want[1]]
			region := func(zone string) string {
				if name == "known to be full" {
					return accelerators.RegionOf(zone)
				}
				return zone
			}
			why := fmt.Sprintf("there is no more capacity; job_group.g stays in %s as long as %s runs on its reservation: stop that job to have the group tried in %s too",
				region(c.want[1]), server, region(other))
			if got := w.job(trainer).Reason; !strings.HasSuffix(got, why) {
				t.Errorf("the trainer waits since %q, want %q", got, why)
			}
			desired := declared(c.zones, c.tie)
			desired.Jobs = slices.DeleteFunc(desired.Jobs, func(j schema.Job) bool { return j.Addr == server })
			w.accept(desired)
			w.pass(10 * time.Minute)
			w.wantZone(trainer, other)
		})
	}
}
