package schedule

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// mostTried bounds how many sets of victims are looked at beyond the first one.
// What is found is the cheapest wherever a dozen candidates matter.
const mostTried = 10_000

// looksTried is how many hosts and packed tasks cost as much to check as one set.
const looksTried = 16

// cheapest chooses the victims whose end makes a unit fit, nil if there are none.
func (d *Victims) cheapest(u *capacity.Unit, short []capacity.Claim, tight []*capacity.Fitting) []*victim {
	s := search{short: short, tight: tight, effort: 1}
	for _, f := range tight {
		packed := 0
		for _, r := range f.D.FindStays(f.Pool) {
			packed += len(r.Stays.Packed)
		}
		s.effort += (f.Size()*len(f.Pool.Rooms) + packed) / looksTried
	}
	ancestors := d.ancestors(u)
	for _, v := range d.candidatesFor(u, short, tight) {
		helps := slices.ContainsFunc(short, func(c capacity.Claim) bool { return v.frees[c.Bound] != snapshot.Load{} }) ||
			slices.ContainsFunc(tight, func(f *capacity.Fitting) bool { return f.Pool.Occupants[v.addr] != nil })
		if v.addr == u.Addr || v.band <= u.Band || !helps || ancestors[v.addr] {
			continue
		}
		free := u.Band == capacity.BandOrder(schema.BandProduction) && v.band == capacity.BandOrder(schema.BandBatch)
		if held := d.Now.Sub(v.since); !free && held < MinLease {
			d.WakeAt(v.since.Add(MinLease))
			continue
		}
		s.all = append(s.all, v)
	}
	for _, v := range s.all {
		v.seats = nil
		for _, f := range tight {
			if o := f.Pool.Occupants[v.addr]; o != nil {
				v.seats = append(v.seats, o)
			}
		}
	}
	best := s.run()
	if best == nil {
		d.noteInfeasible(u, &s)
	}
	return best
}

// candidatesFor are candidates, or none at once where no job of a lower band has anything
// in the bounds that are too narrow: in a large stack many wait for a limit of their own
// user, plan after plan.
func (d *Victims) candidatesFor(u *capacity.Unit, short []capacity.Claim, tight []*capacity.Fitting) []*victim {
	if d.victims == nil && len(tight) == 0 && !d.mayMakeRoom(u, short) {
		return nil
	}
	if d.Rest != nil {
		for of := range d.Rest.Holders {
			if of.Band > u.Band {
				snapshot.NeedWhole(d.Draft)
			}
		}
	}
	return d.candidates()
}

// mayMakeRoom reports whether a candidate may help a unit within bounds.
func (d *Victims) mayMakeRoom(u *capacity.Unit, short []capacity.Claim) bool {
	if slices.ContainsFunc(short, func(c capacity.Claim) bool {
		return c.Bound.Kind != capacity.OfNamespace && c.Bound.Kind != capacity.OfUser
	}) {
		return true
	}
	s := d.Accounts()
	may := func(space, user string, band int) bool {
		of := [2]capacity.Bound{{Kind: capacity.OfNamespace, Name: space}, {Kind: capacity.OfUser, Name: user, Space: space}}
		if !slices.ContainsFunc(short, func(c capacity.Claim) bool { return c.Bound == of[0] || c.Bound == of[1] }) {
			return false
		}
		accounts := s.Of(space, user)
		return band > u.Band || accounts[0].IsOverBudget() || accounts[1].IsOverBudget()
	}
	if d.Rest != nil {
		for of := range d.Rest.Holders {
			if may(of.Space, of.User, of.Band) {
				return true
			}
		}
	}
	for _, j := range d.Next.Jobs {
		if len(j.Slices) > 0 && may(capacity.SpaceOf(s, j), j.Spec.User, capacity.BandOrder(j.Spec.Band)) {
			return true
		}
	}
	return false
}

// ancestors are those by whose end a unit would end too, jobs and groups.
func (d *Victims) ancestors(u *capacity.Unit) map[schema.Address]bool {
	found := map[schema.Address]bool{}
	for _, want := range u.Jobs {
		j := d.Next.Jobs[want.Addr]
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

// sparesAncestors reports whether some would be candidates that a unit must not end,
// since it would end with them.
func (d *Victims) sparesAncestors(u *capacity.Unit) bool {
	ancestors := d.ancestors(u)
	return len(ancestors) > 0 && slices.ContainsFunc(d.candidates(), func(v *victim) bool { return v.band > u.Band && ancestors[v.addr] })
}

// search looks for the cheapest set of victims, by branch and bound.
type search struct {
	short  []capacity.Claim
	tight  []*capacity.Fitting
	all    []*victim         // the cheapest first
	rest   [][]snapshot.Load // what all from an index on free, by claim
	effort int               // of looking at one set

	chosen []*victim
	best   []*victim
	price  cost
	tried  int
}

func (s *search) run() []*victim {
	s.rest = make([][]snapshot.Load, len(s.all)+1)
	s.rest[len(s.all)] = make([]snapshot.Load, len(s.short))
	for i := len(s.all) - 1; i >= 0; i-- {
		s.rest[i] = s.with(s.rest[i+1], s.all[i])
	}
	none := make([]snapshot.Load, len(s.short))
	if !s.suffices(s.all) {
		return nil
	}
	s.first()
	s.branch(0, none, cost{})
	return s.best
}

// with adds what a victim frees.
func (s *search) with(freed []snapshot.Load, v *victim) []snapshot.Load {
	sum := make([]snapshot.Load, len(freed))
	for i := range s.short {
		sum[i] = freed[i].Plus(v.frees[s.short[i].Bound], 1)
	}
	return sum
}

// suffices reports whether the unit fits when some have ended.
func (s *search) suffices(some []*victim) bool {
	if len(s.short) > 0 {
		freed := make([]snapshot.Load, len(s.short))
		for _, v := range some {
			freed = s.with(freed, v)
		}
		if !s.covers(freed, make([]snapshot.Load, len(s.short))) {
			return false
		}
	}
	return s.fits(some, nil)
}

// fits reports whether there is room on hosts when some have ended, and others.
func (s *search) fits(some, others []*victim) bool {
	return !slices.ContainsFunc(s.tight, func(f *capacity.Fitting) bool { return !s.fitsIn(f, some, others) })
}

func (s *search) fitsIn(f *capacity.Fitting, ended ...[]*victim) bool {
	_, ok := s.layIn(f, ended...)
	return ok
}

// layIn is lay when some have ended.
func (s *search) layIn(f *capacity.Fitting, ended ...[]*victim) (capacity.Layout, bool) {
	sentence(true, ended)
	defer sentence(false, ended)
	return f.Lay(capacity.IsVictim)
}

func sentence(is bool, sets [][]*victim) {
	for _, set := range sets {
		for _, v := range set {
			for _, o := range v.seats {
				o.Victim = is
			}
		}
	}
}

// covers reports whether the unit is within its bounds with what is freed.
func (s *search) covers(freed, more []snapshot.Load) bool {
	for i, c := range s.short {
		if c.Need.Exceeds(c.Used.Plus(freed[i], -1).Plus(more[i], -1), c.Limit) {
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
		l, _ := s.layIn(f, set)
		for _, r := range f.Pool.Rooms {
			if l.Uses(r) {
				if r.Stays.Whole != nil {
					near[r.Stays.Whole.Unit] = true
				}
				for i := range r.Stays.Packed {
					near[r.Stays.Packed[i].By.Unit] = true
				}
			}
		}
	}
	touched := slices.DeleteFunc(slices.Clone(set), func(v *victim) bool {
		return !near[v.addr] && !slices.ContainsFunc(s.short, func(c capacity.Claim) bool { return v.frees[c.Bound] != snapshot.Load{} })
	})
	if s.suffices(touched) {
		return touched
	}
	return set
}

// branch tries the victims from the i-th on, with and without each.
func (s *search) branch(i int, freed []snapshot.Load, price cost) {
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
