package check

import (
	"context"
	"fmt"
)

// guestAttributes warns of an organization that does not let guest attributes be
// read. Machines report there why they do not come up; fray turns them on for each machine.
func (c *checker) guestAttributes(ctx context.Context) {
	const constraint = "compute.disableGuestAttributesAccess"
	var policy struct {
		Boolean struct {
			Enforced bool `json:"enforced"`
		} `json:"booleanPolicy"`
	}
	err := c.rest.post(ctx, "cloudresourcemanager", "v1/projects/"+c.config.Project+":getEffectiveOrgPolicy",
		map[string]string{"constraint": "constraints/" + constraint}, &policy)
	if err != nil {
		c.unread(lookup{"organization policies", "cloudresourcemanager", "orgpolicy.policy.get", "roles/orgpolicy.policyViewer"}, err)
		return
	}
	if policy.Boolean.Enforced {
		c.add(warningAt(ofProject(), "Guest attributes are disabled", fmt.Sprintf(
			"The organization enforces %s, so hosts that do not come up cannot report why: only their serial console shows it. "+
				"Have an administrator turn it off for the project: `gcloud resource-manager org-policies disable-enforce %[1]s --project=%s`.", constraint, c.config.Project)))
	}
}
