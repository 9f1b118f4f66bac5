package cloud

import (
	"slices"
)

// Enabled says whether an API is enabled, "compute.googleapis.com".
func (c *Cloud) Enabled(api string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.Contains(c.rules.scenario.API.Disabled, api)
}

// Permits says whether callers have a permission, "compute.instances.create".
func (c *Cloud) Permits(permission string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !slices.Contains(c.rules.scenario.API.Deny, permission)
}

// QuotaUse is how much of a quota is held.
type QuotaUse struct {
	Quota
	Used int
}

// QuotaUses are a project's quotas in a region, in the scenario's order.
func (c *Cloud) QuotaUses(project, region string) []QuotaUse {
	c.mu.Lock()
	defer c.mu.Unlock()
	var uses []QuotaUse
	for _, q := range c.rules.scenario.Quotas {
		if q.Region == region {
			uses = append(uses, QuotaUse{Quota: q, Used: c.held(project, q)})
		}
	}
	return uses
}
