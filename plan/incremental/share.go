package incremental

import (
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/plan/reconcile"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// What jobs share with steady ones: of limits, namespaces, users and zones a plan needs no
// more than sums, which are kept. Who shares a reservation or a group is looked up one by
// one: where one of them is decided about, the plan is made on the records and slices of
// all of them.

// sums are what the slices of steady jobs add up to.
type sums struct {
	listed  capacity.Demand // by shape
	holders map[snapshot.Holder]snapshot.Load
	load    snapshot.Load
	living  map[string]int // by the place where their capacity comes from
	pooled  map[string]int // by reservation
	zoned   int
}

func newSums() sums {
	return sums{listed: capacity.Demand{}, holders: map[snapshot.Holder]snapshot.Load{}, living: map[string]int{}, pooled: map[string]int{}}
}

func (s *sums) clone() sums {
	c := *s
	c.listed, c.holders, c.living, c.pooled = c.listed.Clone(), maps.Clone(c.holders), maps.Clone(c.living), maps.Clone(c.pooled)
	return c
}

// add counts a slice n times.
func (s *sums) add(seen *observedSlice, n int) {
	s.listed.Add(seen.shape, n, n)
	s.load = s.load.Plus(seen.all, n)
	s.hold(seen, n)
	count := func(of map[string]int, key string) {
		if key == "" {
			return
		}
		if of[key] += n; of[key] == 0 {
			delete(of, key)
		}
	}
	count(s.living, seen.place)
	count(s.pooled, seen.pool)
	if seen.place != "" {
		s.zoned += n
	}
}

// hold counts what a job holds.
func (s *sums) hold(seen *observedSlice, n int) {
	if seen.job == ofNoJob {
		return
	}
	if held := s.holders[seen.holder].Plus(seen.load, n); held == (snapshot.Load{}) {
		delete(s.holders, seen.holder)
	} else {
		s.holders[seen.holder] = held
	}
}

// rest is what a plan is to know of what it leaves out; Spent is found out later.
func (s *sums) rest(held func(schema.Address) bool) *snapshot.Rest {
	return &snapshot.Rest{Holders: s.holders, Load: s.load, Living: s.living, Zoned: s.zoned, Held: held}
}

// besides are who shares a reservation or a group with jobs that are decided about.
type besides struct {
	jobs  map[int]bool    // steady ones
	pools map[string]bool // the reservations
}

// sharedPool is how a reservation stands after the last plan.
type sharedPool struct {
	shape   capacity.Shape
	specs   int  // how many slices it is to have
	settled bool // nothing is to be decided about it: steady jobs hold its slices, or they idle
	idle    observation
}

// ofNoJob is the job of a slice that no job holds.
const ofNoJob = -1

// besides finds them, and what they share with others in turn.
func (p *Planner) besides(doc *state.Document, dirty []int, listed []listedSlice) besides {
	found := besides{jobs: map[int]bool{}, pools: map[string]bool{}}
	groups := map[schema.Address]bool{}
	var todo []schema.Address // reservations and groups
	needPool := func(name string) {
		if _, declared := p.pools[name]; declared && !found.pools[name] {
			found.pools[name] = true
			todo = append(todo, schema.ScopedAddress(schema.KindReservation, name))
		}
	}
	needGroup := func(addr schema.Address) {
		if g := addr.GroupAddress(); !g.IsZero() && !groups[g] {
			groups[g] = true
			todo = append(todo, g)
		}
	}
	for name, pool := range p.pools {
		if !pool.settled {
			needPool(name)
		}
	}
	for _, l := range listed {
		if owner := l.status.Spec.Owner; owner.Kind == schema.KindReservation {
			needPool(owner.Scoped())
		}
	}
	for _, i := range dirty {
		want := &p.desired.Jobs[i]
		needPool(want.Resources.Reservation)
		needPool(doc.Jobs[want.Addr].Spec.Resources.Reservation)
		needGroup(want.Addr)
	}
	for len(todo) > 0 {
		addr := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		needGroup(addr)
		members := p.families[addr]
		if addr.Kind == schema.KindReservation {
			members = p.drawers[addr.Scoped()]
		}
		for _, i := range members {
			found.jobs[i] = true
			needGroup(p.desired.Jobs[i].Addr)
			needPool(p.desired.Jobs[i].Resources.Reservation)
		}
		for k := range p.desired.Reservations {
			if r := &p.desired.Reservations[k]; addr.Kind == schema.KindJobGroup && r.Addr.GroupAddress() == addr {
				needPool(r.Addr.Scoped())
			}
		}
	}
	return found
}

// desiredWith is what is desired with no reservations but some.
func (p *Planner) desiredWith(pools map[string]bool) *schema.Desired {
	if len(pools) == len(p.desired.Reservations) {
		return &p.desired
	}
	part := p.desired
	part.Reservations = nil
	for i := range p.desired.Reservations {
		if r := &p.desired.Reservations[i]; pools[r.Addr.Scoped()] {
			part.Reservations = append(part.Reservations, *r)
		}
	}
	return &part
}

// addPools adds the slices of the reservations that a plan left out.
func (p *Planner) addPools(wanted capacity.Demand, but map[string]bool) {
	for name, pool := range p.pools {
		if !but[name] {
			wanted.Add(pool.shape, 1, pool.specs)
		}
	}
}

// notePools takes in how the reservations stand about which a plan decided.
func (p *Planner) notePools(d *reconcile.Reconciler) {
	if len(d.Desired.Reservations) == 0 {
		return
	}
	if !p.focus.on {
		return
	}
	for i := range d.Desired.Reservations {
		p.unsettle(d.Desired.Reservations[i].Addr.Scoped())
	}
	others, waits := map[schema.Address][]string{}, map[schema.Address]bool{}
	for name := range p.focus.others {
		if s, st := d.Next.Slices[name], d.Listed[name]; s != nil && s.Spec.Owner.Kind == schema.KindReservation {
			others[s.Spec.Owner] = append(others[s.Spec.Owner], name)
		} else if s == nil && st != nil {
			others[st.Spec.Owner] = append(others[st.Spec.Owner], name)
		}
	}
	for i := range d.Plan.Pending {
		waits[d.Plan.Pending[i].Addr] = true
	}
	for i := range d.Desired.Reservations {
		r := &d.Desired.Reservations[i]
		name, slice := r.Addr.Scoped(), plan.PoolSlice(d.Stack, r, 0)
		of := d.PoolOf(name)
		pool := sharedPool{shape: d.ShapeOf(&slice), specs: len(of.Specs)}
		if idle, settled := idleOf(d, others[r.Addr]); settled && !waits[r.Addr] && p.focus.sums.pooled[name]+len(idle) == pool.specs && pool.specs <= of.Bound.Floor {
			pool.settled, pool.idle = true, idle
			p.focus.addIdle(d, idle)
		}
		p.pools[name] = pool
	}
}

// unsettle has a reservation be decided about.
func (p *Planner) unsettle(name string) {
	pool := p.pools[name]
	p.focus.dropSteady(pool.idle)
	pool.settled, pool.idle = false, nil
	p.pools[name] = pool
}

// idleOf is what was observed of slices of a reservation that no job holds. It reports false
// where something is to be decided about them.
func idleOf(d *reconcile.Reconciler, names []string) (observation, bool) {
	seen := make(observation, 0, len(names))
	for _, name := range names {
		s, st, hosts := d.Next.Slices[name], d.Listed[name], d.Obs.Hosts[name]
		_, acting := d.Acting[name]
		if s == nil || s != d.Doc.Slices[name] || st == nil || acting || s.IdleSince.IsZero() || !isWhole(d, s, st) ||
			len(st.Down)+len(st.Edited) > 0 || len(hosts) == 0 || lifecycle.Unheard(st, hosts) >= 0 || s.RetryAt.After(d.Now) {
			return nil, false
		}
		a := d.Obs.Assignments[name]
		if _, held := d.HeldBy(name); held || a.Run != nil || len(a.PackedTasks) > 0 {
			return nil, false
		}
		one := observedSlice{name: name, status: st, assigned: a.Object, job: ofNoJob}
		one.hear(hosts)
		seen = append(seen, one)
	}
	return seen, true
}

// addIdle takes in that slices of a reservation idle as they were observed.
func (f *focus) addIdle(d *reconcile.Reconciler, seen observation) {
	for i := range seen {
		s := &seen[i]
		f.addSlice(d, s)
		f.sums.add(s, 1)
	}
}

// endsOther reports whether a plan deletes a slice of a steady job about which it was not to
// decide: then a plan of all is to find so, too.
func (p *Planner) endsOther(d *reconcile.Reconciler) bool {
	return slices.ContainsFunc(d.Plan.Actions, func(a plan.Action) bool {
		s := p.focus.steady[a.Slice.Name]
		return a.Verb == plan.DeleteSlice && s != nil
	})
}

// touched are those of jobs of which a plan has changed slices that was about others, with
// which they share a reservation or a group.
func (p *Planner) touched(d *reconcile.Reconciler, jobs map[int]bool) []int {
	var found []int
	for i := range jobs {
		for k := range p.seen[i] {
			name := p.seen[i][k].name
			if _, acting := d.Acting[name]; acting || d.Next.Slices[name] != d.Doc.Slices[name] {
				found = append(found, i)
				break
			}
		}
	}
	return found
}
