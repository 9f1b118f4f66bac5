package capacity

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A job with alternatives is given slices of the first of them that some zone may be asked
// for. It is chosen when the job is given slices, from what is declared, the health of the
// zones and the slices that are recorded; as long as one of these lives, the job keeps it.

// Place is where slices of a job are asked for.
type Place struct {
	Zone        string             // "" where there are no zones
	Accelerator schema.Accelerator // which of its alternatives; "" of a job without any
}

// rankOf is how many alternatives of a job are better than one.
func rankOf(want *schema.Job, a schema.Accelerator) int {
	return max(0, slices.Index(want.Resources.Alternatives(), a))
}

// OpenPlace is the best place for a job among the zones that are allowed, false where all
// are blocked for each of its alternatives, and why each is.
func (d *Zones) OpenPlace(want *schema.Job, allowed func(zone string) bool) (Place, []plan.Reason, bool) {
	var reasons []plan.Reason
	for _, a := range want.Resources.Alternatives() {
		if why := d.tooLarge(want, a); !why.None() {
			reasons = append(reasons, on(want, a, why)...)
			continue
		}
		zone, why, ok := d.openZone(want.As(a), allowed)
		if ok {
			return Place{Zone: zone, Accelerator: a}, nil, true
		}
		reasons = append(reasons, on(want, a, why...)...)
	}
	return Place{}, reasons, false
}

// on says of reasons which alternative they are of, where there are several.
func on(want *schema.Job, a schema.Accelerator, reasons ...plan.Reason) []plan.Reason {
	if len(want.Resources.Accelerators) == 0 {
		return reasons
	}
	said := slices.Clone(reasons)
	for i := range said {
		said[i].Text = string(a) + ": " + said[i].Text
	}
	return said
}

// tooLarge says why an alternative of several can never be had, whatever ends: it is larger
// than a limit, or its provider has GPUs of another type.
func (d *Zones) tooLarge(want *schema.Job, a schema.Accelerator) plan.Reason {
	if len(want.Resources.Accelerators) == 0 {
		return plan.Reason{}
	}
	as, n := want.As(a), want.Resources.Slices
	if p := d.Provider(want.Resources.Provider); !p.GPU.Has(a.GPU()) {
		return plan.Because(plan.WaitConstraint, fmt.Sprintf("provider %s has %s", p.Name, p.GPU))
	}
	limit := LimitOf(*d.Provider(want.Resources.Provider))
	spec := plan.UnnamedSlice(d.Stack, as, 0)
	if need := (plan.Amount{}).Times(d.AmountOf(&spec), n); need.Exceeds(plan.Amount{}, limit) {
		return plan.Because(plan.WaitLimit, fmt.Sprintf("provider %s: %s", want.Resources.Provider, shortage(need, plan.Amount{}, limit)))
	}
	s := d.Accounts()
	for _, account := range s.Of(SpaceOf(s, RecordAs(want, d.JobAt(want.Addr))), want.User) {
		if need := (snapshot.Load{}).Plus(d.LoadOf(as), n); need.Exceeds(snapshot.Load{}, account.Max) {
			return plan.Because(plan.WaitLimit, account.Name+": "+SpaceShortage(need, snapshot.Load{}, account.Max))
		}
	}
	return plan.Reason{}
}

// zonesOfAny are the zones of all alternatives of a job, those of better ones first.
func zonesOfAny(d *Pools, want *schema.Job) []string {
	var all []string
	for _, a := range want.Resources.Alternatives() {
		for _, zone := range d.ZonesOf(&want.As(a).Resources) {
			if !slices.Contains(all, zone) {
				all = append(all, zone)
			}
		}
	}
	return all
}

// isBetter reports whether jobs have better alternatives at some places than at others: the
// first of them decides.
func isBetter(jobs []*schema.Job, at, than map[schema.Address]Place) bool {
	for _, want := range jobs {
		a, b := rankOf(want, at[want.Addr].Accelerator), rankOf(want, than[want.Addr].Accelerator)
		if a != b {
			return a < b
		}
	}
	return false
}

// Asked is a job as its slices are asked for, on the alternative that was chosen for it.
func (d *Zones) Asked(want *schema.Job) *schema.Job {
	if a := d.Chosen[want.Addr].Accelerator; a != "" {
		return want.As(a)
	}
	return d.Running(want)
}

// MayChooseAgain reports whether a job with alternatives holds slices of which none lives
// or is on its way: it may as well have others.
func (d *Zones) MayChooseAgain(want *schema.Job) bool {
	j := d.JobAt(want.Addr)
	if len(want.Resources.Accelerators) == 0 || j == nil || j.Running() || len(j.Slices) == 0 || d.IsUnseen(want) {
		return false
	}
	return !slices.ContainsFunc(j.Slices, func(name string) bool {
		s := d.Next.Slices[name]
		st, listed := d.Listed[name]
		switch {
		case s == nil:
			return true // what is there under its name is not known
		case listed:
			return s.Terminating.IsZero() && st.Phase != schema.SliceDead && st.Phase != schema.SliceDeleting
		}
		return !s.PendingSince.IsZero() && s.Failed == ""
	})
}

// Better are the places where jobs that may choose again have better alternatives than
// those of the slices that they hold, nil where they have none.
func (d *Zones) Better(jobs, stay []*schema.Job) map[schema.Address]Place {
	held := make(map[schema.Address]Place, len(jobs))
	for _, want := range jobs {
		held[want.Addr] = Place{Accelerator: snapshot.AcceleratorOf(d.Next, want)}
	}
	chosen, why := d.ChoosePlaces(jobs, stay)
	if len(why) > 0 || !isBetter(jobs, chosen, held) {
		return nil
	}
	return chosen
}

// NoteChoice records which alternative a job was given slices of.
func (d *Zones) NoteChoice(want *schema.Job) {
	if len(want.Resources.Accelerators) == 0 {
		return
	}
	c := state.Choice{Accelerator: snapshot.AcceleratorOf(d.Next, want), Reason: state.ChoiceFirst, At: d.Now}
	j := d.Next.Jobs[want.Addr]
	isIdle := slices.ContainsFunc(j.Slices, func(name string) bool { return d.Taking[name] == want.Addr })
	for _, a := range want.Resources.Accelerators[:rankOf(want, c.Accelerator)] {
		passed := state.PassedAlternative{Accelerator: a, Cause: state.PassedIdle}
		if why := blockedFor(d, want, a); !why.None() {
			passed.Cause, passed.Text = passedCause(why), why.Text
		}
		c.Passed = append(c.Passed, passed)
	}
	switch {
	case len(c.Passed) == 0:
	case isIdle:
		c.Reason = state.ChoiceIdle
	default:
		c.Reason = state.ChoiceBlocked
	}
	d.Edit(want.Addr).Choice = &c
}

// SuitsStaged reports whether all slices that wait to take over for a job with alternatives
// are of one of them.
func SuitsStaged(doc *state.Document, want *schema.Job) bool {
	return len(want.Resources.Accelerators) == 0 || !slices.ContainsFunc(doc.Jobs[want.Addr].Staged, func(name string) bool {
		s := doc.Slices[name]
		return s == nil || !want.Resources.IsAlternative(s.Spec.Accelerator())
	})
}

// NoteFound records which alternative a job has that was found running.
func (d *Zones) NoteFound(j *state.Job) {
	held := snapshot.HeldAccelerator(d.Next, j)
	if isChosen := j.Choice != nil && j.Choice.Accelerator == held; held != "" && !isChosen && len(j.Spec.Resources.Accelerators) > 0 {
		d.Edit(j.Spec.Addr).Choice = &state.Choice{Accelerator: held, Reason: state.ChoiceFound, At: d.Now}
	}
}

// blockedFor is the first reason why an alternative is not to be had, none if it is.
func blockedFor(d *Zones, want *schema.Job, a schema.Accelerator) plan.Reason {
	if why := d.tooLarge(want, a); !why.None() {
		return why
	}
	if _, why, open := d.openZone(want.As(a), Anywhere); !open {
		return why[0]
	}
	if group := d.GroupOf([]*schema.Job{want}); group.SameRegion || group.SameZone {
		return plan.Because(plan.WaitConstraint, "no zone in common with its group may be asked for it")
	}
	return plan.Reason{}
}

// passedCause is why an alternative was passed for which a job would have waited.
func passedCause(why plan.Reason) state.PassedCause {
	if why.Underway {
		return state.PassedProbing
	}
	switch why.Kind {
	case plan.WaitQuota:
		return state.PassedQuota
	case plan.WaitProvider, plan.WaitUnconfirmed:
		return state.PassedProvider
	case plan.WaitConstraint:
		return state.PassedNowhere
	case plan.WaitLimit:
		return state.PassedLimit
	case plan.WaitCapacity, plan.WaitRetry, plan.WaitNone, plan.WaitUnderway, plan.WaitDependency, plan.WaitBlocked, plan.WaitTurn, plan.WaitBudget, plan.WaitRoom:
	}
	return state.PassedCapacity
}

// zonelessPlace is where a job is whose provider has no zones: on the first alternative that
// its limits leave room for.
func zonelessPlace(d *Zones, want *schema.Job) Place {
	place, _, _ := d.OpenPlace(want, Anywhere)
	return Place{Accelerator: cmp.Or(place.Accelerator, want.Resources.Accelerator())}
}

// with is a map with one more entry.
func with(places map[schema.Address]Place, addr schema.Address, at Place) map[schema.Address]Place {
	if places == nil {
		places = map[schema.Address]Place{}
	}
	places[addr] = at
	return places
}
