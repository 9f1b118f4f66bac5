package capacity

import (
	"cmp"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// newPool finds out which slices a reservation is to have, of those recorded as its
// own and beside them. It takes up what is listed and not recorded before it makes others; what
// of that it cannot have counts until it is gone.
func (d *Pools) newPool(r *schema.Reservation, recorded, unrecorded []string) *snapshot.Pool {
	held := 0
	for _, name := range recorded {
		if _, is := d.HeldBy(name); is {
			held++
		}
	}
	p := &snapshot.Pool{Of: r, Bound: d.BoundsOf(r, held)}
	unfit := findUnrecorded(d, p, unrecorded)
	d.keepSlices(p, recorded)
	kept := make(map[string]bool, len(p.Specs))
	for i := range p.Specs {
		kept[p.Specs[i].Name] = true
	}
	counted, goes := len(p.Specs)+unfit, unfit
	for _, name := range recorded {
		_, listed := d.Listed[name]
		dropped := !listed && d.score(name) == useless && d.Known(&d.Next.Slices[name].Spec)
		if kept[name] || dropped || d.IsStuck(name) {
			continue
		}
		counted++
		if _, is := d.HeldBy(name); !is {
			goes++
		}
	}
	p.Room = max(0, p.Bound.Most-counted)
	p.Going = max(0, p.Bound.Most-counted+goes) - p.Room
	return p
}

// BoundsOf says how many slices a reservation has while jobs hold so many of them.
func (d *Pools) BoundsOf(r *schema.Reservation, held int) snapshot.Bounds {
	expiry := expiryOf(r, d.Next.Resources[r.Addr], d.Now)
	if isOver(expiry, d.Now) {
		return snapshot.Bounds{Over: expiry}
	}
	if !expiry.IsZero() {
		d.WakeAt(expiry)
	}
	b := snapshot.Bounds{Floor: r.Min.Slices, Most: max(r.Min.Slices, r.Max.Slices)}
	switch r.Growth {
	case schema.GrowthOffer:
		b.Floor = min(b.Most, max(b.Floor, held+1))
	case schema.GrowthDemand, "":
	}
	return b
}

// keepSlices chooses those to keep: what jobs hold first, then what is up, then what
// is on its way, each under the name that it has. What is not to be had counts
// only where it is needed for the least number; where that is not enough there are
// others, by names that no other slice bears.
func (d *Pools) keepSlices(p *snapshot.Pool, recorded []string) {
	r := p.Of
	staying := slices.DeleteFunc(slices.Clone(recorded), func(name string) bool { return d.poolMoves(r, name) })
	slices.SortStableFunc(staying, func(a, b string) int {
		return cmp.Or(cmp.Compare(d.score(a), d.score(b)), cmp.Compare(d.Next.Slices[a].Spec.Index, d.Next.Slices[b].Spec.Index))
	})
	p.Used = make(map[int]bool, len(staying))
	in := map[string]schema.SliceSpec{} // by zone: names take time to make, and these have theirs
	for _, name := range staying {
		was := &d.Next.Slices[name].Spec
		full := len(p.Specs) >= p.Bound.Most || len(p.Specs) >= p.Bound.Floor && d.score(name) == useless
		if p.Used[was.Index] || full {
			continue
		}
		spec, made := in[was.Zone]
		if !made {
			spec = d.poolSlice(r, 0, was.Zone)
			in[was.Zone] = spec
		}
		spec.Index, spec.Name, spec.Cloud.Engine = was.Index, name, cmp.Or(r.Cloud.Engine, was.Cloud.Engine)
		p.Used[was.Index] = true
		if !d.IsTaken(&spec) && !d.IsStuck(name) {
			p.Specs = append(p.Specs, spec)
		}
	}
	leaving := leavingGroup(d, r, recorded)
	for len(p.Specs)+leaving < p.Bound.Floor {
		spec, found := nextUnrecorded(p, 0)
		if !found {
			break
		}
		p.Used[spec.Index] = true
		p.Specs = append(p.Specs, spec)
	}
	for index := 0; len(p.Specs)+leaving < p.Bound.Floor; index++ {
		if p.Used[index] {
			continue
		}
		spec := d.poolSlice(r, index, d.poolZone(r, index))
		p.Used[index] = true
		if !d.IsTaken(&spec) && !d.IsStuck(spec.Name) {
			p.Specs = append(p.Specs, spec)
		}
	}
	for _, name := range recorded { // what goes has its name until it is gone
		p.Used[d.Next.Slices[name].Spec.Index] = true
	}
	slices.SortFunc(p.Specs, func(a, b schema.SliceSpec) int { return cmp.Compare(a.Index, b.Index) })
}

// findUnrecorded notes which of the slices that are listed and not recorded a pool can take up, in
// index order, and returns how many it cannot.
func findUnrecorded(d *Pools, p *snapshot.Pool, unrecorded []string) (unfit int) {
	for _, name := range unrecorded {
		st := d.Listed[name]
		spec := d.poolSlice(p.Of, st.Spec.Index, st.Spec.Zone)
		spec.Name, spec.Cloud.Engine = name, cmp.Or(p.Of.Cloud.Engine, st.Spec.Cloud.Engine)
		outside := st.Spec.Zone != "" && (len(p.Of.Zones)+len(p.Of.Regions) > 0 && !slices.Contains(d.poolZones(p.Of), st.Spec.Zone) || d.IsApart(p.Of, st.Spec.Zone))
		if st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting || spec.Fixed() != st.Spec.Fixed() || outside {
			unfit++
			continue
		}
		p.Unrecorded = append(p.Unrecorded, spec)
	}
	slices.SortFunc(p.Unrecorded, func(a, b schema.SliceSpec) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Name, b.Name))
	})
	return unfit
}

// nextUnrecorded is the one that a pool takes up after as many others.
func nextUnrecorded(p *snapshot.Pool, after int) (schema.SliceSpec, bool) {
	for i := range p.Unrecorded {
		if p.Used[p.Unrecorded[i].Index] {
			continue
		}
		if after == 0 {
			return p.Unrecorded[i], true
		}
		after--
	}
	return schema.SliceSpec{}, false
}

// score ranks the recorded slices of a reservation, the best first.
func (d *Pools) score(name string) int {
	s := d.Next.Slices[name]
	_, listed := d.Listed[name]
	_, held := d.HeldBy(name)
	switch {
	case held:
		return inUse
	case d.Dies(name):
		return useless
	case listed, s.Listed && !d.Known(&s.Spec):
		return isThere
	case !s.PendingSince.IsZero() && s.Failed == "":
		return comes
	}
	return useless
}

const (
	inUse = iota
	isThere
	comes
	useless // it dies, was refused, or was never asked for
)

// moreOf are the next n slices by which a pool may grow.
func (d *Pools) moreOf(p *snapshot.Pool, n int) []schema.SliceSpec {
	var specs []schema.SliceSpec
	for len(specs) < n {
		spec, found := nextUnrecorded(p, len(specs))
		if !found {
			break
		}
		specs = append(specs, spec)
	}
	isIn := func(index int) bool {
		return slices.ContainsFunc(specs, func(spec schema.SliceSpec) bool { return spec.Index == index })
	}
	for index := 0; len(specs) < n; index++ {
		if p.Used[index] || isIn(index) {
			continue
		}
		spec := d.poolSlice(p.Of, index, d.poolZone(p.Of, index))
		if !d.IsTaken(&spec) && !d.IsStuck(spec.Name) {
			specs = append(specs, spec)
		}
	}
	return specs
}

// grow adds slices to a pool; there is room.
func (d *Pools) grow(p *snapshot.Pool, n int) {
	for _, spec := range d.moreOf(p, n) {
		p.Used[spec.Index] = true
		if st, listed := d.Listed[spec.Name]; listed { // in no record
			d.RecordOf(st)
		} else {
			d.PutSlice(state.Slice{Spec: spec})
		}
		p.Specs = append(p.Specs, spec)
		p.Free = append(p.Free, spec.Name)
		p.Room--
	}
	slices.SortFunc(p.Specs, func(a, b schema.SliceSpec) int { return cmp.Compare(a.Index, b.Index) })
}

// Redraw gives a job that waits for a slice of its pool one that is up and free
// instead, so that it does not wait while that idles.
func (d *Pools) Redraw(want *schema.Job) {
	p := d.PoolOf(want.Resources.Reservation)
	if p == nil || !p.Bound.Over.IsZero() {
		return
	}
	for i, name := range d.Next.Jobs[want.Addr].Slices {
		if len(p.Free) == 0 || !d.IsBorn(p.Free[0]) {
			return
		}
		if d.IsBorn(name) {
			continue
		}
		e := d.Edit(want.Addr)
		e.Slices = slices.Clone(e.Slices)
		e.Slices[i] = p.Free[0]
		d.Holders[p.Free[0]] = want.Addr
		p.NoteWhole(p.Free[0], d.occupant(p, want.Addr))
		p.Free, p.Users = p.Free[1:], ""
		delete(d.Holders, name)
		p.NoteWhole(name, nil)
		if d.isKept(p, name) {
			p.Free = append(p.Free, name)
		}
	}
}

// isKept reports whether a slice is one of those that a pool is to have, and may
// be had.
func (d *Pools) isKept(p *snapshot.Pool, name string) bool {
	s := d.Next.Slices[name]
	_, listed := d.Listed[name]
	return s != nil && (listed || s.Tries < Rejections) &&
		slices.ContainsFunc(p.Specs, func(spec schema.SliceSpec) bool { return spec.Name == name })
}

// Expiries are when the reservations end that do.
func (d *Pools) Expiries() []plan.Expiry {
	var found []plan.Expiry
	for i := range d.Desired.Reservations {
		r := &d.Desired.Reservations[i]
		if at := expiryOf(r, d.Next.Resources[r.Addr], d.Now); !at.IsZero() {
			found = append(found, plan.Expiry{Addr: r.Addr, At: at, Over: isOver(at, d.Now)})
		}
	}
	return found
}

// NoteIdle records whether no job holds a slice, and since when.
func (d *Pools) NoteIdle(name string, idle bool) {
	s := d.Next.Slices[name]
	switch {
	case s == nil || idle != s.IdleSince.IsZero():
	case idle:
		d.EditSlice(name).IdleSince = d.Now
	default:
		d.EditSlice(name).IdleSince = time.Time{}
	}
}

// WhyNot says why a reservation does not keep a slice.
func (d *Pools) WhyNot(addr schema.Address) state.Cause {
	p := d.Pooled[addr.Scoped()]
	switch {
	case p == nil:
		return state.CauseUndeclared
	case !p.Bound.Over.IsZero():
		return state.CauseExpired
	}
	return state.CauseUnneeded
}

// Dies reports whether a slice is no use to anybody before it is made anew: who
// waits for that already is not to give it up for another who would wait, too.
func (d *Pools) Dies(name string) bool {
	s, st := d.Next.Slices[name], d.Listed[name]
	return s == nil || !s.Terminating.IsZero() || st != nil && (st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting)
}
