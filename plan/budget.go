package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/schema"
)

// A unit that does not fit waits, and says for each bound why. Others may go
// ahead of it until it has waited for patience, or somebody ends for it: from then
// on what it lacks is kept for it, whoever else would fit.

// patience is how long a unit that does not fit may be overtaken by those behind
// it. It is longer than slices take to come and go, so that a gang that only waits
// for another's to be deleted stops nobody.
const patience = 10 * time.Minute

// boundKind is a closed set of what bounds capacity.
type boundKind uint8

const (
	ofProvider  boundKind = iota // its limits
	ofPool                       // slices of a reservation
	ofNamespace                  // its max
	ofUser                       // a user's max in a namespace
	ofQuota                      // the cloud's, at a place; it is known when it is used up
	ofHosts                      // of a reservation, which packed jobs share; see fitting
)

// bound is something that bounds capacity.
type bound struct {
	kind  boundKind
	name  string
	space string // of a user's
}

// claim is what a unit needs within a bound.
type claim struct {
	bound bound
	need  load
	used  load // by others
	limit load
	// unmade is the part of a reservation that is not there yet. Who comes behind
	// others that wait for it is not to take what is there instead.
	unmade load
	short  reason // why it does not fit, nothing: that is reported elsewhere
}

// wants is what a unit needs to be placed.
type wants struct {
	claims []claim
	hosts  []*fitting // in reservations whose hosts are shared
	full   bool       // no rooms were found there for its packed jobs
	grows  bool       // all new slices are ones by which reservations grow
}

// shares reports whether a claim is to slices of a reservation whose hosts are
// shared: what comes free of these is no matter of sums.
func (w *wants) shares(b bound) bool {
	return b.kind == ofPool && slices.ContainsFunc(w.hosts, func(f *fitting) bool { return f.name == b.name })
}

// kept is what of a bound is kept for those who are ahead.
type kept struct {
	load   load
	by     schema.Address // the first of them
	since  time.Time
	unable []schema.Address // who did not fit, the first few
	count  int              // of these
}

// claims are what those of a unit that have no slices need, by the bounds that there are.
func (d *differ) claims(fresh []*schema.Job, asked []schema.SliceSpec, pooled []*schema.Job) []claim {
	var all []claim
	for i := range d.desired.Providers {
		p := &d.desired.Providers[i]
		if limit := limitOf(*p); limit != (Amount{}) {
			all = append(all, claim{
				bound: bound{kind: ofProvider, name: string(p.Name)}, limit: loadOf(limit),
				need: loadOf(d.newOf(p.Name, asked)).plus(d.idleOf(p.Name, asked), 1),
				used: loadOf(d.used(p.Name)).plus(d.idleAt(p.Name), -1), short: d.lacks(asked),
			})
		}
	}
	all = append(all, d.poolClaims(pooled)...)
	return append(all, d.spaceClaims(fresh)...)
}

// Slices that idle for the next job of their namespace are room like any other:
// who would take some takes it from those for whom room is kept.

// idleAt is what idles of a provider.
func (d *differ) idleAt(provider schema.ProviderName) load {
	if d.idles == nil {
		d.idles = map[schema.ProviderName]load{}
		for _, s := range d.next.Slices {
			if idlesKept(s) {
				d.idles[s.Spec.Provider] = d.idles[s.Spec.Provider].plus(loadOf(d.amountOf(&s.Spec)), 1)
			}
		}
		for _, p := range d.pooled {
			for _, name := range d.spare(p) {
				spec := &d.next.Slices[name].Spec
				d.idles[spec.Provider] = d.idles[spec.Provider].plus(loadOf(d.amountOf(spec)), 1)
			}
		}
	}
	return d.idles[provider]
}

// idleOf is what of some slices idles.
func (d *differ) idleOf(provider schema.ProviderName, specs []schema.SliceSpec) load {
	var sum load
	for i := range specs {
		if specs[i].Provider == provider && d.isKeptIdle(specs[i].Name) {
			sum = sum.plus(loadOf(d.amountOf(&specs[i])), 1)
		}
	}
	return sum
}

// poolClaims are for the slices of reservations. Where one may still grow there is
// room, though it is not there yet.
func (d *differ) poolClaims(pooled []*schema.Job) []claim {
	var all []claim
	for _, want := range pooled {
		p := d.poolOf(want.Resources.Reservation)
		if p == nil || !p.bound.over.IsZero() {
			continue // nobody's end would help
		}
		b := bound{kind: ofPool, name: want.Resources.Reservation}
		i := slices.IndexFunc(all, func(c claim) bool { return c.bound == b })
		if i < 0 {
			i = len(all)
			most := max(len(p.specs), p.bound.most)
			all = append(all, claim{bound: b, used: load{slices: most - len(p.free) - p.room}, limit: load{slices: most}, unmade: load{slices: p.room}})
		}
		all[i].need.slices += want.Resources.Slices
	}
	return all
}

// spaceClaims are for what namespaces and users may have at most.
func (d *differ) spaceClaims(fresh []*schema.Job) []claim {
	var all []claim
	s := d.accounts()
	for _, want := range fresh {
		j := d.next.Jobs[want.Addr]
		need := load{}.plus(d.eachLoad(want), want.Resources.Slices)
		space := spaceOf(s, recordAs(want, j))
		for i, a := range s.of(space, want.User) {
			if a.max == (load{}) {
				continue
			}
			b := bound{kind: ofNamespace, name: space}
			if i > 0 {
				b = bound{kind: ofUser, name: want.User, space: space}
			}
			n := slices.IndexFunc(all, func(c claim) bool { return c.bound == b })
			if n < 0 {
				n = len(all)
				all = append(all, claim{bound: b, used: a.used, limit: a.max})
			}
			c := &all[n]
			c.need = c.need.plus(need, 1)
			c.short = because(WaitLimit, a.name+": "+spaceShortage(c.need, a.used, a.max))
		}
	}
	return all
}

// spaceShortage says which part of a namespace's or user's max is exceeded.
func spaceShortage(need, used, limit load) string {
	var short []string
	if limit.chips > 0 && need.chips > 0 && used.chips+need.chips > limit.chips {
		short = append(short, fmt.Sprintf("needs %d more chip%s, %d of its max_chips %d are held", need.chips, plural(need.chips != 1), used.chips, limit.chips))
	}
	if limit.milli > 0 && need.milli > 0 && used.milli+need.milli > limit.milli {
		cores := func(milli int) float64 { return float64(milli) / 1000 }
		short = append(short, fmt.Sprintf("needs %g more core%s, %g of its max_cpu %g are held", cores(need.milli), plural(need.milli != 1000), cores(used.milli), cores(limit.milli)))
	}
	return strings.Join(short, "; ")
}

// newOf is what of the slices takes more of a provider than it holds already.
func (d *differ) newOf(provider schema.ProviderName, specs []schema.SliceSpec) Amount {
	var need Amount
	for n := range specs {
		spec := &specs[n]
		if spec.Provider != provider || spec.On != "" || d.next.Slices[spec.Name] != nil {
			continue
		}
		if _, listed := d.slices[spec.Name]; !listed {
			need = need.plus(d.amountOf(spec))
		}
	}
	return need
}

// contend decides whether a unit has room, beside what is there and what is kept
// for those ahead of it; nothing is said if it has. Else it may make room, or have
// some kept.
func (d *differ) contend(u *unit, w *wants) []reason {
	var reasons []reason
	var lacking []claim
	for _, c := range w.claims {
		k := d.keeps[c.bound]
		switch {
		case c.need.exceeds(c.used, c.limit):
			lacking = append(lacking, c)
			if !c.short.none() {
				reasons = append(reasons, c.short)
			}
		case k != nil && c.need.exceeds(c.beside(k), c.limit) && !d.runsOn(u):
			lacking = append(lacking, c)
			reasons = append(reasons, reason{kind: WaitTurn, text: "held back for " + k.by.String() + ", which has waited", since: k.since})
		}
	}
	if w.full {
		for _, f := range w.hosts {
			lacking = append(lacking, claim{bound: bound{kind: ofHosts, name: f.name}})
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	d.unchoose() // it is not placed now
	reasons = append(reasons, d.order(u, lacking)...)
	if why := d.makeRoom(u, w); !why.none() {
		return append(reasons, why)
	}
	waited := d.now.Sub(d.waitingSince(u))
	switch {
	case !d.comesTrue(w):
	case waited >= patience:
		d.keepSome(u, keepable(w, lacking))
	default:
		d.wakeAt(d.now.Add(patience - waited))
	}
	return reasons
}

// beside is what is used and kept for others.
func (c *claim) beside(k *kept) load {
	if k == nil || k.load == (load{}) {
		return c.used
	}
	return c.used.plus(k.load, 1).plus(c.unmade, 1)
}

// keepable is what is kept for a unit: all that it needs, as what it lacks comes
// at another time than the rest; of its namespace alone, if that has too little,
// since then it could not use what others may.
func keepable(w *wants, lacking []claim) *wants {
	own := slices.DeleteFunc(slices.Clone(lacking), func(c claim) bool { return c.bound.kind != ofNamespace && c.bound.kind != ofUser })
	if len(own) > 0 {
		return &wants{claims: own}
	}
	return w
}

// order says who is ahead, and why a unit stands where it does.
func (d *differ) order(u *unit, lacking []claim) []reason {
	var reasons []reason
	if u.over != nil {
		reasons = append(reasons, because(WaitTurn, fmt.Sprintf("it is beyond the budget of %s (%d chips), and so waits as batch does", u.over.name, u.over.budget)))
	}
	for _, c := range lacking {
		k := d.keeps[c.bound]
		if k == nil {
			k = &kept{}
			d.keepFor(c.bound, k)
		}
		if k.count > 0 {
			reasons = append(reasons, because(WaitTurn, fmt.Sprintf("behind %d other%s: %s", k.count, plural(k.count != 1), listed(k.unable, k.count))))
		}
		if k.count++; k.count <= 3 {
			k.unable = append(k.unable, u.addr)
		}
	}
	return reasons
}

// keepSums holds back the sums that a unit needs.
func (d *differ) keepSums(u *unit, claims []claim) {
	for _, c := range claims {
		k := d.keeps[c.bound]
		if k == nil {
			k = &kept{}
			d.keepFor(c.bound, k)
		}
		if k.by.IsZero() {
			k.by, k.since = u.addr, d.waitingSince(u)
		}
		k.load = k.load.plus(c.need, 1)
	}
}

func (d *differ) keepFor(b bound, k *kept) {
	if d.keeps == nil {
		d.keeps = map[bound]*kept{}
	}
	d.keeps[b] = k
}

// waitingSince is when a unit began to wait: it was admitted, or what it had has ended.
func (d *differ) waitingSince(u *unit) time.Time {
	since := u.since
	for _, want := range u.jobs {
		if j := d.next.Jobs[want.Addr]; j != nil && j.Last() != nil {
			since = later(since, j.Last().EndedAt)
		}
	}
	return since
}

// comesTrue reports whether a unit fits when all has ended that ends some day.
// Where it does not, keeping room for it would keep it for ever.
func (d *differ) comesTrue(w *wants) bool {
	for _, c := range w.claims {
		if !w.shares(c.bound) && c.need.exceeds(d.enduring(c.bound), c.limit) {
			return false
		}
	}
	return !slices.ContainsFunc(w.hosts, func(f *fitting) bool { return !f.comesTrue() })
}

// enduring is what of a bound is held by services, which do not end.
func (d *differ) enduring(b bound) load {
	if d.stays == nil {
		d.stays = map[bound]load{}
		for _, j := range d.next.Jobs {
			if endures(j) {
				d.addFreed(d.stays, j.Spec, len(j.Slices)+len(j.Staged))
			}
		}
		for _, st := range d.disowned {
			b := bound{kind: ofProvider, name: string(st.Spec.Provider)}
			d.stays[b] = d.stays[b].plus(d.sliceLoad(&st.Spec), 1)
		}
	}
	return d.stays[b]
}

// addFreed adds what a number of a job's slices takes to each bound that they count for.
func (d *differ) addFreed(sums map[bound]load, j *schema.Job, n int) {
	if n == 0 {
		return
	}
	each := d.eachLoad(j)
	switch each.slices = 1; {
	case j.Resources.Packed: // what it leaves is on hosts, see fitting
	case j.Resources.Reservation != "":
		b := bound{kind: ofPool, name: j.Resources.Reservation}
		sums[b] = sums[b].plus(load{slices: 1}, n)
	default:
		b := bound{kind: ofProvider, name: string(cmp.Or(j.Resources.Provider, schema.ProviderLocal))}
		sums[b] = sums[b].plus(each, n)
	}
	record := d.next.Jobs[j.Addr]
	if record == nil {
		return
	}
	space := spaceOf(d.accounts(), record)
	for _, b := range [2]bound{{kind: ofNamespace, name: space}, {kind: ofUser, name: j.User, space: space}} {
		sums[b] = sums[b].plus(each, n)
	}
}

// runsOn reports whether a unit belongs to what runs already: others of its group
// do, or the job that launched it. Who runs may wait for it, and is not to be
// waited for by those for whom room is kept.
func (d *differ) runsOn(u *unit) bool {
	for _, want := range u.jobs {
		j := d.next.Jobs[want.Addr]
		if j == nil {
			continue
		}
		if parent := d.launcher(j); parent != nil && parent.Running() {
			return true
		}
	}
	for _, other := range d.family(u.addr) {
		if j := d.next.Jobs[other.Addr]; j != nil && j.Running() && other.Addr.GroupAddress() == u.addr {
			return true
		}
	}
	return false
}
