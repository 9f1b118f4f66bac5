package cloud

type quotaKey struct {
	project, region, kind string
	tier                  Tier
}

// overQuota is why the specs together exceed a quota, nil if they do not.
func (c *accounts) overQuota(specs []Spec) *Error {
	for _, q := range c.scenario.Quotas {
		need, held := 0, 0
		for i := range specs {
			if s := &specs[i]; q.limits(RegionOf(s.Zone), s.Type) && (q.Tier == "" || q.Tier == s.Tier) {
				need += s.Units
				held = c.held(s.Project, q)
			}
		}
		if need > 0 && held+need > q.Limit {
			e := newError(ReasonQuota, "Quota limit '%s' has been exceeded. Limit: %d in region %s.", q.name(), q.Limit, q.Region)
			e.Region, e.Type, e.Tier, e.Limit, e.Zone = q.Region, q.Type, q.Tier, q.Limit, specs[0].Zone
			return e
		}
	}
	return nil
}

// name is the limit's name in the style of the service's own.
func (q Quota) name() string {
	tier := ""
	if q.Tier == TierSpot {
		tier = "Preemptible"
	}
	return "TPU" + tier + q.Type + "PerProjectPerRegionForTPUAPI"
}

func (c *accounts) held(project string, q Quota) int {
	sum := 0
	for k, units := range c.quotas {
		if k.project == project && q.limits(k.region, k.kind) && (q.Tier == "" || q.Tier == k.tier) {
			sum += units
		}
	}
	return sum
}

// charge holds or, with -1, gives back the quota of specs.
func (c *accounts) charge(specs []Spec, sign int) {
	for i := range specs {
		s := &specs[i]
		c.quotas[quotaKey{s.Project, RegionOf(s.Zone), s.Type, s.Tier}] += sign * s.Units
	}
}

// QuotaUse is how much of a quota is held.
type QuotaUse struct {
	Quota
	Used int
}

// QuotaUses are a project's quotas in a region, in the scenario's order.
func (c *accounts) QuotaUses(project, region string) []QuotaUse {
	c.mu.Lock()
	defer c.mu.Unlock()
	var uses []QuotaUse
	for _, q := range c.scenario.Quotas {
		if q.Region == region {
			uses = append(uses, QuotaUse{Quota: q, Used: c.held(project, q)})
		}
	}
	return uses
}

// QuotasOf are the quotas of a type, in the scenario's order.
func (c *accounts) QuotasOf(kind string) []Quota {
	var found []Quota
	for _, q := range c.scenario.Quotas {
		if q.Type == kind {
			found = append(found, q)
		}
	}
	return found
}
