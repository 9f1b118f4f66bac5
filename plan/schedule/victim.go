package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A unit of a higher band that does not fit ends units of lower ones, if that
// makes room: the set with the fewest chips, then with the least time run, then
// the newest, of whole groups. Their slices are given up, and kept for the one
// that they were given up for. Such an end counts as preempted and spends no
// budget, neither that of failures nor that of preemptions: the one bounds how
// often a program may fail, the other how often its machines may, and this says
// nothing of either. [state.Job.Yields] counts it.

// MinLease is how long what runs is left alone by those of a higher band, but for
// batch by production: less, and starting would cost more than what gets done.
const MinLease = 10 * time.Minute

// victim is a unit that may be ended.
type victim struct {
	addr    schema.Address // of the group or job
	members []*state.Job   // that hold something
	band    int            // in effect: the best of all members that have not ended, also of those that wait
	since   time.Time      // its start
	cost    cost
	frees   map[capacity.Bound]snapshot.Load
	seats   []*snapshot.Occupant // of the reservations in which room is looked for, see cheapest
}

// cost is what ending something costs.
type cost struct {
	chips int
	milli int // thousandths of cores of hosts without TPUs
	ran   time.Duration
}

func (c cost) compare(b cost) int {
	return cmp.Or(cmp.Compare(c.chips, b.chips), cmp.Compare(c.milli, b.milli), cmp.Compare(c.ran, b.ran))
}

func (c cost) plus(b cost) cost {
	return cost{chips: c.chips + b.chips, milli: c.milli + b.milli, ran: c.ran + b.ran}
}

// makeRoom sees to it that a unit will fit, and says how; nothing if that cannot be.
// Where its reservations could grow for it and their provider has no room for that,
// their present holders make some.
func (d *Victims) makeRoom(u *capacity.Unit, w *capacity.Wants) plan.Reason {
	why := d.makeRoomFor(u, w)
	if why.None() && w.Grows {
		why = d.makeRoomFor(u, w.Ungrown())
	}
	return why
}

func (d *Victims) makeRoomFor(u *capacity.Unit, w *capacity.Wants) plan.Reason {
	d.findGoing()
	coming := func(c capacity.Claim) capacity.Claim { // as it will be
		c.Used = c.Used.Plus(d.going(c.Bound), -1)
		c.Used = c.Beside(d.Reserved[c.Bound])
		return c
	}
	var short []capacity.Claim
	for _, c := range w.Claims {
		if c = coming(c); !w.Shares(c.Bound) && c.Need.Exceeds(c.Used, c.Limit) {
			short = append(short, c)
		}
	}
	tight := capacity.Tightest(w.Hosts)
	if len(short)+len(tight) == 0 {
		d.Reserve(u, w)
		return plan.Underway(d.roomFor(u))
	}
	if d.isInfeasible(u, short) || capacity.IsInfeasibleIn(tight, u.Band) {
		return plan.Reason{}
	}
	ended := d.cheapest(u, short, tight)
	if ended == nil {
		return plan.Reason{}
	}
	for _, v := range ended {
		d.evict(v, u)
	}
	d.Reserve(u, w)
	return plan.Underway(d.roomFor(u))
}

// infeasible is a claim for which no victims of a band can make room.
type infeasible struct {
	band  int
	claim capacity.Claim
}

// noteInfeasible notes what no victims make room for in as low a band, whatever
// else a unit lacks.
func (d *Victims) noteInfeasible(u *capacity.Unit, s *search) {
	if d.sparesAncestors(u) { // others need not
		return
	}
	for i, c := range s.short {
		if c.Need.Exceeds(c.Used.Plus(s.rest[0][i], -1), c.Limit) {
			d.infeasible = append(d.infeasible, infeasible{band: u.Band, claim: c})
		}
	}
	for _, f := range s.tight {
		if !s.fitsIn(f, s.all) {
			f.GiveUp(u.Band)
		}
	}
}

// isInfeasible reports whether no less was tried in vain: for as much, by as high a band.
func (d *Victims) isInfeasible(u *capacity.Unit, short []capacity.Claim) bool {
	return slices.ContainsFunc(d.infeasible, func(h infeasible) bool {
		return h.band <= u.Band && slices.ContainsFunc(short, func(c capacity.Claim) bool {
			n, m := c.Need, h.claim.Need
			return c.Bound == h.claim.Bound && n.Slices >= m.Slices && n.Chips >= m.Chips && n.GPUs >= m.GPUs && n.Milli >= m.Milli && n.Memory >= m.Memory
		})
	})
}

// roomFor says who makes room for a unit.
func (d *Victims) roomFor(u *capacity.Unit) string {
	var by []schema.Address
	for _, addr := range d.yielding {
		if d.Next.Jobs[addr].YieldsTo == u.Addr {
			by = append(by, addr)
		}
	}
	if len(by) == 0 {
		return "room is being made by what ends"
	}
	slices.SortFunc(by, schema.Address.Compare)
	return listed(by, len(by)) + " make" + capacity.Plural(len(by) == 1) + " room for it"
}

// evict begins to end a victim for a unit.
func (d *Victims) evict(v *victim, by *capacity.Unit) {
	for b, l := range v.frees {
		d.Goes[b] = d.Goes[b].Plus(l, 1)
	}
	for _, j := range v.members {
		addr := j.Spec.Addr
		e := d.Edit(addr)
		e.YieldsTo = by.Addr
		if e.Running() {
			e.Yields++
		}
		d.yielding, d.evicted = append(d.yielding, addr), append(d.evicted, addr)
		why := lifecycle.YieldsTo(by.Addr, lifecycle.BandName(by.Declared))
		if e.Running() {
			d.Drift(plan.Drift{Kind: plan.DriftYields, Addr: addr, Found: why, Then: "it will be tried again when there is room"})
		}
		d.Yield(addr)
	}
	d.victims = slices.DeleteFunc(d.victims, func(other *victim) bool { return other == v })
	d.LeaveHosts()
}

// going is what of a bound comes free by what is going on.
func (d *Victims) going(b capacity.Bound) snapshot.Load {
	d.findGoing()
	return d.Goes[b]
}

func (d *Victims) findGoing() {
	if d.Goes != nil {
		return
	}
	d.Goes = map[capacity.Bound]snapshot.Load{}
	for addr, j := range d.Next.Jobs {
		if j.Status.Ended() || !j.YieldsTo.IsZero() || j.Stop || d.Leaving[addr] {
			d.addFreed(d.Goes, j.Spec, len(j.Slices)+len(j.Staged))
			d.addQuota(d.Goes, j)
		}
		if !j.YieldsTo.IsZero() {
			d.yielding = append(d.yielding, addr)
		}
	}
	for name, p := range d.Pooled {
		if p.Going > 0 {
			b := capacity.Bound{Kind: capacity.OfPool, Name: name}
			d.Goes[b] = d.Goes[b].Plus(snapshot.Load{Slices: 1}, p.Going)
		}
	}
	for name, s := range d.Next.Slices {
		if s.Terminating.IsZero() {
			continue
		}
		owner := s.Spec.Owner
		wanted := owner.Kind == schema.KindReservation || d.WantedSlice(name, owner)
		if d.IsStuck(name) || wanted && !d.IsGoing(s) {
			continue
		}
		b := capacity.Bound{Kind: capacity.OfProvider, Name: string(s.Spec.Provider)}
		d.Goes[b] = d.Goes[b].Plus(d.SliceLoad(&s.Spec), 1)
	}
}

// candidates are the units that run, or hold what they are to run on.
func (d *Victims) candidates() []*victim {
	if d.victims != nil {
		return d.victims
	}
	byUnit, spared := map[schema.Address]*victim{}, map[schema.Address]bool{}
	waiting := map[schema.Address]int{} // the best band, by group, of members that hold nothing
	demoted := d.beyondBudget()
	for addr, j := range d.Next.Jobs {
		at := addr
		if g := addr.GroupAddress(); !g.IsZero() {
			at = g
		}
		_, changing := d.Verbs[addr]
		switch {
		case j.Status.Ended():
			continue
		case len(j.Slices) == 0:
			if band, known := waiting[at]; at != addr && !d.Leaving[addr] && !j.Stop {
				is := d.bandWaiting(j)
				if known {
					is = min(is, band)
				}
				waiting[at] = is
			}
			continue
		case d.Rest.Counts(addr) || j.Stop || !j.YieldsTo.IsZero() || changing || d.Leaving[addr] || j.Running() && j.Last().StopGeneration != 0:
			spared[at] = true
			continue
		}
		v := byUnit[at]
		if v == nil {
			v = &victim{addr: at, band: capacity.BandCount, frees: map[capacity.Bound]snapshot.Load{}}
			byUnit[at] = v
		}
		d.enlist(v, j, demoted[addr])
	}
	d.victims = make([]*victim, 0, len(byUnit))
	for at, v := range byUnit {
		if !spared[at] {
			if band, waits := waiting[at]; waits {
				v.band = min(v.band, band)
			}
			slices.SortFunc(v.members, func(a, b *state.Job) int { return a.Spec.Addr.Compare(b.Spec.Addr) })
			d.victims = append(d.victims, v)
		}
	}
	slices.SortFunc(d.victims, func(a, b *victim) int {
		return cmp.Or(a.cost.compare(b.cost), b.since.Compare(a.since), a.addr.Compare(b.addr))
	})
	return d.victims
}

// bandWaiting is the band in effect of a job that holds nothing.
func (d *Victims) bandWaiting(j *state.Job) int {
	band, chips := capacity.BandOrder(j.Spec.Band), j.Spec.Resources.Slices*d.LoadOf(d.Running(j.Spec)).Chips
	s := d.Accounts()
	for _, a := range s.Of(capacity.SpaceOf(s, j), j.Spec.User) {
		if a.OverBudget(band, chips) {
			return capacity.BandOrder(schema.BandBatch)
		}
	}
	return band
}

// enlist adds a job to the unit that it would end with.
func (d *Victims) enlist(v *victim, j *state.Job, demoted bool) {
	band, since := capacity.BandOrder(j.Spec.Band), j.AdmittedAt
	if demoted {
		band = capacity.BandOrder(schema.BandBatch)
	}
	if last := j.Last(); last != nil {
		since = last.StartedAt
	}
	n := len(j.Slices) + len(j.Staged)
	ran := time.Duration(0)
	if j.Running() {
		ran = d.Now.Sub(since)
	}
	each := d.LoadOf(d.Running(j.Spec))
	v.cost.chips += n * each.Chips
	v.cost.milli += n * each.Milli
	v.cost.ran = max(v.cost.ran, ran)
	v.since = capacity.Later(v.since, since)
	v.band = min(v.band, band)
	v.members = append(v.members, j)
	d.addFreed(v.frees, j.Spec, n)
	d.addQuota(v.frees, j)
	if j.Spec.Resources.Reservation == "" || j.Spec.Resources.Packed || j.Running() {
		return
	}
	b := capacity.Bound{Kind: capacity.OfPool, Name: j.Spec.Resources.Reservation}
	for _, name := range j.Slices {
		if d.Dies(name) {
			v.frees[b] = v.frees[b].Plus(snapshot.Load{Slices: 1}, -1)
		}
	}
}

// beyondBudget are the jobs with which the budgets of their namespaces or users
// are exceeded: they count as batch.
func (d *Victims) beyondBudget() map[schema.Address]bool {
	if d.Accounts().AnyOverBudget() {
		snapshot.NeedWhole(d.Draft)
	}
	beyond := map[schema.Address]bool{}
	held := map[*capacity.Account][]*state.Job{}
	s := d.Accounts()
	for _, j := range d.Next.Jobs {
		if len(j.Slices)+len(j.Staged) == 0 {
			continue
		}
		for _, a := range s.Of(capacity.SpaceOf(s, j), j.Spec.User) {
			if a.Budget > 0 {
				held[a] = append(held[a], j)
			}
		}
	}
	for a, jobs := range held {
		slices.SortFunc(jobs, func(a, b *state.Job) int {
			return cmp.Or(cmp.Compare(capacity.BandOrder(a.Spec.Band), capacity.BandOrder(b.Spec.Band)), cmp.Compare(b.Spec.Priority, a.Spec.Priority),
				a.AdmittedAt.Compare(b.AdmittedAt), a.Spec.Addr.Compare(b.Spec.Addr))
		})
		chips := 0
		for _, j := range jobs {
			held := s.Held(j.Spec.Addr)
			chips += held.Load.Chips + held.Staged.Chips
			if chips > a.Budget {
				beyond[j.Spec.Addr] = true
			}
		}
	}
	return beyond
}
