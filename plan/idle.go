package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Slices that nobody holds never keep others from what they wait for: where a
// provider's limit is too small for a unit, or a quota is used up, as many of them
// go as it takes, those that have idled longest first.

// idler is a slice that nobody holds and that need not be kept.
type idler struct {
	name string
	pool *pool // that it belongs to, nil: it is kept for the next job
}

// rest settles what becomes of slices that nobody holds, once every job has what it
// is given in this look.
func (d *differ) rest() {
	d.restPools()
	for _, names := range d.warm {
		for _, name := range names {
			if d.isKeptIdle(name) {
				d.restWarm(name)
			}
		}
	}
	d.yieldQuota()
}

// restWarm gives a slice up that has been kept for long enough.
func (d *differ) restWarm(name string) {
	s := d.next.Slices[name]
	due := s.IdleSince.Add(d.idleTimeout(d.next.Jobs[s.Spec.Owner]))
	if d.now.Before(due) {
		d.wakeAt(due)
		return
	}
	d.terminate(name, decided(state.CauseIdle)) // orphans deletes it
}

// idlers are the slices that nobody holds and that need not be kept, those that
// have idled longest first, but for those of some owners.
func (d *differ) idlers(but map[schema.Address]bool) []idler {
	var found []idler
	for _, names := range d.warm {
		for _, name := range names {
			if _, claimed := d.taking[name]; !claimed && d.isKeptIdle(name) {
				found = append(found, idler{name: name})
			}
		}
	}
	for _, p := range d.pooled {
		if but[p.of.Addr] {
			continue
		}
		for _, name := range d.spare(p) {
			found = append(found, idler{name: name, pool: p})
		}
	}
	slices.SortFunc(found, func(a, b idler) int {
		x, y := d.next.Slices[a.name], d.next.Slices[b.name]
		return cmp.Or(x.IdleSince.Compare(y.IdleSince), cmp.Compare(y.Spec.Index, x.Spec.Index), cmp.Compare(a.name, b.name))
	})
	return found
}

// spare are the slices of a pool that idle and are more than it has at least.
func (d *differ) spare(p *pool) []string {
	var found []string
	for i := len(p.specs) - 1; i >= 0 && len(found) < len(p.specs)-p.bound.floor; i-- {
		name := p.specs[i].Name
		if s := d.next.Slices[name]; s != nil && slices.Contains(p.free, name) && !s.IdleSince.IsZero() {
			found = append(found, name)
		}
	}
	return found
}

// dismiss has one go.
func (d *differ) dismiss(i idler) {
	spec := d.next.Slices[i.name].Spec
	if i.pool == nil {
		d.terminate(i.name, decided(state.CauseMakesRoom))
	} else {
		d.letGo(i.pool, i.name, state.CauseMakesRoom)
	}
	if d.goes != nil { // else it is counted when that is asked for
		b := bound{kind: ofProvider, name: string(spec.Provider)}
		d.goes[b] = d.goes[b].plus(d.sliceLoad(&spec), 1)
	}
}

// dismissFor has idle slices go, if that makes room for slices that do not fit, and
// says what is waited for. Nothing is said twice: what goes already for others
// that wait is not counted upon.
func (d *differ) dismissFor(specs []schema.SliceSpec, short reason) reason {
	need := map[schema.ProviderName]Amount{}
	but := map[schema.Address]bool{}
	for i := range specs {
		spec := &specs[i]
		_, listed := d.slices[spec.Name]
		if !listed && d.next.Slices[spec.Name] == nil {
			need[spec.Provider] = need[spec.Provider].plus(d.amountOf(spec))
			but[spec.Owner] = true
		}
	}
	idle := d.idlers(but)
	var leave []idler
	for _, provider := range slices.Sorted(maps.Keys(need)) {
		limit := limitOf(*d.provider(provider))
		over := d.used(provider).plus(d.awaited(provider)).times(d.idleGoing(provider), -1)
		for _, one := range idle {
			spec := &d.next.Slices[one.name].Spec
			if !need[provider].exceeds(over, limit) {
				break
			}
			if spec.Provider == provider {
				leave, over = append(leave, one), over.times(d.amountOf(spec), -1)
			}
		}
		if need[provider].exceeds(over, limit) {
			return short
		}
	}
	for provider, n := range need {
		d.await(provider, n)
	}
	for _, one := range leave {
		d.dismiss(one)
	}
	return underway(fmt.Sprintf("%s; idle slices are being deleted to make room", short.text))
}

// awaited is what others wait for that idle slices make room for.
func (d *differ) awaited(provider schema.ProviderName) Amount { return d.coming[provider] }

func (d *differ) await(provider schema.ProviderName, need Amount) {
	if d.coming == nil {
		d.coming = map[schema.ProviderName]Amount{}
	}
	d.coming[provider] = d.coming[provider].plus(need)
}

// idleGoing is what idle slices take that are being deleted.
func (d *differ) idleGoing(provider schema.ProviderName) Amount {
	var sum Amount
	for _, s := range d.next.Slices {
		if s.Spec.Provider == provider && d.isGoing(s) {
			sum = sum.plus(d.amountOf(&s.Spec))
		}
	}
	return sum
}

// isGoing reports whether a slice is being deleted since nobody holds it.
func (d *differ) isGoing(s *state.Slice) bool {
	return freesRoom(s.Terminating.Decided())
}

// yieldQuota has idle slices go that count to a quota for which others wait.
func (d *differ) yieldQuota() {
	if len(d.next.Weather) == 0 || !slices.ContainsFunc(d.waits, func(w waiting) bool { return !w.why.underway }) {
		return
	}
	for _, one := range d.idlers(nil) {
		spec := &d.next.Slices[one.name].Spec
		w, bad := d.next.Weather[quotaPlace(spec)]
		if bad && w.Kind == schema.ErrorQuota && d.now.Before(w.Until) {
			d.dismiss(one)
		}
	}
}
