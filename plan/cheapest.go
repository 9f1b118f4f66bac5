package plan

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/fray-ml/fray/schema"
)

// mostTried bounds how many sets of victims are looked at beyond the first one.
// What is found is the cheapest wherever a dozen candidates matter.
const mostTried = 10_000

// hostsTried is how many hosts are looked at for the price of one set.
const hostsTried = 64

// cheapest chooses whom to end so that a unit fits, nil if nobody will do.
func (d *differ) cheapest(u *unit, short []claim, tight []*fitting) []*victim {
	s := search{short: short, tight: tight, effort: 1}
	var beside []map[schema.Address]bool
	for _, f := range tight {
		beside = append(beside, f.occupants())
		s.effort += f.size() * len(f.pool.rooms) / hostsTried
	}
	ancestors := d.ancestors(u)
	for _, v := range d.candidates() {
		helps := slices.ContainsFunc(short, func(c claim) bool { return v.frees[c.bound] != load{} }) ||
			slices.ContainsFunc(beside, func(units map[schema.Address]bool) bool { return units[v.addr] })
		if v.addr == u.addr || v.band <= u.band || !helps || ancestors[v.addr] {
			continue
		}
		free := u.band == bandOrder(schema.BandProduction) && v.band == bandOrder(schema.BandBatch)
		if held := d.now.Sub(v.since); !free && held < MinLease {
			d.wakeAt(v.since.Add(MinLease))
			continue
		}
		s.all = append(s.all, v)
	}
	return s.run()
}

// ancestors are those by whose end a unit would end too, jobs and groups.
func (d *differ) ancestors(u *unit) map[schema.Address]bool {
	found := map[schema.Address]bool{}
	for _, want := range u.jobs {
		j := d.next.Jobs[want.Addr]
		for j != nil {
			if j = d.launcher(j); j != nil {
				if found[j.Spec.Addr] {
					break
				}
				found[j.Spec.Addr], found[j.Spec.Addr.GroupAddress()] = true, true
			}
		}
	}
	return found
}

// search looks for the cheapest set of victims, by branch and bound.
type search struct {
	short  []claim
	tight  []*fitting
	all    []*victim // the cheapest first
	rest   [][]load  // what all from an index on free, by claim
	effort int       // of looking at one set

	chosen []*victim
	best   []*victim
	price  cost
	tried  int
}

func (s *search) run() []*victim {
	s.rest = make([][]load, len(s.all)+1)
	s.rest[len(s.all)] = make([]load, len(s.short))
	for i := len(s.all) - 1; i >= 0; i-- {
		s.rest[i] = s.with(s.rest[i+1], s.all[i])
	}
	none := make([]load, len(s.short))
	if !s.suffices(s.all) {
		return nil
	}
	s.first()
	s.branch(0, none, cost{})
	return s.best
}

// with adds what a victim frees.
func (s *search) with(freed []load, v *victim) []load {
	sum := make([]load, len(freed))
	for i := range s.short {
		sum[i] = freed[i].plus(v.frees[s.short[i].bound], 1)
	}
	return sum
}

// suffices reports whether the unit fits when some have ended.
func (s *search) suffices(some []*victim) bool {
	if len(s.short) > 0 {
		freed := make([]load, len(s.short))
		for _, v := range some {
			freed = s.with(freed, v)
		}
		if !s.covers(freed, make([]load, len(s.short))) {
			return false
		}
	}
	return s.fits(some, nil)
}

// fits reports whether there is room on hosts when some have ended, and others.
func (s *search) fits(some, others []*victim) bool {
	if len(s.tight) == 0 {
		return true
	}
	ends := endOf(some, others)
	return !slices.ContainsFunc(s.tight, func(f *fitting) bool {
		_, ok := f.lay(ends)
		return !ok
	})
}

// endOf tells those who end from others.
func endOf(some, others []*victim) func(schema.Address) bool {
	ended := make(map[schema.Address]bool, len(some)+len(others))
	for _, set := range [2][]*victim{some, others} {
		for _, v := range set {
			ended[v.addr] = true
		}
	}
	return func(unit schema.Address) bool { return ended[unit] }
}

// covers reports whether the unit is within its bounds with what is freed.
func (s *search) covers(freed, more []load) bool {
	for i, c := range s.short {
		if c.need.exceeds(c.used.plus(freed[i], -1).plus(more[i], -1), c.limit) {
			return false
		}
	}
	return true
}

// first takes the cheapest ones until they suffice, and of these away again,
// the dearest first, what is not needed.
func (s *search) first() {
	n := sort.Search(len(s.all), func(n int) bool { return s.suffices(s.all[:n]) })
	set := s.touched(s.all[:n])
	for i := range slices.Backward(set) {
		if without := slices.Delete(slices.Clone(set), i, i+1); s.suffices(without) {
			set = without
		}
	}
	s.best = set
	for _, v := range set {
		s.price = s.price.plus(v.cost)
	}
}

// touched are those of a set that suffices without whom it would not have its
// rooms, and who free something else.
func (s *search) touched(set []*victim) []*victim {
	if len(s.tight) == 0 {
		return set
	}
	near := map[schema.Address]bool{}
	for _, f := range s.tight {
		l, _ := f.lay(endOf(set, nil))
		for _, r := range f.pool.rooms {
			if l.uses(r) {
				near[r.stays.whole] = true
				for i := range r.stays.guests {
					near[r.stays.guests[i].unit] = true
				}
			}
		}
	}
	touched := slices.DeleteFunc(slices.Clone(set), func(v *victim) bool {
		return !near[v.addr] && !slices.ContainsFunc(s.short, func(c claim) bool { return v.frees[c.bound] != load{} })
	})
	if s.suffices(touched) {
		return touched
	}
	return set
}

// branch tries the victims from the i-th on, with and without each.
func (s *search) branch(i int, freed []load, price cost) {
	if s.tried += s.effort; s.tried > mostTried {
		return
	}
	if s.covers(freed, s.rest[len(s.all)]) && s.fits(s.chosen, nil) {
		if order := price.compare(s.price); order < 0 || order == 0 && s.newer() {
			s.best, s.price = slices.Clone(s.chosen), price
		}
		return
	}
	if i == len(s.all) || price.compare(s.price) > 0 || !s.covers(freed, s.rest[i]) || !s.fits(s.chosen, s.all[i:]) {
		return
	}
	s.chosen = append(s.chosen, s.all[i])
	s.branch(i+1, s.with(freed, s.all[i]), price.plus(s.all[i].cost))
	s.chosen = s.chosen[:len(s.chosen)-1]
	s.branch(i+1, freed, price)
}

// newer reports whether those chosen began later than those of the best set, or
// are fewer.
func (s *search) newer() bool {
	began := func(set []*victim) (at time.Time) {
		for _, v := range set {
			if at.IsZero() || v.since.Before(at) {
				at = v.since
			}
		}
		return at
	}
	return cmp.Or(began(s.best).Compare(began(s.chosen)), cmp.Compare(len(s.chosen), len(s.best))) < 0
}
