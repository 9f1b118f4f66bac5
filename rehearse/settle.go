package rehearse

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// settleWithin is how long the end of a rehearsal may take: until every job runs once
// faults have ended, and until nothing is left once nothing is declared.
// A deletion may hang for two hours, and a zone that failed be left alone for one.
const settleWithin = 8 * time.Hour

// settle ends a rehearsal: without faults every job must come to run, and after that,
// with nothing declared, nothing may be left.
func (r *rehearsal) settle(ctx context.Context) error {
	r.settling = true
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
	for _, addr := range slices.SortedFunc(maps.Keys(r.books.accounts), schema.Address.Compare) {
		a, j := r.books.accounts[addr], doc.Jobs[addr]
		switch {
		case j == nil:
			return fmt.Sprintf("%s is not recorded", addr)
		case j.Status.Ended() || a.complete() || r.cannotBe(doc, j) || r.waitsForOthers(doc, j):
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
			return fmt.Sprintf("%s %s in %s is there and no job needs it", g.Kind, g.Name, g.Zone)
		}
	}
	return ""
}

// cannotBe reports whether a job waits for capacity or quota that the scenario does not
// have: it was rejected for that, or one that asks for the same was, so that fray leaves
// the place alone for both.
func (r *rehearsal) cannotBe(doc *state.Document, j *state.Job) bool {
	lacking := func(addr schema.Address) bool {
		cause, _, rejected := r.gate.rejectionOf(addr)
		return rejected && (cause == CauseCapacity || cause == CauseQuota || cause == CauseReservation)
	}
	if lacking(j.Spec.Addr) {
		return true
	}
	if len(j.Slices) > 0 && !slices.ContainsFunc(j.Slices, r.fleet.isWithoutMachines) {
		return false
	}
	want := &j.Spec.Resources
	for _, a := range want.Alternatives() { // each of them must be out of reach
		isLacking := false
		for addr, other := range doc.Jobs {
			isLacking = isLacking || addr != j.Spec.Addr && asksForSame(other, want, a) && lacking(addr)
		}
		if !isLacking {
			return false
		}
	}
	return true
}

// asksForSame reports whether a job asks for what another may have as one of its
// alternatives, in the same places.
func asksForSame(other *state.Job, want *schema.Resources, a schema.Accelerator) bool {
	is := &other.Spec.Resources
	return is.IsAlternative(a) && is.MachineType == want.MachineType && is.Preemptible == want.Preemptible &&
		is.Cloud == want.Cloud && slices.Equal(is.Zones, want.Zones)
}

// waitsForOthers reports whether it is the configuration that has a job wait: for
// another to run or to end, which is looked at by itself, for slices of a pool that
// others hold, for chips of its namespace, or for a value that nothing here has.
func (r *rehearsal) waitsForOthers(doc *state.Document, j *state.Job) bool {
	if j.Spec.HasUnknown() {
		return true
	}
	for addr, other := range doc.Jobs {
		on := func(dependency schema.Address) bool { return dependency.Contains(addr) }
		if addr != j.Spec.Addr && (slices.ContainsFunc(j.Spec.DependsOn, on) && other.Status != schema.JobSucceeded ||
			slices.ContainsFunc(j.Spec.Uses, on) && !other.Ready) {
			return true
		}
	}
	return len(j.Slices) == 0 && (r.poolUsedUp(doc, j) || r.namespaceFull(doc, j))
}

// poolUsedUp reports whether a job draws on a pool of which others hold so much that
// too little is left.
func (r *rehearsal) poolUsedUp(doc *state.Document, j *state.Job) bool {
	for i := range r.cfg.Desired.Reservations {
		pool := &r.cfg.Desired.Reservations[i]
		if pool.Addr.Scoped() != j.Spec.Resources.Reservation {
			continue
		}
		free := max(pool.Min.Slices, pool.Max.Slices)
		for _, other := range doc.Jobs {
			if other.Spec.Resources.Reservation == j.Spec.Resources.Reservation {
				free -= len(other.Slices)
			}
		}
		return free < j.Spec.Resources.Slices
	}
	return false
}

// namespaceFull reports whether a job's namespace, or its user there, may not have its
// chips as well.
func (r *rehearsal) namespaceFull(doc *state.Document, j *state.Job) bool {
	for i := range r.cfg.Desired.Namespaces {
		space := &r.cfg.Desired.Namespaces[i]
		if space.Addr.Scoped() != j.Spec.Namespace {
			continue
		}
		ofNamespace := func(other *schema.Job) bool { return other.Namespace == j.Spec.Namespace }
		if exceeds(doc, j, space.MaxChips, ofNamespace) {
			return true
		}
		for _, user := range space.Users {
			ofUser := func(other *schema.Job) bool { return ofNamespace(other) && other.User == user.Name }
			if user.Name == j.Spec.User && exceeds(doc, j, user.MaxChips, ofUser) {
				return true
			}
		}
	}
	return false
}

// exceeds reports whether a job's chips and those that others hold are more than a limit;
// 0: there is none.
func exceeds(doc *state.Document, j *state.Job, limit int, counts func(*schema.Job) bool) bool {
	if limit == 0 {
		return false
	}
	used := chips(&j.Spec.Resources) * j.Spec.Resources.Slices
	for _, other := range doc.Jobs {
		if counts(other.Spec) {
			used += held(doc, other)
		}
	}
	return used > limit
}

// held are the chips of the slices that a job has, whichever of its alternatives they are.
func held(doc *state.Document, j *state.Job) int {
	n := 0
	for _, name := range j.Slices {
		if s := doc.Slices[name]; s != nil {
			n += accelerators.Chips(&s.Spec)
		}
	}
	return n
}

// chips are those of one slice, of TPUs or GPUs; of several alternatives those of the one
// that has the fewest.
func chips(on *schema.Resources) int {
	fewest := -1
	for _, a := range on.Alternatives() {
		n := accelerators.Chips(&schema.SliceSpec{TPU: a.TPU(), GPU: a.GPU()})
		if fewest < 0 || n < fewest {
			fewest = n
		}
	}
	return fewest
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
	if hosts := slices.Sorted(maps.Keys(r.store.hosts)); len(hosts) > 0 {
		return hosts[0] + " is in the store"
	}
	return ""
}

// mine reports whether a group carries the stack's mark.
func (r *rehearsal) mine(g *cloud.Group) bool { return r.marked(g.Spec) }

func (r *rehearsal) marked(s cloud.Spec) bool { return s.Labels[labelStack] == r.fleet.stack }

// sliceOf is the name of the slice that a group is.
func sliceOf(g *cloud.Group) string { return g.Labels[labelSlice] }
