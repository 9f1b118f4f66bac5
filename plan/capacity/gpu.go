package capacity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// gpus refuses what asks for GPUs of another type than its provider has; of several
// alternatives one that it has is enough.
func (c *checker) gpus(desired *schema.Desired) {
	has := map[schema.ProviderName]schema.GPU{}
	for i := range desired.Providers {
		has[desired.Providers[i].Name] = desired.Providers[i].GPU
	}
	refuse := func(addr schema.Address, attribute string, provider schema.ProviderName, asked string) {
		c.problems = append(c.problems, plan.Problem{
			Addr: addr, Attribute: attribute, Summary: "No such GPU",
			Detail: fmt.Sprintf("%s needs %s, and provider %s has %s. Ask for that type, or change the gpu block of the provider.", addr, asked, provider, has[provider]),
		})
	}
	for i := range desired.Reservations {
		r := &desired.Reservations[i]
		if asked := r.Max.GPU; !has[r.Provider].Has(asked) {
			refuse(r.Addr, "max.gpu", r.Provider, asked.String())
		}
	}
	for i := range desired.Jobs {
		r, addr := &desired.Jobs[i].Resources, desired.Jobs[i].Addr
		if r.Reservation != "" || slices.ContainsFunc(r.Alternatives(), func(a schema.Accelerator) bool { return has[r.Provider].Has(a.GPU()) }) {
			continue
		}
		if len(r.Accelerators) == 0 {
			refuse(addr, "resources.gpu", r.Provider, r.GPU.String())
			continue
		}
		var asked []string
		for _, a := range r.Accelerators {
			asked = append(asked, a.GPU().String())
		}
		refuse(addr, "resources.accelerators", r.Provider, strings.Join(asked, " or "))
	}
}
