package incremental

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/schedule"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// What must never happen in a cluster, whatever plan thinks of it. The sums are
// made from the document and the world alone.

// inspect looks at one step.
func (c *cluster) inspect(before *state.Document, p *plan.Plan) {
	c.t.Helper()
	c.limits()
	c.gangs()
	c.sharing()
	c.explained(p)
	c.victims(before)
	c.overtaken(before)
	c.passedOver(before)
	c.starving()
	for addr, j := range c.doc.Jobs {
		was := before.Jobs[addr]
		if was == j {
			continue
		}
		if was != nil && j.Yields > was.Yields {
			c.tally.yields++
		}
		c.budgets(addr, j)
		if j.Status.Ended() && (was == nil || !was.Status.Ended()) {
			c.ended(addr, j)
		}
	}
}

// budgets finds more spent than was lost.
func (c *cluster) budgets(addr schema.Address, j *state.Job) {
	c.t.Helper()
	if j.Failures > min(c.broke[addr], j.Spec.Retries.Failure+1) {
		c.fail("%s failed %d times with a budget of %d, and its program %d times", addr, j.Failures, j.Spec.Retries.Failure, c.broke[addr])
	}
	if j.Preemptions > c.losses[addr] {
		c.fail("%s was preempted %d times, and lost what it ran on %d times", addr, j.Preemptions, c.losses[addr])
	}
}

// ended looks at how a job has just ended: as its budgets say, no sooner and no
// later.
func (c *cluster) ended(addr schema.Address, j *state.Job) {
	c.t.Helper()
	spent := !plan.Within(j.Failures, j.Spec.Retries.Failure) || !plan.Within(j.Preemptions, j.Spec.Retries.Preemption)
	if j.Status == schema.JobSucceeded {
		c.tally.succeeded++
	} else {
		c.tally.failed++
	}
	if spent == (j.Status == schema.JobSucceeded) {
		c.fail("%s %s after %d failures and %d preemptions of %+v: %s", addr, j.Status, j.Failures, j.Preemptions, j.Spec.Retries, j.Reason)
	}
	// Of an attempt that loses something all else is the loss's doing.
	if c.losses[addr] == 0 && j.Yields == 0 && j.Failures != c.broke[addr] {
		c.fail("%s ended with %d failures counted, its program failed %d times", addr, j.Failures, c.broke[addr])
	}
}

// sharing finds hosts that have more on them than they can hold: packed tasks with more
// cores than there are, or packed tasks beside a job that has the whole.
func (c *cluster) sharing() {
	c.t.Helper()
	cores := map[string]float64{}
	for _, s := range c.slices {
		if s.isPacked() {
			cores[s.spec.On] += s.spec.CPU
		}
	}
	for name, held := range cores {
		host := c.slices[name]
		if host == nil {
			continue // its end is not seen yet
		}
		if held > host.spec.CPU+snapshot.CPUEpsilon {
			c.fail("slice %s has packed tasks with %g cores, and has %g", name, held, host.spec.CPU)
		}
		if host.run != nil || host.stops != nil {
			c.fail("slice %s has packed tasks and runs a job as a whole", name)
		}
	}
}

// chipsOf are the chips of a job's slices, however many it holds.
func (c *cluster) chipsOf(spec *schema.Job, n int) int {
	each, known := c.chips[spec.Resources.TPU]
	if !known {
		if acc, err := accelerators.Parse(spec.Resources.TPU); err == nil {
			each = acc.Chips
		}
		c.chips[spec.Resources.TPU] = each
	}
	return n * each
}

// limits finds namespaces, users, providers and pools that have more than they may.
func (c *cluster) limits() {
	c.t.Helper()
	chips := map[[2]string]int{}
	for _, j := range c.doc.Jobs {
		n := c.chipsOf(j.Spec, len(j.Slices)+len(j.Staged))
		chips[[2]string{j.Spec.Namespace, ""}] += n
		if j.Spec.User != "" {
			chips[[2]string{j.Spec.Namespace, j.Spec.User}] += n
		}
	}
	for i := range c.doc.Desired.Namespaces {
		space := &c.doc.Desired.Namespaces[i]
		if held := chips[[2]string{space.Addr.Name, ""}]; space.MaxChips > 0 && held > space.MaxChips {
			c.fail("%s holds %d chips, its max is %d", space.Addr, held, space.MaxChips)
		}
		for _, u := range space.Users {
			if held := chips[[2]string{space.Addr.Name, u.Name}]; u.MaxChips > 0 && held > u.MaxChips {
				c.fail("user %s of %s holds %d chips, the max is %d", u.Name, space.Addr, held, u.MaxChips)
			}
		}
	}
	there := map[schema.ProviderName]int{}
	pools := map[schema.Address]int{}
	for _, s := range c.slices {
		if s.isPacked() {
			continue
		}
		there[s.spec.Provider]++
		if s.spec.Owner.Kind == schema.KindReservation {
			pools[s.spec.Owner]++
		}
	}
	for i := range c.doc.Desired.Providers {
		if p := &c.doc.Desired.Providers[i]; p.Slices > 0 && there[p.Name] > p.Slices {
			c.fail("provider %s has %d slices, its limit is %d", p.Name, there[p.Name], p.Slices)
		}
	}
	for i := range c.doc.Desired.Reservations {
		if r := &c.doc.Desired.Reservations[i]; pools[r.Addr] > r.Max.Slices {
			c.fail("%s has %d slices, its max is %d", r.Addr, pools[r.Addr], r.Max.Slices)
		}
	}
}

// gangs finds tasks of one job of two generations, and slices that two jobs hold.
func (c *cluster) gangs() {
	c.t.Helper()
	clear(c.attempts)
	for name, s := range c.slices {
		if s.run == nil {
			continue
		}
		is := runningAs{s.run.Attempt, s.gen}
		if was, other := c.attempts[s.run.JobID]; other && was != is {
			c.fail("%s runs as %+v and, on %s, as %+v", s.run.Job, was, name, is)
		}
		c.attempts[s.run.JobID] = is
	}
	clear(c.holders)
	hold := func(j *state.Job, names []string) {
		for _, name := range names {
			if other := c.holders[name]; other != nil {
				c.fail("slice %s is held by %s and by %s", name, j.Spec.Addr, other.Spec.Addr)
			}
			c.holders[name] = j
		}
	}
	for _, j := range c.doc.Jobs {
		hold(j, j.Slices)
		hold(j, j.Staged)
	}
}

// explained finds jobs that wait and do not say why.
func (c *cluster) explained(p *plan.Plan) {
	c.t.Helper()
	for addr, j := range c.doc.Jobs {
		if j.Status != schema.JobPending {
			continue
		}
		c.tally.waited++
		i, found := place(p.Pending, addr)
		if !found || len(p.Pending[i].Reasons) == 0 || slices.Contains(p.Pending[i].Reasons, "") || j.Reason == "" {
			c.fail("%s is pending and does not say why", addr)
		}
	}
}

// victims looks at who begins to yield, and to whom.
func (c *cluster) victims(before *state.Document) {
	c.t.Helper()
	for addr, j := range c.doc.Jobs {
		was := before.Jobs[addr]
		if was == nil || j.YieldsTo.IsZero() || was.YieldsTo == j.YieldsTo {
			continue
		}
		by, victim := c.unitBand(j.YieldsTo), c.unitBand(capacity.UnitOf(j.Spec))
		space := c.space(j.Spec.Namespace)
		bounded := space.Budget > 0 // it may count as batch
		if by >= victim && !bounded {
			c.fail("%s yields to %s, which is of no higher band", addr, j.YieldsTo)
		}
		free := by == 0 && (victim == 2 || bounded)
		if last := was.Last(); was.Running() && !free && c.now.Sub(last.StartedAt) < 10*time.Minute {
			c.fail("%s yields to %s after %s", addr, j.YieldsTo, c.now.Sub(last.StartedAt))
		}
	}
}

func (c *cluster) space(name string) *schema.Namespace {
	return &c.doc.Desired.Namespaces[c.index[name]]
}

// unitBand is the best band of a job or of the jobs of a group.
func (c *cluster) unitBand(addr schema.Address) int {
	best := 3
	for a, j := range c.doc.Jobs {
		if a == addr || addr.Kind == schema.KindJobGroup && a.GroupAddress() == addr {
			best = min(best, capacity.BandOrder(j.Spec.Band))
		}
	}
	return best
}

// overtaken finds units that got capacity while others, which came before and stand
// no lower, had waited for it for too long.
func (c *cluster) overtaken(before *state.Document) {
	c.t.Helper()
	granted := c.granted(before)
	if len(granted) == 0 {
		return
	}
	type rival struct{ space, user, pool, provider string }
	kind := func(j *state.Job) rival {
		r := &j.Spec.Resources
		return rival{j.Spec.Namespace, j.Spec.User, r.Reservation, string(r.Provider)}
	}
	waiting := map[rival][]*state.Job{}
	for _, addr := range slices.SortedFunc(maps.Keys(c.doc.Jobs), schema.Address.Compare) {
		j := c.doc.Jobs[addr]
		if j.Status.Ended() || j.Stop || len(j.Slices) > 0 || j.Running() || j.RetryAt.After(c.now) || !j.YieldsTo.IsZero() ||
			j.Spec.Resources.Provider == schema.ProviderGCP || addr.Group != "" || len(before.Jobs[addr].Slices) > 0 || j.Spec.Resources.Packed {
			continue
		}
		i, _ := place(c.last.Pending, addr)
		if why := strings.Join(c.last.Pending[i].Reasons, " "); strings.Contains(why, "max_chips") || strings.Contains(why, "beyond the budget") || strings.Contains(why, "room") {
			continue
		}
		waiting[kind(j)] = append(waiting[kind(j)], j)
	}
	for _, j := range granted {
		addr := j.Spec.Addr
		if addr.Group != "" || j.Spec.Resources.Packed { // a larger share may fit where a smaller one does not
			continue
		}
		for _, other := range waiting[kind(j)] {
			since := other.AdmittedAt
			if last := other.Last(); last != nil {
				since = capacity.Later(since, last.EndedAt)
			}
			waited := c.now.Sub(since)
			ahead := capacity.BandOrder(other.Spec.Band) < capacity.BandOrder(j.Spec.Band) ||
				other.Spec.Band == j.Spec.Band && other.Spec.Priority >= j.Spec.Priority && other.AdmittedAt.Before(j.AdmittedAt)
			same := other.Spec.Resources.Slices <= j.Spec.Resources.Slices && c.chipsOf(other.Spec, 1) <= c.chipsOf(j.Spec, 1)
			if ahead && (same || waited > schedule.Patience+c.pace) {
				i, _ := place(c.last.Pending, other.Spec.Addr)
				c.fail("%s (band %s, %d slices) is given %v, and %s (band %s, %d slices), which came before it, has waited for %s: %q", addr, j.Spec.Band, j.Spec.Resources.Slices, j.Slices,
					other.Spec.Addr, other.Spec.Band, other.Spec.Resources.Slices, waited, c.last.Pending[i].Reasons)
			}
		}
	}
}

// granted are the jobs that got what they are to run on in this step.
func (c *cluster) granted(before *state.Document) []*state.Job {
	var found []*state.Job
	for addr, j := range c.doc.Jobs {
		if was := before.Jobs[addr]; was != j && was != nil && len(j.Slices) > 0 && len(was.Slices) == 0 {
			found = append(found, j)
		}
	}
	slices.SortFunc(found, func(a, b *state.Job) int { return a.Spec.Addr.Compare(b.Spec.Addr) })
	return found
}

// empty finds what is left when all has ended.
func (c *cluster) empty() {
	c.t.Helper()
	for name, s := range c.slices {
		if s.spec.Owner.Kind != schema.KindReservation {
			c.fail("slice %s of %s is left over", name, s.spec.Owner)
		}
	}
	for addr, j := range c.doc.Jobs {
		if !j.Status.Ended() || len(j.Slices)+len(j.Staged) > 0 {
			c.fail("%s is %s and holds %v when all should have ended: %s", addr, j.Status, j.Slices, j.Reason)
		}
	}
	for name, s := range c.doc.Slices {
		if c.slices[name] == nil && s.Spec.Owner.Kind != schema.KindReservation { // those die, and are made again
			c.fail("slice %s is recorded and gone", name)
		}
	}
	for name := range c.obs.Assignments {
		if c.slices[name] == nil && c.doc.Slices[name] == nil {
			c.fail("the mailbox of slice %s is left over", name)
		}
	}
}
