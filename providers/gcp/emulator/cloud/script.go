package cloud

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// script sets the timers of all that the scenario has happen.
func (c *Cloud) script() {
	for _, w := range c.scenario.Stockouts {
		c.stockouts[w.Zone] = append(c.stockouts[w.Zone], c.window(w))
		c.onTime(w.From, func() { c.stockoutBegins(w) })
		if w.To > 0 {
			c.onTime(w.To, func() { c.freed = true })
		}
	}
	for _, w := range c.scenario.Outages {
		c.outages = append(c.outages, c.window(w))
		c.onTime(w.From, func() {}) // is news
		if w.To > 0 {
			c.onTime(w.To, func() {})
		}
	}
	for _, e := range c.scenario.Events {
		c.onTime(e.At, func() { c.happen(e) })
	}
}

func (c *Cloud) window(w Window) window {
	out := window{zone: w.Zone, kind: w.Type, from: c.start.Add(w.From)}
	if w.To > 0 {
		out.to = c.start.Add(w.To)
	}
	return out
}

func (c *Cloud) onTime(since time.Duration, f func()) {
	c.clock.AfterFunc(c.start.Add(since), func() {
		c.do(func() {
			if !c.abated {
				f()
			}
		})
	})
}

func (c *Cloud) stockoutBegins(w Window) {
	if !w.Preempt {
		return
	}
	for _, k := range append([]Key(nil), c.live.keys...) {
		g := c.live.byKey[k]
		if g.now.Zone == w.Zone && (w.Type == "" || w.Type == g.now.Type) && g.now.Tier == TierSpot && alive(g.now.State) {
			c.preempt(g, g.conditions.Notice.draw(g.rand))
		}
	}
}

// alive reports whether a group in that state may still be preempted.
func alive(s State) bool {
	switch s {
	case StateCreating, StateReady, StateRestarting, StateReimaging, StateRepairing, StateStarting:
		return true
	case StateStopping, StateStopped, StatePreempted, StateTerminated, StateHiding, StateHidden, StateUnhiding, StateUnknown,
		StateDeleting, StateGone:
	}
	return false
}

// happen carries out one scripted event; on a group that is not there it does
// nothing.
func (c *Cloud) happen(e Scripted) {
	since := c.clock.Now().Sub(c.start)
	w := Window{Zone: e.Zone, Type: e.Type, From: since, Preempt: false}
	if e.For > 0 {
		w.To = since + e.For
	}
	name, worker := targetOf(e.Target)
	switch e.Action {
	case ActionPreempt:
		for _, g := range c.named(name, e.Zone) {
			if alive(g.now.State) {
				c.preempt(g, !e.Silent)
			}
		}
	case ActionKillHost:
		for _, g := range c.named(name, e.Zone) {
			if worker < len(g.now.Hosts) {
				c.kill(g, worker)
			}
		}
	case ActionMaintain:
		for _, g := range c.named(name, e.Zone) {
			c.maintain(g, nil)
		}
	case ActionStockout:
		c.addStockout(w)
	case ActionOutage:
		c.outages = append(c.outages, c.window(w))
		c.endIsNews(e.For)
	case ActionList:
		c.addListFault(ListFault(e.Target), e.List, e.Zone, e.Times, e.For)
		c.endIsNews(e.For)
	}
}

// endIsNews counts the end of what has just begun as news, 0: it has none.
func (c *Cloud) endIsNews(lasts time.Duration) {
	if lasts > 0 {
		c.clock.AfterFunc(c.clock.Now().Add(lasts), func() { c.do(func() {}) })
	}
}

func targetOf(target string) (name string, worker int) {
	name, index, found := strings.Cut(target, "/")
	if worker, err := strconv.Atoi(index); found && err == nil && worker >= 0 {
		return name, worker
	}
	return name, 0
}

func (c *Cloud) named(name, zone string) []*group {
	var found []*group
	for _, k := range c.live.keys {
		if k.Name == name && (zone == "" || k.Zone == zone) {
			found = append(found, c.live.byKey[k])
		}
	}
	return found
}

func (c *Cloud) addStockout(w Window) {
	c.stockouts[w.Zone] = append(c.stockouts[w.Zone], c.window(w))
	if w.To > 0 {
		c.onTime(w.To, func() { c.freed = true })
	}
	c.stockoutBegins(w)
}

// Stockout takes all capacity for anything new from a zone, of one type or of all
// for "", for a while or for ever with 0.
func (c *Cloud) Stockout(zone, kind string, lasts time.Duration) error {
	if !c.HasZone(zone) {
		return fmt.Errorf("stockout: there is no zone %q", zone)
	}
	c.do(func() { c.happen(Scripted{Action: ActionStockout, Zone: zone, Type: kind, For: lasts}) })
	return nil
}

// Outage makes a zone unreachable for a while or for ever with 0.
func (c *Cloud) Outage(zone string, lasts time.Duration) error {
	if !c.HasZone(zone) {
		return fmt.Errorf("outage: there is no zone %q", zone)
	}
	c.do(func() { c.happen(Scripted{Action: ActionOutage, Zone: zone, For: lasts}) })
	return nil
}

// Calm ends all stockouts and outages that were begun or scripted; other faults go
// on. Abate ends those too.
func (c *Cloud) Calm() {
	c.do(func() { c.stockouts, c.outages, c.freed = map[string][]window{}, nil, true })
}
