package cloud

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// ListFault is a closed set of how a list can be wrong although its call succeeds.
type ListFault string

// The faults.
const (
	ListEmpty     ListFault = "empty"     // nothing is in it
	ListShort     ListFault = "short"     // some entries are missing
	ListZone      ListFault = "zone"      // all entries of one zone are missing
	ListToken     ListFault = "token"     // it ends early, as if there were no further page
	ListStale     ListFault = "stale"     // it is one of some time ago
	ListReordered ListFault = "reordered" // its entries are in another order
	ListSlow      ListFault = "slow"      // it takes 5 s to 20 s; none on a virtual clock
	ListPoisoned  ListFault = "poisoned"  // it has a copy of an entry, under another name
)

// ListFaults are all of them.
func ListFaults() []ListFault {
	return []ListFault{ListEmpty, ListShort, ListZone, ListToken, ListStale, ListReordered, ListSlow, ListPoisoned}
}

func listFaultNames() []string {
	var names []string
	for _, fault := range ListFaults() {
		names = append(names, string(fault))
	}
	return names
}

// ListNames are the lists that can be wrong.
func ListNames() []string {
	return []string{"nodes", "queuedResources", "instances", "instanceGroupManagers", "instanceTemplates"}
}

// listFault is a fault that was scripted or asked for.
type listFault struct {
	fault ListFault
	of    string // the list's name; "": any
	zone  string // which zone is missing; "": a random one
	left  int    // how many lists it is in; 0: any number
	until time.Time
}

// MisreadList has lists be wrong in one way: those of a name, "" for all; so many
// times, 0 for any number; for a while, 0 for ever. zone is the one that is missing
// with [ListZone], "" for a random one.
func (c *admission) MisreadList(fault ListFault, of, zone string, times int, lasts time.Duration) error {
	switch {
	case !slices.Contains(ListFaults(), fault):
		return fmt.Errorf("list: there is no fault %q: want one of %v", fault, ListFaults())
	case of != "" && !slices.Contains(ListNames(), of):
		return fmt.Errorf("list: there is no list %q: want one of %v", of, ListNames())
	case zone != "" && !c.HasZone(zone):
		return fmt.Errorf("list: there is no zone %q", zone)
	}
	c.do(func() { c.addListFault(fault, of, zone, times, lasts) })
	return nil
}

func (c *admission) addListFault(fault ListFault, of, zone string, times int, lasts time.Duration) {
	f := &listFault{fault: fault, of: of, zone: zone, left: times}
	if lasts > 0 {
		f.until = c.clock.Now().Add(lasts)
	}
	c.listFaults = append(c.listFaults, f)
}

// ListMisreading is how one list is wrong.
type ListMisreading struct {
	Fault ListFault // "": it is not
	Zone  string    // with ListZone, where it was stated
	Dice  *rand.Rand
}

// Misreading returns how a list is wrong that is made now.
func (c *admission) Misreading(of string) ListMisreading {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.called["misreading "+of]++
	m := ListMisreading{Dice: c.dice("misreading "+of, c.called["misreading "+of])}
	now := c.clock.Now()
	c.listFaults = slices.DeleteFunc(c.listFaults, func(f *listFault) bool { return !f.until.IsZero() && !now.Before(f.until) })
	for i, f := range c.listFaults {
		if f.of != "" && f.of != of {
			continue
		}
		m.Fault, m.Zone = f.fault, f.zone
		if f.left == 1 {
			c.listFaults = slices.Delete(c.listFaults, i, i+1)
		} else if f.left > 0 {
			f.left--
		}
		return m
	}
	if p := c.scenario.API.ListFaultRate; p > 0 && m.Dice.Float64() < p {
		all := ListFaults()
		m.Fault = all[m.Dice.IntN(len(all))]
	}
	return m
}

// Linger lets the time of a slow list pass, none on a virtual clock.
func (c *admission) Linger(m ListMisreading) {
	if _, virtual := c.clock.(*Virtual); virtual || m.Fault != ListSlow {
		return
	}
	done := make(chan struct{})
	lasts := 5*time.Second + time.Duration(m.Dice.Int64N(int64(15*time.Second)))
	c.clock.AfterFunc(c.clock.Now().Add(lasts), func() { close(done) })
	<-done
}
