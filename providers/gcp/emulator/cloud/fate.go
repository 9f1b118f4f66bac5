package cloud

import (
	"slices"
	"time"
)

// fate lets begin what happens to a ready group by itself.
func (c *lifecycle) fate(g *group) {
	if g.now.Tier == TierSpot && g.conditions.Preemption > 0 {
		c.later(&g.timers, exponential(g.conditions.Preemption, g.rand), func() {
			if !c.abated {
				c.preempt(g, g.conditions.Notice.draw(g.rand))
			}
		})
	}
	c.awaitMaintenance(g)
	if g.now.MaxRun > 0 {
		left := g.now.MaxRun - c.clock.Now().Sub(g.now.Ready)
		c.later(&g.timers, max(left-NoticeTime, time.Nanosecond), func() { c.announce(g, CauseMaxRun) })
	}
}

func (c *lifecycle) awaitMaintenance(g *group) {
	if g.conditions.Maintenance <= 0 {
		return
	}
	c.later(&g.timers, exponential(g.conditions.Maintenance, g.rand), func() {
		if !c.abated {
			c.maintain(g, nil)
		}
	})
}

// preempt ends a group, at once or after its notice.
func (c *lifecycle) preempt(g *group, notice bool) {
	if notice && g.now.State != StateCreating {
		c.announce(g, CausePreempted)
	} else {
		c.end(g, CausePreempted)
	}
}

// announce notifies a group's machines that they will be taken, and takes them.
func (c *lifecycle) announce(g *group, cause Cause) {
	if g.ending {
		return
	}
	g.ending = true
	c.notice(g, EventPreemption, nil)
	c.later(&g.timers, NoticeTime, func() { c.end(g, cause) })
}

// notice notifies the running machines, those named or all for nil.
func (c *lifecycle) notice(g *group, event Event, workers []int) {
	for i := range g.now.Hosts {
		if id := g.now.Hosts[i].ID; g.now.Hosts[i].On && (workers == nil || slices.Contains(workers, i)) {
			c.host(func(h Hosts) { h.Notice(id, event) })
		}
	}
}

// end takes a group's machines. Its capacity and quota stay taken until its owner
// deletes it.
func (c *lifecycle) end(g *group, cause Cause) {
	g.timers.withdraw()
	c.switchOff(g)
	now := c.clock.Now()
	state := StatePreempted
	if cause == CauseMaxRun {
		state = StateTerminated
	}
	if g.now.Kind == KindNode && g.conditions.OtherEndStates.draw(g.rand) {
		odd := []State{StateTerminated, StateStopped, StateHidden, StateUnknown, StateStopping}
		state = odd[g.rand.IntN(len(odd))]
	}
	lies := g.op == nil && g.conditions.StaleStates.draw(g.rand)
	c.change(g, func(v *Group) {
		v.State, v.Shown, v.Cause, v.Ended, v.HealthUnknown, v.Maintenance = state, state, cause, now, false, false
		if lies {
			v.Shown = StateReady
		}
	})
	if g.op != nil {
		err := newError(ReasonState, "Cloud TPU received a bad request. The operation is not supported while in state %s [EID: 0x%x]",
			StatePreempted, uint64(g.now.ID))
		err.Zone, err.Type = g.now.Zone, g.now.Type
		c.close(g.op, err)
		g.op = nil
	}
	if lies {
		c.later(&g.timers, g.conditions.StaleFor.draw(g.rand), func() { c.change(g, func(v *Group) { v.Shown = v.State }) })
	}
	if g.owner != nil {
		g.owner.groupEnded()
	}
	if g.now.VanishAtEnd {
		c.later(&g.timers, g.conditions.Deletion.draw(g.rand), func() { c.remove(g) })
	}
}

// maintain takes machines down for a while, those named or all for nil.
func (c *lifecycle) maintain(g *group, workers []int) {
	if g.now.State != StateReady || g.ending || g.now.Maintenance {
		return
	}
	c.notice(g, EventMaintenance, workers)
	c.change(g, func(v *Group) { v.Maintenance = true })
	within := func(i int) bool { return workers == nil || slices.Contains(workers, i) }
	c.later(&g.timers, NoticeTime, func() {
		for i := range g.now.Hosts {
			if within(i) {
				c.kill(g, i)
			}
		}
		c.change(g, func(v *Group) { v.State, v.Shown = StateRepairing, StateRepairing })
	})
	c.later(&g.timers, NoticeTime+g.conditions.MaintenanceFor.draw(g.rand), func() {
		for i := range g.now.Hosts {
			if within(i) {
				c.switchOn(g, i)
			}
		}
		c.change(g, func(v *Group) { v.State, v.Shown, v.Maintenance = StateReady, StateReady, false })
		c.awaitMaintenance(g)
	})
}

// kill powers one machine off; nothing else shows it.
func (c *lifecycle) kill(g *group, worker int) {
	if h := g.now.Hosts[worker]; h.On {
		c.change(g, func(v *Group) { v.Hosts[worker].On = false })
		c.host(func(hosts Hosts) { hosts.Stop(h.ID) })
	}
}

// erase begins the deletion of a group, op ends with it.
func (c *lifecycle) erase(g *group, op *operation) {
	if op != nil {
		g.deletes = append(g.deletes, op)
	}
	if g.now.State == StateDeleting {
		return
	}
	g.timers.withdraw()
	c.switchOff(g)
	c.abandon(g)
	c.change(g, func(v *Group) { v.State, v.Shown, v.Maintenance = StateDeleting, StateDeleting, false })
	takes := g.conditions.Deletion.draw(g.rand)
	if g.conditions.StuckDeletions.draw(g.rand) {
		takes += g.conditions.StuckFor.draw(g.rand)
	}
	c.later(&g.timers, max(takes, time.Nanosecond), func() { c.remove(g) })
}

// abandon ends a group's open creation or start because the group goes.
func (c *lifecycle) abandon(g *group) {
	c.close(g.op, newError(ReasonCancelled, "The operation was cancelled: the %s was deleted.", g.now.Kind))
	g.op = nil
}

// remove makes a group gone and gives back what it held.
func (c *lifecycle) remove(g *group) {
	if g.removed {
		return
	}
	g.timers.withdraw()
	g.removed = true
	c.switchOff(g)
	c.abandon(g)
	for i := range g.now.Hosts {
		id := g.now.Hosts[i].ID
		delete(c.machines, id)
		c.host(func(h Hosts) { h.Remove(id) })
	}
	if g.holds {
		g.holds = false
		c.release(&g.now.Spec)
	}
	if g.charged {
		g.charged = false
		c.charge([]Spec{g.now.Spec}, -1)
	}
	c.live.remove(g.now.Key)
	c.change(g, func(v *Group) { v.State, v.Shown = StateGone, StateGone })
	for _, op := range g.deletes {
		c.close(op, nil)
	}
	if g.owner != nil {
		g.owner.groupGone(g)
	}
	c.freed = true
}
