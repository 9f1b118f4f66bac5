package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

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
	band    int            // in effect
	since   time.Time      // its start
	cost    cost
	frees   map[bound]load
	seats   []*occupant // of the reservations in which room is looked for, see cheapest
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
// those who have them now make some.
func (d *differ) makeRoom(u *unit, w *wants) reason {
	why := d.makeRoomFor(u, w)
	if why.none() && w.grows {
		why = d.makeRoomFor(u, w.ungrown())
	}
	return why
}

func (d *differ) makeRoomFor(u *unit, w *wants) reason {
	d.findGoing()
	coming := func(c claim) claim { // as it will be
		c.used = c.used.plus(d.going(c.bound), -1)
		c.used = c.beside(d.keeps[c.bound])
		return c
	}
	var short []claim
	for _, c := range w.claims {
		if c = coming(c); !w.shares(c.bound) && c.need.exceeds(c.used, c.limit) {
			short = append(short, c)
		}
	}
	tight := tightest(w.hosts)
	if len(short)+len(tight) == 0 {
		d.keep(u, w)
		return underway(d.roomFor(u))
	}
	if d.isHopeless(u, short) || isHopelessIn(tight, u.band) {
		return reason{}
	}
	ended := d.cheapest(u, short, tight)
	if ended == nil {
		return reason{}
	}
	for _, v := range ended {
		d.evict(v, u)
	}
	d.keep(u, w)
	return underway(d.roomFor(u))
}

// ungrown is what a unit needs if no reservation grows for it: nothing of providers,
// but what others have of those reservations.
func (w *wants) ungrown() *wants {
	is := &wants{full: w.full}
	for _, c := range w.claims {
		if c.bound.kind == ofProvider {
			continue
		}
		c.used, c.unmade = c.used.plus(c.unmade, 1), load{}
		is.claims = append(is.claims, c)
	}
	for _, f := range w.hosts {
		still := *f
		still.still = true
		is.hosts = append(is.hosts, &still)
	}
	return is
}

// hopeless is a claim for which nobody of a band can make room.
type hopeless struct {
	band  int
	claim claim
}

// giveUpHope notes what nobody makes room for, for one of as low a band, whatever
// else a unit lacks.
func (d *differ) giveUpHope(u *unit, s *search) {
	if d.sparesAncestors(u) { // others need not
		return
	}
	for i, c := range s.short {
		if c.need.exceeds(c.used.plus(s.rest[0][i], -1), c.limit) {
			d.hopeless = append(d.hopeless, hopeless{band: u.band, claim: c})
		}
	}
	for _, f := range s.tight {
		if !s.fitsIn(f, s.all) {
			f.giveUpHope(u.band)
		}
	}
}

// isHopeless reports whether no less was tried in vain: for as much, by as high a band.
func (d *differ) isHopeless(u *unit, short []claim) bool {
	return slices.ContainsFunc(d.hopeless, func(h hopeless) bool {
		return h.band <= u.band && slices.ContainsFunc(short, func(c claim) bool {
			n, m := c.need, h.claim.need
			return c.bound == h.claim.bound && n.slices >= m.slices && n.chips >= m.chips && n.milli >= m.milli && n.memory >= m.memory
		})
	})
}

// roomFor says who makes room for a unit.
func (d *differ) roomFor(u *unit) string {
	var by []schema.Address
	for _, addr := range d.yielding {
		if d.next.Jobs[addr].YieldsTo == u.addr {
			by = append(by, addr)
		}
	}
	if len(by) == 0 {
		return "room is being made by what ends"
	}
	slices.SortFunc(by, schema.Address.Compare)
	return listed(by, len(by)) + " make" + plural(len(by) == 1) + " room for it"
}

// evict begins to end a victim for a unit.
func (d *differ) evict(v *victim, by *unit) {
	for b, l := range v.frees {
		d.goes[b] = d.goes[b].plus(l, 1)
	}
	for _, j := range v.members {
		addr := j.Spec.Addr
		e := d.edit(addr)
		e.YieldsTo = by.addr
		if e.Running() {
			e.Yields++
		}
		d.yielding = append(d.yielding, addr)
		why := yieldsTo(by.addr, bandName(by.declared))
		if e.Running() {
			d.drift(addr, "", why, "it will be tried again when there is room")
		}
		d.yield(addr)
	}
	d.victims = slices.DeleteFunc(d.victims, func(other *victim) bool { return other == v })
	d.leaveHosts()
}

func yieldsTo(addr schema.Address, band schema.Band) string {
	return fmt.Sprintf("yields to %s (band %s)", addr, band)
}

// yield ends a job that makes room for another, and gives up what it holds.
func (d *differ) yield(addr schema.Address) {
	j := d.next.Jobs[addr]
	why := "yields to " + j.YieldsTo.String()
	if band, found := d.bandOf(j.YieldsTo); found {
		why = yieldsTo(j.YieldsTo, band)
	}
	if j.Running() {
		if d.end(addr, schema.TaskPreempted, why); d.next.Jobs[addr].Running() {
			return
		}
	}
	by, places := j.YieldsTo, d.quotas(j)
	if d.released(addr, state.Termination{Cause: state.CauseYielded, Text: why}) {
		d.tally(addr)
		d.edit(addr).YieldsTo = schema.Address{}
		d.quotaFreed(places, by)
	}
}

// bandOf is the band that a unit declares.
func (d *differ) bandOf(addr schema.Address) (schema.Band, bool) {
	best := bandCount
	if j := d.next.Jobs[addr]; j != nil {
		best = bandOrder(j.Spec.Band)
	} else if addr.Kind == schema.KindJobGroup {
		for _, member := range d.family(addr) {
			best = min(best, bandOrder(member.Band))
		}
	}
	if best == bandCount {
		return "", false
	}
	return bandName(best), true
}

// going is what of a bound comes free by what is going on.
func (d *differ) going(b bound) load {
	d.findGoing()
	return d.goes[b]
}

func (d *differ) findGoing() {
	if d.goes != nil {
		return
	}
	d.goes = map[bound]load{}
	for addr, j := range d.next.Jobs {
		if j.Status.Ended() || !j.YieldsTo.IsZero() || j.Stop || d.leaving[addr] {
			d.addFreed(d.goes, j.Spec, len(j.Slices)+len(j.Staged))
			d.addQuota(d.goes, j)
		}
		if !j.YieldsTo.IsZero() {
			d.yielding = append(d.yielding, addr)
		}
	}
	for name, s := range d.next.Slices {
		if s.Terminating.IsZero() {
			continue
		}
		owner := s.Spec.Owner
		wanted := owner.Kind == schema.KindReservation || d.wantedSlice(name, owner)
		if d.isStuck(name) || wanted && !d.isGoing(s) {
			continue
		}
		b := bound{kind: ofProvider, name: string(s.Spec.Provider)}
		d.goes[b] = d.goes[b].plus(d.sliceLoad(&s.Spec), 1)
	}
}

// candidates are the units that run, or hold what they are to run on.
func (d *differ) candidates() []*victim {
	if d.victims != nil {
		return d.victims
	}
	byUnit, spared := map[schema.Address]*victim{}, map[schema.Address]bool{}
	demoted := d.beyondBudget()
	for addr, j := range d.next.Jobs {
		at := addr
		if g := addr.GroupAddress(); !g.IsZero() {
			at = g
		}
		_, changing := d.verbs[addr]
		switch {
		case j.Status.Ended() || len(j.Slices) == 0:
			continue
		case j.Stop || !j.YieldsTo.IsZero() || changing || d.leaving[addr] || j.Running() && j.Last().StopGeneration != 0:
			spared[at] = true
			continue
		}
		v := byUnit[at]
		if v == nil {
			v = &victim{addr: at, band: bandCount, frees: map[bound]load{}}
			byUnit[at] = v
		}
		d.enlist(v, j, demoted[addr])
	}
	d.victims = make([]*victim, 0, len(byUnit))
	for at, v := range byUnit {
		if !spared[at] {
			slices.SortFunc(v.members, func(a, b *state.Job) int { return a.Spec.Addr.Compare(b.Spec.Addr) })
			d.victims = append(d.victims, v)
		}
	}
	slices.SortFunc(d.victims, func(a, b *victim) int {
		return cmp.Or(a.cost.compare(b.cost), b.since.Compare(a.since), a.addr.Compare(b.addr))
	})
	return d.victims
}

// enlist adds a job to the unit that it would end with.
func (d *differ) enlist(v *victim, j *state.Job, demoted bool) {
	band, since := bandOrder(j.Spec.Band), j.AdmittedAt
	if demoted {
		band = bandOrder(schema.BandBatch)
	}
	if last := j.Last(); last != nil {
		since = last.StartedAt
	}
	n := len(j.Slices) + len(j.Staged)
	ran := time.Duration(0)
	if j.Running() {
		ran = d.now.Sub(since)
	}
	each := d.eachLoad(j.Spec)
	v.cost.chips += n * each.chips
	v.cost.milli += n * each.milli
	v.cost.ran = max(v.cost.ran, ran)
	v.since = later(v.since, since)
	v.band = min(v.band, band)
	v.members = append(v.members, j)
	d.addFreed(v.frees, j.Spec, n)
	d.addQuota(v.frees, j)
	if j.Spec.Resources.Reservation == "" || j.Spec.Resources.Packed || j.Running() {
		return
	}
	b := bound{kind: ofPool, name: j.Spec.Resources.Reservation}
	for _, name := range j.Slices {
		if d.dies(name) {
			v.frees[b] = v.frees[b].plus(load{slices: 1}, -1)
		}
	}
}

// dies reports whether a slice is no use to anybody before it is made anew: who
// waits for that already is not to give it up for another who would wait, too.
func (d *differ) dies(name string) bool {
	s, st := d.next.Slices[name], d.slices[name]
	return s == nil || !s.Terminating.IsZero() || st != nil && (st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting)
}

// beyondBudget are the jobs with which the budgets of their namespaces or users
// are exceeded: they count as batch.
func (d *differ) beyondBudget() map[schema.Address]bool {
	beyond := map[schema.Address]bool{}
	held := map[*account][]*state.Job{}
	s := d.accounts()
	for _, j := range d.next.Jobs {
		if len(j.Slices)+len(j.Staged) == 0 {
			continue
		}
		for _, a := range s.of(spaceOf(s, j), j.Spec.User) {
			if a.budget > 0 {
				held[a] = append(held[a], j)
			}
		}
	}
	for a, jobs := range held {
		slices.SortFunc(jobs, func(a, b *state.Job) int {
			return cmp.Or(cmp.Compare(bandOrder(a.Spec.Band), bandOrder(b.Spec.Band)), cmp.Compare(b.Spec.Priority, a.Spec.Priority),
				a.AdmittedAt.Compare(b.AdmittedAt), a.Spec.Addr.Compare(b.Spec.Addr))
		})
		chips := 0
		for _, j := range jobs {
			chips += s.held[j.Spec.Addr].load.chips + s.held[j.Spec.Addr].staged.chips
			if chips > a.budget {
				beyond[j.Spec.Addr] = true
			}
		}
	}
	return beyond
}

// launcher is the job that launched another, nil if none did or it is gone.
func (d *differ) launcher(j *state.Job) *state.Job {
	if j.Launch == nil || j.Launch.Parent == "" {
		return nil
	}
	if d.byID == nil {
		d.byID = make(map[string]schema.Address, len(d.next.Jobs))
		for addr, j := range d.next.Jobs {
			d.byID[j.ID] = addr
		}
	}
	return d.next.Jobs[d.byID[j.Launch.Parent]]
}
