package cloud

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// groups is what callers read of groups and do to them.
type groups struct{ *lifecycle }

// Group is the group of that key.
func (c *groups) Group(k Key) (*Group, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, ok := c.live.byKey[k]
	if !ok {
		return nil, false
	}
	return g.now, true
}

// Groups are a project's groups of a kind in one zone, or in all for "", sorted
// by zone and name.
func (c *groups) Groups(project string, kind Kind, zone string) []*Group {
	c.mu.Lock()
	defer c.mu.Unlock()
	live := c.live.under(project, kind, zone)
	found := make([]*Group, len(live))
	for i, g := range live {
		found[i] = g.now
	}
	return found
}

// All are all groups of all projects, sorted by project, kind, zone and name.
func (c *groups) All() []*Group {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := make([]*Group, len(c.live.values))
	for i, g := range c.live.values {
		found[i] = g.now
	}
	return found
}

// Delete begins the deletion of a group in whatever state. Its operation ends
// when the group is gone.
func (c *groups) Delete(k Key) (Operation, error) {
	return c.act(k, "delete", func(g *group, op *operation) *Error {
		c.erase(g, op)
		return nil
	})
}

// Stop powers a ready group off; it keeps its capacity and its disks.
func (c *groups) Stop(k Key) (Operation, error) {
	return c.act(k, "stop", func(g *group, op *operation) *Error {
		if g.now.State != StateReady {
			return unsupported(g)
		}
		g.timers.withdraw()
		c.switchOff(g)
		now := c.clock.Now()
		c.change(g, func(v *Group) {
			v.State, v.Shown, v.Cause, v.Ended = StateStopping, StateStopping, CauseStopped, now
			v.HealthUnknown, v.Maintenance = false, false
		})
		g.op = op
		c.later(&g.timers, g.conditions.Deletion.draw(g.rand), func() {
			c.change(g, func(v *Group) { v.State, v.Shown = StateStopped, StateStopped })
			c.finish(g)
		})
		return nil
	})
}

// Start powers a stopped group on again.
func (c *groups) Start(k Key) (Operation, error) {
	return c.act(k, "start", func(g *group, op *operation) *Error {
		if g.now.State != StateStopped || g.now.Cause != CauseStopped {
			return unsupported(g)
		}
		c.change(g, func(v *Group) { v.State, v.Shown, v.Cause = StateStarting, StateStarting, "" })
		g.op = op
		c.later(&g.timers, g.conditions.Provisioning.draw(g.rand), func() { c.power(g) })
		return nil
	})
}

// Restart powers a ready group off and, as soon as that is done, on again.
func (c *groups) Restart(k Key) (Operation, error) {
	return c.act(k, "restart", func(g *group, op *operation) *Error {
		if g.now.State != StateReady {
			return unsupported(g)
		}
		g.timers.withdraw()
		c.switchOff(g)
		c.change(g, func(v *Group) { v.State, v.Shown, v.Maintenance = StateRestarting, StateRestarting, false })
		g.op = op
		c.later(&g.timers, g.conditions.Deletion.draw(g.rand), func() { c.power(g) })
		return nil
	})
}

// Update changes what may be changed of a group in place: labels, metadata,
// External and Detail. f gets a copy whose maps it may change.
func (c *groups) Update(k Key, f func(*Spec)) (Operation, error) {
	return c.act(k, "update", func(g *group, op *operation) *Error {
		if g.now.State == StateDeleting {
			return unsupported(g)
		}
		c.change(g, func(v *Group) {
			v.Labels, v.Metadata = maps.Clone(v.Labels), maps.Clone(v.Metadata)
			f(&v.Spec)
		})
		op.view.Group = g.now
		c.close(op, nil)
		return nil
	})
}

// act does something to a group under a new operation.
func (c *groups) act(k Key, verb string, f func(*group, *operation) *Error) (Operation, error) {
	var view Operation
	var err *Error
	c.do(func() {
		g, ok := c.live.byKey[k]
		if !ok {
			err = missing(k)
			return
		}
		op := c.open(k, verb)
		if err = f(g, op); err != nil {
			delete(c.operations.byName, op.view.Name)
			return
		}
		view = op.view
	})
	if err != nil {
		return Operation{}, err
	}
	return view, nil
}

func missing(k Key) *Error {
	collection := string(k.Kind) + "s"
	if k.Kind == KindQueued {
		collection = "queuedResources"
	}
	return newError(ReasonNotFound, "Resource 'projects/%s/locations/%s/%s/%s' was not found", k.Project, k.Zone, collection, k.Name)
}

func unsupported(g *group) *Error {
	return newError(ReasonState, "Cloud TPU received a bad request. The operation is not supported while in state %s [EID: 0x%x]",
		g.now.State, uint64(g.now.ID))
}

// Preempt preempts a group now, or after its notice.
func (c *groups) Preempt(k Key, notice bool) error {
	return c.strike(k, func(g *group) error {
		if alive(g.now.State) {
			c.preempt(g, notice)
			return nil
		}
		return fmt.Errorf("preempt %s %s: it is %s", k.Kind, k.Name, g.now.State)
	})
}

// Maintain starts a maintenance event on a ready group, for the workers named or
// for all with none.
func (c *groups) Maintain(k Key, workers ...int) error {
	return c.strike(k, func(g *group) error {
		if g.now.State != StateReady {
			return unsupported(g)
		}
		if len(workers) == 0 {
			workers = nil
		}
		c.maintain(g, slices.Clone(workers))
		return nil
	})
}

// Pretend has the API show a group in a state that it is not in, until it next
// changes by itself.
func (c *groups) Pretend(k Key, shown State) error {
	return c.strike(k, func(g *group) error {
		c.change(g, func(v *Group) { v.Shown = shown })
		return nil
	})
}

// KillHost powers one machine off without anything that shows it.
func (c *groups) KillHost(k Key, worker int) error {
	return c.strike(k, func(g *group) error {
		if worker < 0 || worker >= len(g.now.Hosts) {
			return fmt.Errorf("kill host %d of %s %s: it has %d", worker, k.Kind, k.Name, len(g.now.Hosts))
		}
		c.kill(g, worker)
		return nil
	})
}

func (c *groups) strike(k Key, f func(*group) error) error {
	var err error
	c.do(func() {
		g, ok := c.live.byKey[k]
		if !ok {
			err = missing(k)
			return
		}
		err = f(g)
	})
	return err
}

// SetGuestAttribute sets a guest attribute of a machine, as its metadata server does for
// the machine itself.
func (c *groups) SetGuestAttribute(machine string, key GuestAttributeKey, value string) error {
	var err error
	c.do(func() {
		m, ok := c.machines[machine]
		if !ok {
			err = newError(ReasonNotFound, "there is no machine %q", machine)
			return
		}
		c.change(m.group, func(v *Group) {
			h := &v.Hosts[m.worker]
			h.GuestAttributes = maps.Clone(h.GuestAttributes)
			if h.GuestAttributes == nil {
				h.GuestAttributes = map[GuestAttributeKey]string{}
			}
			h.GuestAttributes[key] = value
		})
	})
	return err
}

// GuestAttributes are the guest attributes of a machine, those set at its own metadata server
// included.
func (c *groups) GuestAttributes(machine string) map[GuestAttributeKey]string {
	all := map[GuestAttributeKey]string{}
	if hosts, ok := c.hosts.(GuestAttributes); ok {
		for path, value := range hosts.GuestAttributes(machine) {
			namespace, key, _ := strings.Cut(path, "/")
			all[GuestAttributeKey{namespace, key}] = value
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m, ok := c.machines[machine]; ok {
		maps.Copy(all, m.group.now.Hosts[m.worker].GuestAttributes)
	}
	return all
}

// Machine is the machine of that ID as [Hosts] know it, with its metadata as it
// is now.
func (c *groups) Machine(id string) (Machine, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.machines[id]
	if !ok {
		return Machine{}, false
	}
	return m.group.now.machine(m.worker), true
}
