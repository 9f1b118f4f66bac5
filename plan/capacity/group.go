package capacity

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// A reservation in a job group is where the jobs and services of the group are. All of
// them have one scope, a region or a zone: that of what the group has already, or else
// one in which all members may have capacity.

// group is a job group that is tied to one scope and has reservations in the cloud.
type group struct {
	*schema.JobGroup
	d     *Pools
	pools []*schema.Reservation
	jobs  []*schema.Job // with slices of their own in zones, that have not ended
}

// tiedGroup is the group with an address, false if its reservations, if any, may be
// anywhere.
func tiedGroup(d *Pools, addr schema.Address) (group, bool) {
	declared := groupAt(d.Desired, addr)
	if declared == nil || !declared.SameRegion && !declared.SameZone {
		return group{}, false
	}
	g := group{JobGroup: declared, d: d}
	for i := range d.Desired.Reservations {
		if r := &d.Desired.Reservations[i]; r.Addr.GroupAddress() == addr && r.Provider == schema.ProviderGCP {
			g.pools = append(g.pools, r)
		}
	}
	if len(g.pools) == 0 {
		return group{}, false
	}
	for _, want := range d.Family(addr) {
		if j := d.Next.Jobs[want.Addr]; InCloudZones(want) && (j == nil || !j.Status.Ended()) {
			g.jobs = append(g.jobs, want)
		}
	}
	return g, true
}

// groupAt is a declared group, nil if there is none.
func groupAt(desired *schema.Desired, addr schema.Address) *schema.JobGroup {
	if addr.IsZero() {
		return nil
	}
	at := slices.IndexFunc(desired.Groups, func(g schema.JobGroup) bool { return g.Addr == addr })
	if at < 0 {
		return nil
	}
	return &desired.Groups[at]
}

// scope is where a group is to be while some of its jobs look for other places. The
// slices of its other jobs settle it, and those of its reservations on which jobs run.
// Other slices of its reservations do as well, unless jobs that wait cannot have capacity
// beside them and the whole group can elsewhere.
func (g *group) scope(leaving []*schema.Job) string {
	for _, want := range g.jobs {
		if zone := g.settledZone(want.Addr); zone != "" && !slices.Contains(leaving, want) {
			return ScopeOf(g.JobGroup, zone)
		}
	}
	held, user := g.poolScope()
	if held != "" && (!user.IsZero() || g.areOpen(held, nil)) {
		return held
	}
	scopes := g.commonScopes()
	for _, scope := range scopes {
		if scope != held && g.areOpen(scope, g.pools) {
			return scope
		}
	}
	if held != "" || len(scopes) == 0 {
		return held
	}
	return scopes[0]
}

// settledZone is the zone of a slice that a job has and that was not refused, "" if it
// has none.
func (g *group) settledZone(addr schema.Address) string {
	j := g.d.Next.Jobs[addr]
	if j == nil {
		return ""
	}
	for _, name := range j.Slices {
		if s := g.d.Next.Slices[name]; s != nil && s.Spec.On == "" && !leavesZone(s.Terminating.Decided()) && !g.d.IsRejected(name) {
			return s.Spec.Zone
		}
	}
	return ""
}

// poolScope is the scope of the first slice that a reservation of a group has and
// that was not refused, one on which a job runs before all others, "" if none has one;
// and that job.
func (g *group) poolScope() (scope string, user schema.Address) {
	type found struct {
		idle, pool int
		name       string
		user       schema.Address
	}
	var first *found
	for name, s := range g.d.Next.Slices {
		i := slices.IndexFunc(g.pools, func(r *schema.Reservation) bool { return r.Addr == s.Spec.Owner })
		if i < 0 || s.Spec.Zone == "" || !s.Terminating.IsZero() || g.d.IsRejected(name) {
			continue
		}
		is := found{idle: 1, pool: i, name: name}
		if addr, held := g.d.HeldBy(name); held && g.d.Next.Jobs[addr] != nil && g.d.Next.Jobs[addr].Running() {
			is.idle, is.user = 0, addr
		}
		if first == nil || cmp.Or(cmp.Compare(is.idle, first.idle), cmp.Compare(is.pool, first.pool), cmp.Compare(is.name, first.name)) < 0 {
			first = &is
		}
	}
	if first == nil {
		return "", schema.Address{}
	}
	return ScopeOf(g.JobGroup, g.d.Next.Slices[first.name].Spec.Zone), first.user
}

// Staying is why the members of a group do not look for capacity elsewhere although they
// could have it there: a job runs on a reservation of the group, whose slices are not taken
// from it. "" where that is not so.
func Staying(d *Pools, member schema.Address) string {
	g, tied := tiedGroup(d, member.GroupAddress())
	if !tied || slices.ContainsFunc(g.jobs, func(j *schema.Job) bool { return g.settledZone(j.Addr) != "" }) {
		return "" // slices of its own hold it, too
	}
	held, user := g.poolScope()
	others := slices.DeleteFunc(g.commonScopes(), func(scope string) bool { return scope == held })
	if user.IsZero() || len(others) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s stays in %s as long as %s runs on its reservation: stop that job to have the group tried in %s too",
		g.Addr, held, user, strings.Join(others, ", "))
}

// commonScopes are the scopes in which all members of a group have a zone, best first.
func (g *group) commonScopes() []string {
	var common []string
	for i, zones := range g.memberZones() {
		var scopes []string
		for _, zone := range zones {
			if scope := ScopeOf(g.JobGroup, zone); !slices.Contains(scopes, scope) {
				scopes = append(scopes, scope)
			}
		}
		if i == 0 {
			common = scopes
			continue
		}
		common = slices.DeleteFunc(common, func(scope string) bool { return !slices.Contains(scopes, scope) })
	}
	return common
}

func (g *group) memberZones() [][]string {
	all := make([][]string, 0, len(g.pools)+len(g.jobs))
	for _, r := range g.pools {
		all = append(all, g.d.poolZones(r))
	}
	for _, want := range g.jobs {
		all = append(all, zonesOfAny(g.d, want))
	}
	return all
}

// areOpen reports whether in a scope all jobs of a group that have no slices, and some
// reservations, have a zone that is not blocked.
func (g *group) areOpen(scope string, pools []*schema.Reservation) bool {
	open := func(zones []string, at func(zone string) schema.SliceSpec) bool {
		return slices.ContainsFunc(zones, func(zone string) bool {
			if ScopeOf(g.JobGroup, zone) != scope {
				return false
			}
			spec := at(zone)
			return g.d.Shut(&spec).None()
		})
	}
	for _, r := range pools {
		if !open(g.d.poolZones(r), func(zone string) schema.SliceSpec { return g.d.poolSlice(r, 0, zone) }) {
			return false
		}
	}
	for _, want := range g.jobs {
		if g.settledZone(want.Addr) != "" {
			continue
		}
		if !slices.ContainsFunc(want.Resources.Alternatives(), func(a schema.Accelerator) bool {
			as := want.As(a)
			return open(g.d.ZonesOf(&as.Resources), func(zone string) schema.SliceSpec { return g.d.OwnSlice(as, 0, zone) })
		}) {
			return false
		}
	}
	return true
}

// IsApart reports whether a zone is not where the group of a reservation is.
func (d *Pools) IsApart(r *schema.Reservation, zone string) bool {
	g, tied := tiedGroup(d, r.Addr.GroupAddress())
	if !tied {
		return false
	}
	scope := g.scope(nil)
	return scope != "" && scope != ScopeOf(g.JobGroup, zone)
}

// leavingGroup counts the slices that go since the group is elsewhere: only when they
// have gone, others may be asked for beside it.
func leavingGroup(d *Pools, r *schema.Reservation, recorded []string) int {
	count := 0
	for _, name := range recorded {
		s := d.Next.Slices[name]
		if _, listed := d.Listed[name]; (listed || !s.PendingSince.IsZero() && s.Failed == "") && s.Spec.Zone != "" && d.IsApart(r, s.Spec.Zone) {
			count++
		}
	}
	return count
}

// zonesNear are the zones of a reservation where it is near its group.
func zonesNear(d *Pools, r *schema.Reservation) []string {
	zones := d.poolZones(r)
	g, tied := tiedGroup(d, r.Addr.GroupAddress())
	if !tied {
		return zones
	}
	scope := g.scope(nil)
	near := slices.DeleteFunc(slices.Clone(zones), func(zone string) bool { return ScopeOf(g.JobGroup, zone) != scope })
	if len(near) == 0 {
		return zones
	}
	return near
}

// OwnSlice returns the slice with an index that a job asks for in a zone, see [schema.Job.As].
func (d *Pools) OwnSlice(want *schema.Job, index int, zone string) schema.SliceSpec {
	if zone == "" {
		return plan.OwnSlice(d.Stack, want, index)
	}
	spec := Located(plan.UnnamedSlice(d.Stack, want, index), zone, d.Provider(want.Resources.Provider).Offers)
	spec.Name = ownName(d.Stack, want, index, zone)
	return spec
}

// ownName is the name of a job's own slice in a zone. Slices of different alternatives have
// different names, so that one that turns up late is never taken for another.
func ownName(stack string, want *schema.Job, index int, zone string) string {
	if len(want.Resources.Accelerators) > 0 {
		zone += "/" + string(want.Resources.Accelerator())
	}
	return plan.SliceNameIn(zone, stack, want.Addr, index)
}
