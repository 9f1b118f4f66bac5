package cloud

import "fmt"

// Audit compares what is accounted for with what is there, counted anew. An error
// is a mistake in the model.
func (c *Cloud) Audit() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	used, held, machines := map[poolKey]int{}, map[quotaKey]int{}, 0
	charge := func(s *Spec) { held[quotaKey{s.Project, RegionOf(s.Zone), s.Type, s.Tier}] += s.Units }
	for _, k := range c.live.keys {
		g := c.live.byKey[k]
		if g.holds {
			used[g.now.pool()] += g.now.Units
		}
		if g.owner == nil {
			charge(&g.now.Spec)
		}
		machines += len(g.now.Hosts)
	}
	for _, k := range c.queued.keys {
		for i := range c.queued.byKey[k].now.Groups {
			charge(&c.queued.byKey[k].now.Groups[i])
		}
	}
	for k, p := range c.pools {
		if p.used != used[k] || p.used > p.total {
			return fmt.Errorf("pool %v: %d of %d are taken, the groups hold %d", k, p.used, p.total, used[k])
		}
	}
	for k, n := range c.quotas {
		if n != held[k] {
			return fmt.Errorf("quota %v: %d are held, the groups and requests hold %d", k, n, held[k])
		}
	}
	if machines != len(c.machines) {
		return fmt.Errorf("%d machines are known, the groups have %d", len(c.machines), machines)
	}
	return nil
}

// Empty returns what is left when everything was deleted: groups, requests, machines,
// what they hold, open operations.
func (c *Cloud) Empty() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.live.keys)+len(c.queued.keys)+len(c.machines)+len(c.waiting) > 0 {
		return fmt.Errorf("left: groups %v, requests %v, %d machines, %d waiting", c.live.keys, c.queued.keys, len(c.machines), len(c.waiting))
	}
	for k, p := range c.pools {
		if p.used != 0 {
			return fmt.Errorf("pool %v: %d are still taken", k, p.used)
		}
	}
	for k, n := range c.quotas {
		if n != 0 {
			return fmt.Errorf("quota %v: %d are still held", k, n)
		}
	}
	for name, op := range c.operations.byName {
		if !op.view.Done() {
			return fmt.Errorf("operation %s to %s %s is still open", name, op.view.Verb, op.view.Target)
		}
	}
	return nil
}
