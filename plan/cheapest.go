package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
)

// mostTried bounds how many sets of victims are looked at beyond the first one.
// What is found is the cheapest wherever a dozen candidates matter.
const mostTried = 10_000

// cheapest chooses whom to end so that a unit fits, nil if nobody will do.
func (d *differ) cheapest(u *unit, short []claim) []*victim {
	s := search{short: short}
	ancestors := d.ancestors(u)
	for _, v := range d.candidates() {
		helps := slices.ContainsFunc(short, func(c claim) bool { return v.frees[c.bound] != load{} })
		if v.band <= u.band || !helps || ancestors[v.addr] {
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
	short []claim
	all   []*victim // the cheapest first
	rest  [][]load  // what all from an index on free, by claim

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
	if !s.covers(s.rest[0], none) {
		return nil
	}
	s.first(none)
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

// covers reports whether the unit fits with what is freed.
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
func (s *search) first(none []load) {
	var set []*victim
	freed := none
	for _, v := range s.all {
		if s.covers(freed, none) {
			break
		}
		set, freed = append(set, v), s.with(freed, v)
	}
	for i := range slices.Backward(set) {
		without := slices.Delete(slices.Clone(set), i, i+1)
		sum := none
		for _, v := range without {
			sum = s.with(sum, v)
		}
		if s.covers(sum, none) {
			set = without
		}
	}
	s.best = set
	for _, v := range set {
		s.price = s.price.plus(v.cost)
	}
}

// branch tries the victims from the i-th on, with and without each.
func (s *search) branch(i int, freed []load, price cost) {
	if s.tried++; s.tried > mostTried {
		return
	}
	if s.covers(freed, s.rest[len(s.all)]) {
		if order := price.compare(s.price); order < 0 || order == 0 && s.newer() {
			s.best, s.price = slices.Clone(s.chosen), price
		}
		return
	}
	if i == len(s.all) || price.compare(s.price) > 0 || !s.covers(freed, s.rest[i]) {
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
