package lifecycle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Slices that no job holds never keep others from what they wait for: where a
// provider's limit is too small for a unit, or a quota is used up, as many of them
// go as it takes, those that have idled longest first.

// idler is a slice that no job holds and that need not be kept.
type idler struct {
	name string
	pool *snapshot.Pool // that it belongs to, nil: it is kept for the next job
}

// SettleIdle decides what becomes of slices that no job holds, once every job has what it
// is given in this look.
func (d *PoolUpkeep) SettleIdle() {
	d.settlePools()
	for _, names := range d.Warm {
		for _, name := range names {
			if d.IsKeptIdle(name) {
				d.settleWarm(name)
			}
		}
	}
	d.yieldQuota()
}

// settleWarm gives a slice up that has been kept for long enough.
func (d *PoolUpkeep) settleWarm(name string) {
	s := d.Next.Slices[name]
	due := s.IdleSince.Add(d.idleTimeout(d.Next.Jobs[s.Spec.Owner]))
	if d.Now.Before(due) {
		d.WakeAt(due)
		return
	}
	d.terminate(name, change.Decided(state.CauseIdle)) // orphans deletes it
}

// idlers are the slices that no job holds and that need not be kept, those that
// have idled longest first, but for those of some owners.
func (d *PoolUpkeep) idlers(but map[schema.Address]bool) []idler {
	var found []idler
	for _, names := range d.Warm {
		for _, name := range names {
			if _, claimed := d.Taking[name]; !claimed && d.IsKeptIdle(name) {
				found = append(found, idler{name: name})
			}
		}
	}
	for _, p := range d.Pooled {
		if but[p.Of.Addr] {
			continue
		}
		for _, name := range d.Spare(p) {
			found = append(found, idler{name: name, pool: p})
		}
	}
	slices.SortFunc(found, func(a, b idler) int {
		x, y := d.Next.Slices[a.name], d.Next.Slices[b.name]
		return cmp.Or(x.IdleSince.Compare(y.IdleSince), cmp.Compare(y.Spec.Index, x.Spec.Index), cmp.Compare(a.name, b.name))
	})
	return found
}

// Spare are the slices of a pool that idle and are more than it has at least.
func (d *PoolUpkeep) Spare(p *snapshot.Pool) []string {
	var found []string
	for i := len(p.Specs) - 1; i >= 0 && len(found) < len(p.Specs)-p.Bound.Floor; i-- {
		name := p.Specs[i].Name
		if s := d.Next.Slices[name]; s != nil && slices.Contains(p.Free, name) && !s.IdleSince.IsZero() {
			found = append(found, name)
		}
	}
	return found
}

// dismiss has one go.
func (d *PoolUpkeep) dismiss(i idler) {
	spec := d.Next.Slices[i.name].Spec
	if i.pool == nil {
		d.terminate(i.name, change.Decided(state.CauseMakesRoom))
	} else {
		d.releaseSlice(i.pool, i.name, state.CauseMakesRoom)
	}
	if d.Goes != nil { // else it is counted when that is asked for
		b := capacity.Bound{Kind: capacity.OfProvider, Name: string(spec.Provider)}
		d.Goes[b] = d.Goes[b].Plus(d.SliceLoad(&spec), 1)
	}
}

// DismissFor has idle slices go, if that makes room for slices that do not fit, and
// says what is waited for. Nothing is said twice: what goes already for others
// that wait is not counted upon.
func (d *PoolUpkeep) DismissFor(specs []schema.SliceSpec, short plan.Reason) plan.Reason {
	need := map[schema.ProviderName]plan.Amount{}
	but := map[schema.Address]bool{}
	for i := range specs {
		spec := &specs[i]
		_, listed := d.Listed[spec.Name]
		if !listed && d.Next.Slices[spec.Name] == nil {
			need[spec.Provider] = need[spec.Provider].Plus(d.AmountOf(spec))
			but[spec.Owner] = true
		}
	}
	idle := d.idlers(but)
	var leave []idler
	for _, provider := range slices.Sorted(maps.Keys(need)) {
		limit := capacity.LimitOf(*d.Provider(provider))
		over := d.Used(provider).Plus(d.awaited(provider)).Times(d.idleGoing(provider), -1)
		for _, one := range idle {
			spec := &d.Next.Slices[one.name].Spec
			if !need[provider].Exceeds(over, limit) {
				break
			}
			if spec.Provider == provider {
				leave, over = append(leave, one), over.Times(d.AmountOf(spec), -1)
			}
		}
		if need[provider].Exceeds(over, limit) {
			return short
		}
	}
	for provider, n := range need {
		d.await(provider, n)
	}
	for _, one := range leave {
		d.dismiss(one)
	}
	return plan.Underway(fmt.Sprintf("%s; idle slices are being deleted to make room", short.Text))
}

// awaited is what others wait for that idle slices make room for.
func (d *PoolUpkeep) awaited(provider schema.ProviderName) plan.Amount { return d.coming[provider] }

func (d *PoolUpkeep) await(provider schema.ProviderName, need plan.Amount) {
	if d.coming == nil {
		d.coming = map[schema.ProviderName]plan.Amount{}
	}
	d.coming[provider] = d.coming[provider].Plus(need)
}

// idleGoing is what idle slices take that are being deleted.
func (d *PoolUpkeep) idleGoing(provider schema.ProviderName) plan.Amount {
	var sum plan.Amount
	for _, s := range d.Next.Slices {
		if s.Spec.Provider == provider && d.IsGoing(s) {
			sum = sum.Plus(d.AmountOf(&s.Spec))
		}
	}
	return sum
}

// IsGoing reports whether a slice is being deleted since no job holds it.
func (d *PoolUpkeep) IsGoing(s *state.Slice) bool {
	return freesRoom(s.Terminating.Decided())
}

// yieldQuota has idle slices go that count to a quota for which others wait.
func (d *PoolUpkeep) yieldQuota() {
	if len(d.Next.ZoneHealth) == 0 || !slices.ContainsFunc(d.Waits, func(w plan.Waiting) bool { return !w.Why.Underway }) {
		return
	}
	for _, one := range d.idlers(nil) {
		spec := &d.Next.Slices[one.name].Spec
		w, bad := d.Next.ZoneHealth[capacity.QuotaPlace(spec)]
		if bad && w.Kind == schema.ErrorQuota && d.Now.Before(w.Until) {
			d.dismiss(one)
		}
	}
}
