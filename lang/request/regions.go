package request

import (
	"fmt"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

// checkRegions reports regions that have no zone for what is asked, of several alternatives
// for any of them.
func (e *requested) checkRegions(r *Job, res *schema.Resources) {
	if res.Provider != schema.ProviderGCP || r.Reservation != "" || res.MachineType != "" || len(res.Regions) == 0 {
		return
	}
	var names, zones []string
	summary := "Zone without this TPU"
	for _, a := range res.Alternatives() {
		if a == "" || len(accelerators.CandidateZones(&e.Whole.GCP, string(a), res.Zones, res.Regions)) > 0 {
			return
		}
		if a.TPU() == "" || len(res.Accelerators) > 0 {
			summary = "Zone without this accelerator"
		}
		names = append(names, string(a))
		zones = append(zones, strings.Join(accelerators.OfferedZones(string(a), e.Whole.GCP.Offers), ", "))
	}
	if len(names) > 1 {
		for i := range zones {
			zones[i] = names[i] + " in " + zones[i]
		}
	}
	e.ErrorAt(fieldRange(joinPath(r.Path, "resources.regions")), summary, fmt.Sprintf(
		"No zone of %s has %s. Zones that do: %s.", strings.Join(res.Regions, ", "), strings.Join(names, " or "), strings.Join(zones, "; ")))
}
