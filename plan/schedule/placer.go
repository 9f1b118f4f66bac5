package schedule

import (
	"fmt"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/schema"
)

// Placer gives jobs their slices and starts them.
type Placer struct {
	*Victims

	prepared map[schema.Address]bool           // all hosts up, only the start is missing
	missing  map[schema.Address]schema.Address // by group: a member without capacity
	Held     []*schema.Job                     // jobs without capacity that wait for what they depend on
	turn     *capacity.Unit                    // whose turn it is to be placed
	placed   []schema.Address                  // jobs that were given slices
	started  []schema.Address                  // jobs whose next attempt begins
}

// newPlacer has placed nothing yet.
func newPlacer(d *lifecycle.Declarations) *Placer {
	return &Placer{
		Victims:  &Victims{Claims: &Claims{Declarations: d}},
		prepared: map[schema.Address]bool{},
		missing:  map[schema.Address]schema.Address{},
	}
}

// contend decides whether a unit has room, beside what is there and what is kept
// for those ahead of it; nothing is said if it has. Else it may make room, or have
// some kept.
func (d *Placer) contend(u *capacity.Unit, w *capacity.Wants) []plan.Reason {
	var reasons []plan.Reason
	var lacking []capacity.Claim
	for _, c := range w.Claims {
		k := d.Reserved[c.Bound]
		switch {
		case c.Need.Exceeds(c.Used, c.Limit):
			lacking = append(lacking, c)
			if !c.Short.None() {
				reasons = append(reasons, c.Short)
			}
		case k != nil && c.Need.Exceeds(c.Beside(k), c.Limit) && !d.runsOn(u):
			lacking = append(lacking, c)
			reasons = append(reasons, plan.Reason{Kind: plan.WaitTurn, Text: "reserved for " + k.By.String() + ", which has waited", Since: k.Since})
		}
	}
	if w.Full {
		for _, f := range w.Hosts {
			lacking = append(lacking, capacity.Claim{Bound: capacity.Bound{Kind: capacity.OfHosts, Name: f.Name}})
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	d.Unchoose() // it is not placed now
	reasons = append(reasons, d.order(u, lacking)...)
	if why := d.makeRoom(u, w); !why.None() {
		return append(reasons, why)
	}
	waited := d.Now.Sub(d.WaitingSince(u))
	switch {
	case !d.comesTrue(w):
	case waited >= Patience:
		d.ReserveSome(u, keepable(w, lacking))
	default:
		d.WakeAt(d.Now.Add(Patience - waited))
	}
	return reasons
}

// order says who is ahead, and why a unit stands where it does.
func (d *Placer) order(u *capacity.Unit, lacking []capacity.Claim) []plan.Reason {
	var reasons []plan.Reason
	if u.Over != nil {
		reasons = append(reasons, plan.Because(plan.WaitTurn, fmt.Sprintf("it is beyond the budget of %s (%d chips), and so waits as batch does", u.Over.Name, u.Over.Budget)))
	}
	for _, c := range lacking {
		k := d.Reserved[c.Bound]
		if k == nil {
			k = &capacity.Reserved{}
			d.ReserveFor(c.Bound, k)
		}
		if k.Count > 0 {
			reasons = append(reasons, plan.Because(plan.WaitTurn, fmt.Sprintf("behind %d other%s: %s", k.Count, capacity.Plural(k.Count != 1), listed(k.Unable, k.Count))))
		}
		if k.Count++; k.Count <= 3 {
			k.Unable = append(k.Unable, u.Addr)
		}
	}
	return reasons
}
