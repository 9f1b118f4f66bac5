package rehearse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// patience of the end of a rehearsal: for how long it may take until everything
// runs once the weather is calm, and until nothing is left once nothing is wanted.
// A deletion may hang for two hours, and a zone that failed be left alone for one.
const settleWithin = 8 * time.Hour

// settle ends a rehearsal: in calm weather everything must come to run, and after
// that, with nothing declared, nothing may be left.
func (r *rehearsal) settle(ctx context.Context) error {
	r.cloud.Abate()
	if err := r.until(ctx, r.clock.Now().Add(settleWithin), func() bool { return r.unsettled() == "" }); err != nil {
		return err
	}
	if what := r.unsettled(); what != "" {
		r.oracle.violated(RuleConverges, "after %s of calm: %s", settleWithin, what)
	}
	r.books.released = true
	if err := r.accept(ctx, schema.Desired{Providers: r.cfg.Desired.Providers}); err != nil {
		return err
	}
	if err := r.until(ctx, r.clock.Now().Add(settleWithin), func() bool { return r.leftover() == "" }); err != nil {
		return err
	}
	if what := r.leftover(); what != "" {
		r.oracle.violated(RuleLeaves, "%s after everything was destroyed: %s", settleWithin, what)
	}
	return nil
}

// unsettled is something that is not as it should be, "" if all is.
func (r *rehearsal) unsettled() string {
	doc := r.stepper.Document()
	owned := map[string]bool{}
	for addr, a := range r.books.accounts {
		j := doc.Jobs[addr]
		switch {
		case j == nil:
			return fmt.Sprintf("%s is not recorded", addr)
		case j.Status.Ended() || a.complete() || r.cannotBe(addr):
		case r.oracle.running[addr] == nil:
			return fmt.Sprintf("%s does not run: %s%s", addr, j.Reason, r.fleet.describe(j.Slices))
		}
		for _, name := range j.Slices {
			owned[name] = true
		}
	}
	for _, g := range r.cloud.All() {
		name := sliceOf(g)
		if s := doc.Slices[name]; r.mine(g) && !owned[name] && (s == nil || s.Spec.Owner.Kind != schema.KindReservation) {
			return fmt.Sprintf("%s %s in %s is there and nobody wants it", g.Kind, g.Name, g.Zone)
		}
	}
	return ""
}

// cannotBe reports whether a job waits for what no weather brings: the cloud's
// capacity and quotas are as the scenario has them.
func (r *rehearsal) cannotBe(addr schema.Address) bool {
	cause, _, refused := r.gate.refusalOf(addr)
	return refused && (cause == CauseCapacity || cause == CauseQuota || cause == CauseReservation)
}

// leftover is something that is left of the stack, "" if nothing is.
func (r *rehearsal) leftover() string {
	for _, g := range r.cloud.All() {
		if r.mine(g) {
			return fmt.Sprintf("%s %s in %s is %s", g.Kind, g.Name, g.Zone, g.State)
		}
	}
	for _, q := range r.cloud.Requests(r.project(), "") {
		if slices.ContainsFunc(q.Groups, r.marked) {
			return fmt.Sprintf("queued resource %s in %s is %s", q.Name, q.Zone, q.State)
		}
	}
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(r.store.objects)) {
		if strings.HasPrefix(key, store.AssignPrefix) {
			return key + " is in the store"
		}
	}
	for key := range r.store.hosts {
		return key + " is in the store"
	}
	return ""
}

// mine reports whether a group carries the stack's mark.
func (r *rehearsal) mine(g *cloud.Group) bool { return r.marked(g.Spec) }

func (r *rehearsal) marked(s cloud.Spec) bool { return s.Labels[labelStack] == r.fleet.stack }

// sliceOf is the name of the slice that a group is.
func sliceOf(g *cloud.Group) string { return g.Labels[labelSlice] }
