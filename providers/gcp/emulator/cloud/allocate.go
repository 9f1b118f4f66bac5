package cloud

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// group is a group while it is there.
type group struct {
	now        *Group // replaced by every change
	rand       *rand.Rand
	conditions *Conditions
	owner      owner      // that it was made for, nil without one
	op         *operation // its creation or start while that is open
	deletes    []*operation
	timers     timers
	holds      bool // capacity
	charged    bool // quota of its own
	ending     bool // its end has been announced
	removed    bool
}

// owner is what groups are made for together: a queued resource.
type owner interface {
	groupReady()
	groupFailed(err *Error)
	groupEnded()
	groupGone(g *group)
}

// machineRef finds a machine by its ID.
type machineRef struct {
	group  *group
	worker int
}

// lifecycle is what happens to groups from their creation to their removal.
type lifecycle struct {
	*runner
	*rules
	*accounts
	*operations
	subnet    netip.Prefix
	ids       int64
	addresses uint64
	made      map[Key]uint64 // groups of that name so far
	live      index[*group]
	machines  map[string]machineRef
}

// Allocate asks for a group. What is wrong with the request itself, a name that
// is taken or an exceeded quota is an [*Error] at once; a stockout and other
// bad luck fail the operation later. From now on the group is listed.
func (c *lifecycle) Allocate(spec Spec) (Operation, error) {
	var view Operation
	var err *Error
	c.do(func() {
		if err = c.check([]Spec{spec}); err != nil {
			return
		}
		g := c.add(spec, nil, "")
		g.charged = true
		c.charge([]Spec{spec}, 1)
		g.op = c.open(spec.Key, "create")
		g.op.onCancel = func() { c.remove(g) }
		if lack := c.lacking([]Spec{spec}); lack != nil {
			c.later(&g.timers, g.conditions.StockoutAfter.draw(g.rand), func() { c.fail(g, lack) })
		} else {
			c.provision(g)
		}
		view = g.op.view
	})
	if err != nil {
		return Operation{}, err
	}
	return view, nil
}

// check is what is wrong with a request for groups at once.
func (c *lifecycle) check(specs []Spec) *Error {
	for i := range specs {
		s := &specs[i]
		if s.Units < 1 || s.Machines < 1 {
			return newError(ReasonInvalid, "%q asks for %d units on %d machines", s.Name, s.Units, s.Machines)
		}
		if !slices.Contains(c.Offered(s.Zone), s.Type) {
			return newError(ReasonInvalid, "%q is not offered in the zone %q.", s.Type, s.Zone)
		}
		if _, taken := c.live.byKey[s.Key]; taken {
			return newError(ReasonExists, "Resource 'projects/%s/locations/%s/%ss/%s' already exists", s.Project, s.Zone, s.Kind, s.Name)
		}
	}
	return c.overQuota(specs)
}

// add makes a group in its first state. Its luck depends on the seed, its name
// and how many of that name there were, and on nothing that others do.
func (c *lifecycle) add(spec Spec, of owner, queued string) *group {
	c.made[spec.Key]++
	c.ids++
	g := &group{
		now: &Group{
			Spec: spec, ID: c.ids, State: StateCreating, Shown: StateCreating, Created: c.clock.Now(), Queued: queued,
		},
		rand:       c.luck(spec.Key, c.made[spec.Key]),
		conditions: c.conditions(spec.Zone, spec.Type),
		owner:      of,
	}
	c.live.put(spec.Key, g)
	c.notify(g)
	return g
}

// provision takes capacity for a group and lets it come up.
func (c *lifecycle) provision(g *group) {
	g.holds = true
	c.take(&g.now.Spec)
	took := g.conditions.Provisioning.draw(g.rand)
	fails, preempted := g.conditions.LateFailures.draw(g.rand), g.conditions.CreatePreempted.draw(g.rand)
	switch {
	case fails:
		c.later(&g.timers, took, func() {
			c.fail(g, newError(ReasonInternal, "an internal error has occurred; please try again later"))
		})
	case preempted && g.now.Tier == TierSpot:
		c.later(&g.timers, took, func() { c.end(g, CausePreempted) })
	default:
		c.later(&g.timers, took, func() { c.power(g) })
	}
}

// power gives a group's machines power, one after another, and then shows it
// ready.
func (c *lifecycle) power(g *group) {
	if g.now.Hosts == nil {
		c.equip(g)
	}
	last := time.Duration(0)
	for i := range g.now.Hosts {
		if g.conditions.DeadHosts.draw(g.rand) {
			continue
		}
		after := g.conditions.BootSpread.draw(g.rand)
		last = max(last, after)
		c.later(&g.timers, after, func() { c.switchOn(g, i) })
	}
	c.later(&g.timers, last+g.conditions.OperationLag.draw(g.rand), func() { c.ready(g) })
}

// equip gives a group its machines.
func (c *lifecycle) equip(g *group) {
	c.change(g, func(v *Group) {
		v.Hosts = make([]Host, v.Machines)
		for i := range v.Hosts {
			h := &v.Hosts[i]
			h.ID = fmt.Sprintf("vm-%x-w-%d", v.ID, i)
			if v.Kind == KindNode {
				h.ID = fmt.Sprintf("t1v-n-%x-w-%d", v.ID, i)
			}
			h.Instance = c.instance(v, i)
			h.Address = c.address()
			h.External = fmt.Sprintf("203.0.113.%d", 1+c.addresses%254)
			h.Bad = g.conditions.BadHosts.draw(g.rand)
			h.Boot = g.conditions.Boot.draw(g.rand)
			c.machines[h.ID] = machineRef{g, i}
		}
	})
}

func (c *lifecycle) instance(v *Group, i int) string {
	switch {
	case i < len(v.Instances):
		return v.Instances[i]
	case v.Kind == KindInstance:
		return v.Name
	case v.Kind == KindGroup:
		return fmt.Sprintf("%s-%04x", v.Name, (uint64(v.ID)*0x9e37+uint64(i))&0xffff)
	}
	return v.Hosts[i].ID
}

// address is the next internal address.
func (c *lifecycle) address() string {
	c.addresses++
	size := uint64(1)<<(32-c.subnet.Bits()) - 2
	base := c.subnet.Masked().Addr().As4()
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], binary.BigEndian.Uint32(base[:])+uint32(c.addresses%size)+1)
	return fmt.Sprintf("%d.%d.%d.%d", b[0], b[1], b[2], b[3])
}

func (c *lifecycle) switchOn(g *group, worker int) {
	c.change(g, func(v *Group) { v.Hosts[worker].On = true })
	m := g.now.machine(worker)
	c.host(func(h Hosts) { h.Start(m) })
}

// switchOff powers machines off, all that are on.
func (c *lifecycle) switchOff(g *group) {
	if !slices.ContainsFunc(g.now.Hosts, func(h Host) bool { return h.On }) {
		return
	}
	before := g.now.Hosts
	c.change(g, func(v *Group) {
		for i := range v.Hosts {
			v.Hosts[i].On = false
		}
	})
	for i := range before {
		if id := before[i].ID; before[i].On {
			c.host(func(h Hosts) { h.Stop(id) })
		}
	}
}

// ready shows a group ready and lets its fate begin.
func (c *lifecycle) ready(g *group) {
	now := c.clock.Now()
	vague := g.conditions.UnknownHealthFor.draw(g.rand)
	c.change(g, func(v *Group) {
		v.State, v.Shown, v.HealthUnknown = StateReady, StateReady, vague > 0
		if v.Ready.IsZero() {
			v.Ready = now
		}
	})
	if vague > 0 {
		c.later(&g.timers, vague, func() { c.change(g, func(v *Group) { v.HealthUnknown = false }) })
	}
	c.finish(g)
	if g.owner != nil {
		g.owner.groupReady()
	}
	c.fate(g)
}

// finish ends a group's open creation or start well.
func (c *lifecycle) finish(g *group) {
	if g.op != nil {
		g.op.view.Group = g.now
		c.close(g.op, nil)
		g.op = nil
	}
}

// fail ends a creation that came to nothing: the group vanishes.
func (c *lifecycle) fail(g *group, err *Error) {
	c.close(g.op, err)
	g.op = nil
	c.remove(g)
	if g.owner != nil {
		g.owner.groupFailed(err)
	}
}

// change replaces what a group is.
func (c *lifecycle) change(g *group, f func(*Group)) {
	next := g.now.copied()
	f(next)
	g.now = next
	c.notify(g)
}

func (c *lifecycle) notify(g *group) {
	if changed := g.now.Changed; changed != nil {
		now := g.now
		c.effects.add(func() { changed(now) })
	}
}
