package schedule

import (
	"cmp"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// A unit that does not fit waits, and says for each bound why. Others may go
// ahead of it until it has waited for patience, or a victim ends for it: from then
// on what it lacks is kept for it, whichever other unit would fit.

// Patience is how long a unit that does not fit may be overtaken by those behind
// it. It is longer than slices take to come and go, so that a gang that only waits
// for another's to be deleted blocks no other unit.
const Patience = 10 * time.Minute

// claims are what those of a unit that have no slices need, by the bounds that there are.
func (d *Claims) claims(fresh []*schema.Job, asked []schema.SliceSpec, pooled []*schema.Job) []capacity.Claim {
	var all []capacity.Claim
	for i := range d.Desired.Providers {
		p := &d.Desired.Providers[i]
		if limit := capacity.LimitOf(*p); limit != (plan.Amount{}) {
			all = append(all, capacity.Claim{
				Bound: capacity.Bound{Kind: capacity.OfProvider, Name: string(p.Name)}, Limit: snapshot.LimitLoad(limit),
				Need: snapshot.LoadOf(d.NewOf(p.Name, asked)).Plus(d.idleOf(p.Name, asked), 1),
				Used: snapshot.LoadOf(d.Used(p.Name)).Plus(d.idleAt(p.Name), -1), Short: d.Lacks(asked),
			})
		}
	}
	all = append(all, d.poolClaims(pooled)...)
	return append(all, d.spaceClaims(fresh)...)
}

// Slices that idle for the next job of their namespace are room like any other:
// who would take some takes it from those for whom room is kept.

// idleAt is what idles of a provider.
func (d *Claims) idleAt(provider schema.ProviderName) snapshot.Load {
	if d.Idles == nil {
		d.Idles = map[schema.ProviderName]snapshot.Load{}
		for _, s := range d.Next.Slices {
			if capacity.IdlesKept(s) {
				d.Idles[s.Spec.Provider] = d.Idles[s.Spec.Provider].Plus(snapshot.LoadOf(d.AmountOf(&s.Spec)), 1)
			}
		}
		for _, p := range d.Pooled {
			for _, name := range d.Spare(p) {
				spec := &d.Next.Slices[name].Spec
				d.Idles[spec.Provider] = d.Idles[spec.Provider].Plus(snapshot.LoadOf(d.AmountOf(spec)), 1)
			}
		}
	}
	return d.Idles[provider]
}

// idleOf is what of some slices idles.
func (d *Claims) idleOf(provider schema.ProviderName, specs []schema.SliceSpec) snapshot.Load {
	var sum snapshot.Load
	for i := range specs {
		if specs[i].Provider == provider && d.IsKeptIdle(specs[i].Name) {
			sum = sum.Plus(snapshot.LoadOf(d.AmountOf(&specs[i])), 1)
		}
	}
	return sum
}

// poolClaims are for the slices of reservations. Where one may still grow there is
// room, though it is not there yet.
func (d *Claims) poolClaims(pooled []*schema.Job) []capacity.Claim {
	var all []capacity.Claim
	for _, want := range pooled {
		p := d.PoolOf(want.Resources.Reservation)
		if p == nil || !p.Bound.Over.IsZero() {
			continue // no job's end would help
		}
		b := capacity.Bound{Kind: capacity.OfPool, Name: want.Resources.Reservation}
		i := slices.IndexFunc(all, func(c capacity.Claim) bool { return c.Bound == b })
		if i < 0 {
			i = len(all)
			most := max(len(p.Specs), p.Bound.Most)
			all = append(all, capacity.Claim{Bound: b, Used: snapshot.Load{Slices: most - len(p.Free) - p.Room}, Limit: snapshot.Load{Slices: most}, Unmade: snapshot.Load{Slices: p.Room}})
		}
		all[i].Need.Slices += want.Resources.Slices
	}
	return all
}

// spaceClaims are for what namespaces and users may have at most.
func (d *Claims) spaceClaims(fresh []*schema.Job) []capacity.Claim {
	var all []capacity.Claim
	s := d.Accounts()
	for _, want := range fresh {
		j := d.JobAt(want.Addr)
		need := snapshot.Load{}.Plus(d.LoadOf(d.Asked(want)), want.Resources.Slices)
		space := capacity.SpaceOf(s, capacity.RecordAs(want, j))
		for i, a := range s.Of(space, want.User) {
			if a.Max == (snapshot.Load{}) {
				continue
			}
			b := capacity.Bound{Kind: capacity.OfNamespace, Name: space}
			if i > 0 {
				b = capacity.Bound{Kind: capacity.OfUser, Name: want.User, Space: space}
			}
			n := slices.IndexFunc(all, func(c capacity.Claim) bool { return c.Bound == b })
			if n < 0 {
				n = len(all)
				all = append(all, capacity.Claim{Bound: b, Used: a.Used, Limit: a.Max})
			}
			c := &all[n]
			c.Need = c.Need.Plus(need, 1)
			c.Short = plan.Because(plan.WaitLimit, a.Name+": "+capacity.SpaceShortage(c.Need, a.Used, a.Max))
		}
	}
	return all
}

// keepable is what is kept for a unit: all that it needs, as what it lacks comes
// at another time than the rest; of its namespace alone, if that has too little,
// since then it could not use what others may.
func keepable(w *capacity.Wants, lacking []capacity.Claim) *capacity.Wants {
	own := slices.DeleteFunc(slices.Clone(lacking), func(c capacity.Claim) bool {
		return c.Bound.Kind != capacity.OfNamespace && c.Bound.Kind != capacity.OfUser
	})
	if len(own) > 0 {
		return &capacity.Wants{Claims: own}
	}
	return w
}

// comesTrue reports whether a unit fits when all has ended that ends some day.
// Where it does not, keeping room for it would keep it for ever.
func (d *Claims) comesTrue(w *capacity.Wants) bool {
	for _, c := range w.Claims {
		if !w.Shares(c.Bound) && c.Need.Exceeds(d.enduring(c.Bound), c.Limit) {
			return false
		}
	}
	return !slices.ContainsFunc(w.Hosts, func(f *capacity.Fitting) bool { return !f.ComesTrue() })
}

// enduring is what of a bound is held by services, which do not end.
func (d *Claims) enduring(b capacity.Bound) snapshot.Load {
	if d.stays == nil {
		d.stays = map[capacity.Bound]snapshot.Load{}
		if d.Rest != nil {
			for of, held := range d.Rest.Holders {
				if of.Endures {
					addHeld(d.stays, &of, held)
				}
			}
		}
		for addr, j := range d.Next.Jobs {
			if capacity.Endures(j) && !d.Rest.Counts(addr) {
				d.addFreed(d.stays, j.Spec, len(j.Slices)+len(j.Staged))
			}
		}
		for _, st := range d.Unmanaged {
			b := capacity.Bound{Kind: capacity.OfProvider, Name: string(st.Spec.Provider)}
			d.stays[b] = d.stays[b].Plus(d.SliceLoad(&st.Spec), 1)
		}
	}
	return d.stays[b]
}

// addFreed adds what a number of a job's slices takes to each bound that they count for.
func (d *Claims) addFreed(sums map[capacity.Bound]snapshot.Load, j *schema.Job, n int) {
	if n == 0 {
		return
	}
	each := d.LoadOf(d.Running(j))
	switch each.Slices = 1; {
	case j.Resources.Packed: // what it leaves is on hosts, see fitting
	case j.Resources.Reservation != "":
		b := capacity.Bound{Kind: capacity.OfPool, Name: j.Resources.Reservation}
		sums[b] = sums[b].Plus(snapshot.Load{Slices: 1}, n)
	default:
		b := capacity.Bound{Kind: capacity.OfProvider, Name: string(cmp.Or(j.Resources.Provider, schema.ProviderLocal))}
		sums[b] = sums[b].Plus(each, n)
	}
	record := d.Next.Jobs[j.Addr]
	if record == nil {
		return
	}
	space := capacity.SpaceOf(d.Accounts(), record)
	for _, b := range [2]capacity.Bound{{Kind: capacity.OfNamespace, Name: space}, {Kind: capacity.OfUser, Name: j.User, Space: space}} {
		sums[b] = sums[b].Plus(each, n)
	}
}

// addHeld is addFreed of what jobs hold that a part of a stack leaves out.
func addHeld(sums map[capacity.Bound]snapshot.Load, of *snapshot.Holder, held snapshot.Load) {
	if of.Reservation != "" {
		b := capacity.Bound{Kind: capacity.OfPool, Name: of.Reservation}
		sums[b] = sums[b].Plus(snapshot.Load{Slices: held.Slices}, 1)
	} else {
		b := capacity.Bound{Kind: capacity.OfProvider, Name: string(of.Provider)}
		sums[b] = sums[b].Plus(held, 1)
	}
	for _, b := range [2]capacity.Bound{{Kind: capacity.OfNamespace, Name: of.Space}, {Kind: capacity.OfUser, Name: of.User, Space: of.Space}} {
		sums[b] = sums[b].Plus(held, 1)
	}
}

// runsOn reports whether a unit belongs to what runs already: others of its group
// do, or the job that launched it. Who runs may wait for it, and is not to be
// waited for by those for whom room is kept.
func (d *Claims) runsOn(u *capacity.Unit) bool {
	for _, want := range u.Jobs {
		j := d.JobAt(want.Addr)
		if j == nil {
			continue
		}
		if parent := d.launcher(j); parent != nil && parent.Running() {
			return true
		}
	}
	for _, other := range d.Family(u.Addr) {
		if j := d.Next.Jobs[other.Addr]; j != nil && j.Running() && other.Addr.GroupAddress() == u.Addr {
			return true
		}
	}
	return false
}
