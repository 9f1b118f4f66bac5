package capacity

import (
	"fmt"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// gpus rejects what asks for GPUs of another type than its provider has.
func (c *checker) gpus(desired *schema.Desired) {
	has := map[schema.ProviderName]schema.GPU{}
	for i := range desired.Providers {
		has[desired.Providers[i].Name] = desired.Providers[i].GPU
	}
	check := func(addr schema.Address, attribute string, provider schema.ProviderName, asked schema.GPU) {
		if gpu := has[provider]; asked.Count > 0 && !gpu.Suits(asked) {
			c.problems = append(c.problems, plan.Problem{
				Addr: addr, Attribute: attribute, Summary: "No such GPU",
				Detail: fmt.Sprintf("%s needs %s, and provider %s has %s. Ask for that type, or change the gpu block of the provider.", addr, asked, provider, gpu),
			})
		}
	}
	for i := range desired.Reservations {
		r := &desired.Reservations[i]
		check(r.Addr, "max.gpu", r.Provider, r.Max.GPU)
	}
	for i := range desired.Jobs {
		r := &desired.Jobs[i].Resources
		if r.Reservation == "" { // of alternatives, it is enough that the machine has one
			check(desired.Jobs[i].Addr, "resources.gpu", r.Provider, smallEnough(desired, &desired.Jobs[i]).Resources.GPU)
		}
	}
}
