package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// A job that lets go of slices of its own leaves them to the next job of its
// namespace that needs such slices, for as long as the namespace says: that one
// starts there within seconds. A slice keeps the name it was made by, and its
// record says whose it is. While nobody has it, it is the last one's, and has an
// IdleSince: without that record it is one that nobody wants.

// LaunchedIdleTimeout is how long a slice that a launched job lets go of is kept
// where its namespace says nothing: programs launch one job after another.
const LaunchedIdleTimeout = time.Minute

// warmKind is what slices have in common that do as well for the same jobs.
type warmKind struct {
	namespace string
	spec      schema.SliceSpec // without what tells slices apart
}

func warmKindOf(namespace string, spec schema.SliceSpec) warmKind {
	spec = spec.Fixed()
	spec.Name, spec.Owner, spec.Index = "", schema.Address{}, 0
	return warmKind{namespace: namespace, spec: spec}
}

// idleTimeout is how long slices are kept that a job lets go of, 0: not at all.
func (d *differ) idleTimeout(j *state.Job) time.Duration {
	for i := range d.desired.Namespaces {
		n := &d.desired.Namespaces[i]
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
func (d *differ) keepsWarm(j *state.Job, why state.Cause) bool {
	r := &j.Spec.Resources
	return (why == state.CauseEnded || why == state.CauseStopped) && r.Reservation == "" && !r.Packed &&
		len(j.Slices) > 0 && d.idleTimeout(j) > 0
}

// setAside keeps the slices of a job that runs no more, as far as they are well,
// and says which of them it cannot let go of yet.
func (d *differ) setAside(addr schema.Address, why state.Termination) []reason {
	j := d.next.Jobs[addr]
	well, left := *j, *j
	well.Slices, left.Slices = nil, nil
	for _, name := range j.Slices {
		if s := d.next.Slices[name]; s != nil && s.Spec.Owner == addr && s.Spec.On == "" && d.isWell(name) {
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
		d.noteIdle(name, true)
	}
	if len(well.Slices) > 0 {
		d.edit(addr).Slices = left.Slices
	}
	return d.deleteOwn(&left, why)
}

// isWell reports whether all hosts of a slice are up and are to stay so.
func (d *differ) isWell(name string) bool {
	if !d.isBorn(name) {
		return false
	}
	st := d.slices[name]
	if len(st.Down) > 0 || !d.lostHost(st).IsZero() {
		return false
	}
	for n := range st.Spec.Hosts {
		if h := d.host(name, n); h == nil || h.Address == "" || h.Notice != "" {
			return false
		}
	}
	return true
}

// isKeptIdle reports whether a slice is kept for the next job.
func (d *differ) isKeptIdle(name string) bool {
	s := d.next.Slices[name]
	return s != nil && idlesKept(s)
}

// idlesKept is isKeptIdle of a slice by its record.
func idlesKept(s *state.Slice) bool {
	return !s.IdleSince.IsZero() && s.Terminating.IsZero() && s.Spec.Owner.Kind != schema.KindReservation
}

// findWarm finds the slices that jobs may take instead of new ones, those that
// idle for the shortest time first, and gives up those that are kept no more.
func (d *differ) findWarm() {
	d.warm = nil
	var names []string
	for name, s := range d.next.Slices {
		if idlesKept(s) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(d.next.Slices[b].IdleSince.Compare(d.next.Slices[a].IdleSince), cmp.Compare(a, b))
	})
	for _, name := range names {
		s := d.next.Slices[name]
		j := d.next.Jobs[s.Spec.Owner]
		switch {
		case j != nil && (slices.Contains(j.Slices, name) || slices.Contains(j.Staged, name)):
			d.noteIdle(name, false) // an attempt was found there
		case j == nil || d.leaving[s.Spec.Owner]:
			d.terminate(name, decided(state.CauseUndeclared))
		case d.idleTimeout(j) == 0:
			d.terminate(name, decided(state.CauseUnneeded))
		case !d.known(&s.Spec): // nothing may be concluded
		case !d.isWell(name):
			d.terminate(name, state.Termination{Cause: state.CauseIdleUnwell, Text: "it idled, and is not well"})
		default:
			if d.warm == nil {
				d.warm = map[warmKind][]string{}
			}
			kind := warmKindOf(j.Spec.Namespace, d.slices[name].Spec)
			d.warm[kind] = append(d.warm[kind], name)
		}
	}
}

// terminateIdle gives up the slices that are kept and were a job's last.
func (d *differ) terminateIdle(addr schema.Address, why state.Termination) {
	for name, s := range d.next.Slices {
		if idlesKept(s) && s.Spec.Owner == addr {
			d.terminate(name, why)
		}
	}
}

// claimWarm chooses up to n idle slices in a zone for a job. Those that it has chosen
// before in this look are among them.
func (d *differ) claimWarm(want *schema.Job, zone string, n int) []string {
	if len(d.warm) == 0 || want.Resources.Packed {
		return nil
	}
	all := d.warm[warmKindOf(want.Namespace, d.ownSlice(want, 0, zone))]
	var chosen []string
	for _, mine := range [2]bool{true, false} {
		for _, name := range all {
			by, claimed := d.taking[name]
			if len(chosen) == n || claimed != mine || mine && by != want.Addr || !d.isKeptIdle(name) {
				continue
			}
			chosen = append(chosen, name)
		}
	}
	for _, name := range chosen {
		if d.taking == nil {
			d.taking = map[string]schema.Address{}
		}
		d.taking[name] = want.Addr
	}
	return chosen
}

// unclaim leaves to others what jobs had chosen.
func (d *differ) unclaim(jobs []*schema.Job) {
	for name, by := range d.taking {
		if slices.ContainsFunc(jobs, func(want *schema.Job) bool { return want.Addr == by }) {
			delete(d.taking, name)
		}
	}
}

// warmSpecs are the idle slices that a job is given in a zone, as its own, and the
// indices that they have. Those that were its own keep theirs.
func (d *differ) warmSpecs(want *schema.Job, zone string) ([]schema.SliceSpec, map[int]bool) {
	names := d.claimWarm(want, zone, want.Resources.Slices)
	if len(names) == 0 {
		return nil, nil
	}
	specs, used := make([]schema.SliceSpec, 0, want.Resources.Slices), map[int]bool{}
	add := func(name string, index int) {
		spec := d.ownSlice(want, index, zone)
		spec.Name = name
		specs, used[index] = append(specs, spec), true
	}
	var others []string
	for _, name := range names {
		if s := d.next.Slices[name]; s.Spec.Owner == want.Addr && !used[s.Spec.Index] {
			add(name, s.Spec.Index)
		} else {
			others = append(others, name)
		}
	}
	index := 0
	for _, name := range others {
		for used[index] {
			index++
		}
		add(name, index)
	}
	return specs, used
}

// takeUp records that a slice is a job's, which may have been another's before.
func (d *differ) takeUp(spec *schema.SliceSpec) {
	s := d.next.Slices[spec.Name]
	if s.IdleSince.IsZero() {
		return
	}
	e := d.editSlice(spec.Name)
	e.IdleSince = time.Time{}
	e.Spec.Owner, e.Spec.Index = spec.Owner, spec.Index
	if st, listed := d.slices[spec.Name]; listed {
		d.assumeOwner(st, spec.Owner, spec.Index)
	}
}

// placesFor picks a zone for each of the jobs that are to be placed, see
// chooseZones: where idle slices wait for all of them, or else where there may be
// new ones.
func (d *differ) placesFor(fresh, stay []*schema.Job) (map[schema.Address]string, []reason) {
	warm := d.warmZones(fresh, stay)
	if len(warm) == 0 {
		return d.chooseZones(fresh, stay)
	}
	cold := slices.DeleteFunc(slices.Clone(fresh), func(want *schema.Job) bool {
		_, chosen := warm[want.Addr]
		return chosen
	})
	zones, reasons := d.chooseZones(cold, stay)
	maps.Copy(warm, zones)
	return warm, reasons
}

// warmZones are the zones where jobs find idle slices for all that they need. The
// jobs of a group that is to be together find them together or not at all.
func (d *differ) warmZones(fresh, stay []*schema.Job) map[schema.Address]string {
	fresh = slices.DeleteFunc(slices.Clone(fresh), func(want *schema.Job) bool { return !inCloudZones(want) })
	if len(d.warm) == 0 || len(fresh) == 0 {
		return nil
	}
	chosen := map[schema.Address]string{}
	group := d.groupOf(fresh)
	if !group.SameRegion && !group.SameZone {
		for _, want := range fresh {
			if zone, ok := d.warmZone(want, anywhere); ok {
				chosen[want.Addr] = zone
			}
		}
		return chosen
	}
	for _, scope := range d.scopesOf(&group, fresh, stay) {
		for _, want := range fresh {
			zone, ok := d.warmZone(want, func(zone string) bool { return scopeOf(&group, zone) == scope })
			if !ok {
				break
			}
			chosen[want.Addr] = zone
		}
		if len(chosen) == len(fresh) {
			return chosen
		}
		d.unclaim(fresh)
		clear(chosen)
	}
	return nil
}

// warmZone is the best zone where idle slices wait for all that a job needs.
func (d *differ) warmZone(want *schema.Job, allowed func(zone string) bool) (string, bool) {
	for _, zone := range d.zonesOf(&want.Resources) {
		if !allowed(zone) {
			continue
		}
		if len(d.claimWarm(want, zone, want.Resources.Slices)) == want.Resources.Slices {
			return zone, true
		}
		d.unclaim([]*schema.Job{want})
	}
	return "", false
}
