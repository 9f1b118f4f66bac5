package incremental

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/schema"
)

// TestSemantics14WaitsHaveKinds: what is said in words can be counted too.
func TestSemantics14WaitsHaveKinds(t *testing.T) {
	second := newJob("b")
	for kind, c := range map[plan.WaitKind]struct {
		desired schema.Desired
		faults  func(w *world)
		passes  time.Duration
		waits   schema.Address
	}{
		plan.WaitUnderway: {configuration(newJob("a")), nil, time.Second, jobAddr("a")},
		plan.WaitDependency: {
			configuration(newJob("a"), newJob("b", after(jobAddr("a")))), nil, time.Minute, jobAddr("b"),
		},
		plan.WaitBlocked: {
			configuration(newJob("a"), newJob("b", after(jobAddr("a")))),
			func(w *world) { w.exits(jobAddr("a"), program{runs: time.Second, code: 1}) }, time.Minute, jobAddr("b"),
		},
		plan.WaitTurn: {
			limited(configuration(newJob("a"), newJob("big", onSlices(2)), second), 2),
			func(w *world) {
				big := limited(configuration(newJob("a"), newJob("big", onSlices(2))), 2)
				w.accept(big)
				w.pass(schedule.Patience + time.Minute)
			}, time.Minute, second.Addr,
		},
		plan.WaitLimit: {limited(configuration(newJob("a"), second), 1), nil, time.Minute, second.Addr},
		plan.WaitBudget: {
			costing(zoned(configuration(newJob("a", inCloud), second), west), schema.CostBudget{MaxPerMonth: 0.01, Action: schema.CostHold}),
			func(w *world) {
				w.accept(costing(zoned(configuration(newJob("a", inCloud)), west), schema.CostBudget{MaxPerMonth: 0.01, Action: schema.CostHold}))
				w.pass(time.Minute)
			}, time.Minute, second.Addr,
		},
		plan.WaitRoom: {withPools(configuration(newJob("a", packed("pool", 4, 1)), newJob("b", packed("pool", 1, 1))), hostPool(1)), nil, time.Minute, second.Addr},
		plan.WaitCapacity: {
			zoned(configuration(newJob("a", inCloud)), west),
			func(w *world) { w.shut = map[string]error{west: errStockout} }, time.Minute, jobAddr("a"),
		},
		plan.WaitQuota: {
			zoned(configuration(newJob("a", inCloud)), west),
			func(w *world) { w.shut = map[string]error{west: errQuota} }, time.Minute, jobAddr("a"),
		},
		plan.WaitRetry: {
			configuration(newJob("a", failures(schema.Unlimited))),
			func(w *world) { w.exits(jobAddr("a"), program{runs: time.Second, code: 1}) }, 5 * time.Minute, jobAddr("a"),
		},
		plan.WaitProvider: {configuration(newJob("a")), func(w *world) { w.unreachable = true }, time.Minute, jobAddr("a")},
		plan.WaitConstraint: {
			together(zoned(configuration(newJob("a", inZones(west), inGroup("g")), newJob("b", inZones(south), inGroup("g"))), west, south),
				func(g *schema.JobGroup) { g.SameZone = true }), nil, time.Minute, memberAddr("g", "b"),
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t)
			if c.faults != nil {
				c.faults(w)
			}
			w.accept(c.desired)
			var got plan.WaitKind
			w.until(c.passes, "of that kind: "+string(kind), func(p *plan.Plan) bool {
				if i, waits := place(p.Pending, c.waits); waits {
					got = p.Pending[i].Kind
				}
				return got == kind
			})
		})
	}
	if got := len(plan.WaitKinds()); got != 13 {
		t.Errorf("there are %d kinds, and cases for 12", got)
	}
}
