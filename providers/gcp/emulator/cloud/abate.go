package cloud

// Abate ends all faults for good: a fault that has begun goes on to its end, such as a
// deletion that hangs, but no new one begins.
func (c *Cloud) Abate() {
	c.do(func() {
		c.stockouts, c.outages, c.listFaults, c.freed, c.abated = map[string][]window{}, nil, nil, true, true
		api := &c.scenario.API
		api.FailureRate, api.LostReplies, api.UnreachableRate, api.ListFaultRate = 0, 0, 0, 0
		c.calm = c.calm.abated()
		for _, z := range c.zones {
			z.conditions = z.conditions.abated()
			for name, w := range z.types {
				z.types[name] = w.abated()
			}
		}
		for _, g := range c.live.byKey {
			g.conditions = c.conditions(g.now.Zone, g.now.Type)
		}
	})
}
