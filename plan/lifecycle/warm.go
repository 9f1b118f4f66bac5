package lifecycle

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A job that lets go of slices of its own leaves them to the next job of its
// namespace that needs such slices, for as long as the namespace says: that one
// starts there within seconds. A slice keeps the name it was made by, and its
// record says whose it is. While no job holds it, it is the last one's, and has an
// IdleSince: without that record it is unwanted.

// LaunchedIdleTimeout is how long a slice that a launched job lets go of is kept
// where its namespace says nothing: programs launch one job after another.
const LaunchedIdleTimeout = time.Minute

// idleTimeout is how long slices are kept that a job lets go of, 0: not at all.
func (d *Attempts) idleTimeout(j *state.Job) time.Duration {
	for i := range d.Desired.Namespaces {
		n := &d.Desired.Namespaces[i]
		if n.Addr.Scoped() == j.Spec.Namespace && n.IdleTimeout > 0 {
			return time.Duration(n.IdleTimeout)
		}
	}
	if j.Launch != nil {
		return LaunchedIdleTimeout
	}
	return 0
}

// keepsWarm reports whether slices that a job lets go of are kept.
func (d *Attempts) keepsWarm(j *state.Job, why state.Cause) bool {
	r := &j.Spec.Resources
	return (why == state.CauseEnded || why == state.CauseStopped) && r.Reservation == "" && !r.Packed &&
		len(j.Slices) > 0 && d.idleTimeout(j) > 0
}

// setAside keeps the slices of a job that runs no more, as far as they are well,
// and says which of them it cannot release yet.
func (d *Attempts) setAside(addr schema.Address, why state.Termination) []plan.Reason {
	j := d.Next.Jobs[addr]
	well, left := *j, *j
	well.Slices, left.Slices = nil, nil
	for _, name := range j.Slices {
		if s := d.Next.Slices[name]; s != nil && s.Spec.Owner == addr && s.Spec.On == "" && d.isWell(name) {
			well.Slices = append(well.Slices, name)
		} else {
			left.Slices = append(left.Slices, name)
		}
	}
	waits := d.giveBack(&well)
	if len(waits) > 0 {
		return waits
	}
	for _, name := range well.Slices {
		d.NoteIdle(name, true)
	}
	if len(well.Slices) > 0 {
		d.Edit(addr).Slices = left.Slices
	}
	return d.deleteOwn(&left, why)
}

// isWell reports whether all hosts of a slice are up and are to stay so.
func (d *Attempts) isWell(name string) bool {
	if !d.IsBorn(name) {
		return false
	}
	st := d.Listed[name]
	if len(st.Down) > 0 || !d.LostHost(st).IsZero() {
		return false
	}
	for n := range st.Spec.Hosts {
		if h := d.Host(name, n); h == nil || h.Address == "" || h.Notice != "" {
			return false
		}
	}
	return true
}

// FindWarm finds the slices that jobs may take instead of new ones, those that
// idle for the shortest time first, and gives up those that are kept no more.
func (d *Attempts) FindWarm() {
	d.Warm = nil
	var names []string
	for name, s := range d.Next.Slices {
		if capacity.IdlesKept(s) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(d.Next.Slices[b].IdleSince.Compare(d.Next.Slices[a].IdleSince), cmp.Compare(a, b))
	})
	for _, name := range names {
		s := d.Next.Slices[name]
		j := d.Next.Jobs[s.Spec.Owner]
		switch {
		case j != nil && (slices.Contains(j.Slices, name) || slices.Contains(j.Staged, name)):
			d.NoteIdle(name, false) // an attempt was found there
		case j == nil || d.Leaving[s.Spec.Owner]:
			d.terminate(name, change.Decided(state.CauseUndeclared))
		case d.idleTimeout(j) == 0:
			d.terminate(name, change.Decided(state.CauseUnneeded))
		case !d.Known(&s.Spec): // nothing may be concluded
		case !d.isWell(name):
			d.terminate(name, state.Termination{Cause: state.CauseIdleUnwell, Text: "it idled, and is not well"})
		default:
			if d.Warm == nil {
				d.Warm = map[capacity.WarmKind][]string{}
			}
			kind := capacity.WarmKindOf(j.Spec.Namespace, d.Listed[name].Spec)
			d.Warm[kind] = append(d.Warm[kind], name)
		}
	}
}

// terminateIdle gives up the slices that are kept and were a job's last.
func (d *Attempts) terminateIdle(addr schema.Address, why state.Termination) {
	for name, s := range d.Next.Slices {
		if capacity.IdlesKept(s) && s.Spec.Owner == addr {
			d.terminate(name, why)
		}
	}
}

// Unclaim leaves to others what jobs had chosen.
func (d *Attempts) Unclaim(jobs []*schema.Job) {
	for name, by := range d.Taking {
		if slices.ContainsFunc(jobs, func(want *schema.Job) bool { return want.Addr == by }) {
			delete(d.Taking, name)
		}
	}
}

// PlacesFor picks a place for each of the jobs that are to be placed, see
// ChoosePlaces: where idle slices wait for all of them, or else where there may be
// new ones.
func (d *Attempts) PlacesFor(fresh, stay []*schema.Job) (map[schema.Address]capacity.Place, []plan.Reason) {
	warm := d.warmPlaces(fresh, stay)
	if len(warm) == 0 {
		return d.ChoosePlaces(fresh, stay)
	}
	cold := slices.DeleteFunc(slices.Clone(fresh), func(want *schema.Job) bool {
		_, chosen := warm[want.Addr]
		return chosen
	})
	places, reasons := d.ChoosePlaces(cold, stay)
	maps.Copy(warm, places)
	return warm, reasons
}

// warmPlaces are the places where jobs find idle slices for all that they need. The
// jobs of a group that is to be together find them together or not at all.
func (d *Attempts) warmPlaces(fresh, stay []*schema.Job) map[schema.Address]capacity.Place {
	fresh = slices.DeleteFunc(slices.Clone(fresh), func(want *schema.Job) bool { return !capacity.InCloudZones(want) })
	if len(d.Warm) == 0 || len(fresh) == 0 {
		return nil
	}
	chosen := map[schema.Address]capacity.Place{}
	group := d.GroupOf(fresh)
	if !group.SameRegion && !group.SameZone {
		for _, want := range fresh {
			if place, ok := d.warmPlace(want, capacity.Anywhere); ok {
				chosen[want.Addr] = place
			}
		}
		return chosen
	}
	for _, scope := range d.ScopesOf(&group, fresh, stay) {
		for _, want := range fresh {
			place, ok := d.warmPlace(want, func(zone string) bool { return capacity.ScopeOf(&group, zone) == scope })
			if !ok {
				break
			}
			chosen[want.Addr] = place
		}
		if len(chosen) == len(fresh) {
			return chosen
		}
		d.Unclaim(fresh)
		clear(chosen)
	}
	return nil
}

// warmPlace is the best place where idle slices wait for all that a job needs: those of any
// of its alternatives start at once, and are paid for already.
func (d *Attempts) warmPlace(want *schema.Job, allowed func(zone string) bool) (capacity.Place, bool) {
	for _, a := range want.Resources.Alternatives() {
		as := want.As(a)
		for _, zone := range d.ZonesOf(&as.Resources) {
			if !allowed(zone) {
				continue
			}
			if len(d.ClaimWarm(as, zone, want.Resources.Slices)) == want.Resources.Slices {
				return capacity.Place{Zone: zone, Accelerator: a}, true
			}
			d.Unclaim([]*schema.Job{want})
		}
	}
	return capacity.Place{}, false
}
