package cloud

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
)

// Abate ends all weather for good: what has begun goes on to its end, such as a
// deletion that hangs, but nothing goes wrong any more that had not begun.
func (c *Cloud) Abate() {
	c.do(func() {
		c.stockouts, c.outages, c.listFaults, c.freed, c.abated = nil, nil, nil, true, true
		api := &c.rules.scenario.API
		api.FailureRate, api.LostReplies, api.UnreachableRate, api.ListFaultRate = 0, 0, 0, 0
		c.rules.calm = c.rules.calm.abated()
		for _, z := range c.rules.zones {
			z.conditions = z.conditions.abated()
			for name, w := range z.types {
				z.types[name] = w.abated()
			}
		}
		for _, g := range c.groups.byKey {
			g.conditions = c.rules.conditions(g.now.Zone, g.now.Type)
		}
	})
}

// abated is the weather without its misfortunes; what takes time still does.
func (w Conditions) abated() Conditions {
	w.Preemption, w.Maintenance = 0, 0
	for _, share := range w.shares() {
		*share = Of(0)
	}
	return w
}

// callDice decide about one call: by its method and resource, and how many of
// these there were. Calls that are made at the same time do not change each
// other's luck by which of them comes first.
func (c *Cloud) callDice(call Call) *rand.Rand {
	key := call.Method + " " + call.Project + " " + call.Zone + " " + call.Resource
	c.called[key]++
	return c.dice(key, c.called[key])
}

func (c *Cloud) dice(what string, nth uint64) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(what))
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], nth)
	h.Write(b[:])
	return rand.New(rand.NewPCG(c.rules.scenario.Seed, h.Sum64()))
}
