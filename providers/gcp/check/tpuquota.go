package check

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

// quotaID is a limit of TPUs or GPUs as the Cloud Quotas API names it: of the Cloud TPU API by
// zone and by region, of Compute Engine by region.
type quotaID struct {
	service string // "tpu.googleapis.com"
	name    string
	family  string // a dimension of the limit, "" without
}

// tpuQuotaIDs are the limits that a wish counts in where an engine makes it: it may
// exceed none of them. Those of earlier generations than v5p have their own names for training
// and serving, which a wish does not tell apart. Flex-start takes
// from the limits of preemptible machines, and of others if these are used up
// (Compute Engine documentation, "Provisioning models"), so it is limited by neither
// alone. Reservations need no quota of their own.
func tpuQuotaIDs(w *wish, engine schema.Engine) []quotaID {
	shape, err := accelerators.Parse(w.spec.TPU)
	if err != nil || w.spec.Cloud.Provisioning == schema.ProvisioningReserved || w.spec.Cloud.Provisioning == schema.ProvisioningFlexStart {
		return nil
	}
	generation := strings.ToUpper(shape.Generation)
	served := slices.Contains([]string{"v5p", "v6e"}, shape.Generation)
	switch {
	case engine == schema.EngineTPU && served:
		tier := ""
		if w.spec.Preemptible {
			tier = "Preemptible"
		}
		of := func(place string) quotaID {
			return quotaID{service: "tpu.googleapis.com", name: "TPU" + generation + tier + "PerProjectPer" + place + "ForTPUAPI"}
		}
		return []quotaID{of("Region"), of("Zone")}
	case engine == schema.EngineGCE && w.spec.Preemptible && served:
		return []quotaID{{service: "compute.googleapis.com", name: "PREEMPTIBLE-TPU-" + generation + "-per-project-region"}}
	case engine == schema.EngineGCE && !w.spec.Preemptible && shape.Generation == "v5p":
		return []quotaID{{service: "compute.googleapis.com", name: "TPU-V5P-per-project-region"}}
	case engine == schema.EngineGCE && !w.spec.Preemptible:
		family := map[string]string{"v6e": "CT6E", "tpu7x": "TPU7X"}[shape.Generation]
		return []quotaID{{service: "compute.googleapis.com", name: "TPUS-PER-TPU-FAMILY-per-project-region", family: family}}
	}
	return nil
}

// acceleratorQuotaIDs are the limits of TPUs or GPUs that a wish counts in.
func acceleratorQuotaIDs(w *wish, engine schema.Engine) []quotaID {
	if w.spec.TPU == "" {
		return gpuFamilyQuotaIDs(w)
	}
	return tpuQuotaIDs(w, engine)
}

// quotaInfo is a limit as the Cloud Quotas API shows it: a value for each combination
// of dimensions that differs.
type quotaInfo struct {
	Dimensions []quotaDimensions `json:"dimensionsInfos"`
}

type quotaDimensions struct {
	Dimensions map[string]string `json:"dimensions"`
	Details    struct {
		Value string `json:"value"` // "-1": no limit
	} `json:"details"`
}

// limit is the most specific value for a zone and a family; ok is false where none is
// stated.
func (q *quotaInfo) limit(zone, family string) (limit int64, ok bool) {
	want := map[string]string{"zone": zone, "region": accelerators.RegionOf(zone), "tpu_family": family, "gpu_family": family}
	most := -1
	for _, d := range q.Dimensions {
		fits := true
		for name, value := range d.Dimensions {
			fits = fits && strings.EqualFold(want[name], value)
		}
		value, err := strconv.ParseInt(d.Details.Value, 10, 64)
		if fits && err == nil && len(d.Dimensions) > most {
			most, limit, ok = len(d.Dimensions), value, true
		}
	}
	return limit, ok
}

// acceleratorQuotas reports where limits of TPUs, and those of families of GPUs, allow less
// than one attempt needs.
func (c *checker) acceleratorQuotas(ctx context.Context) {
	infos := map[string]*quotaInfo{}
	var mu sync.Mutex
	eachAtOnce(c, distinct(c.wishes, func(w *wish) []string {
		var paths []string
		for _, zone := range w.zones {
			for _, id := range acceleratorQuotaIDs(w, w.engineIn(zone)) {
				paths = append(paths, c.quotaPath(id))
			}
		}
		return paths
	}), func(at string) {
		found := &quotaInfo{}
		if err := c.rest.get(ctx, "cloudquotas", at, found); err != nil {
			c.unread(lookup{"quotas of accelerators", "cloudquotas", "cloudquotas.quotas.get", "roles/cloudquotas.viewer"}, err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		infos[at] = found
	})
	for i := range c.wishes {
		c.acceleratorQuotaOf(&c.wishes[i], infos)
	}
}

func (c *checker) quotaPath(id quotaID) string {
	return "v1/projects/" + c.config.Project + "/locations/global/services/" + id.service + "/quotaInfos/" + id.name
}

// acceleratorQuotaOf reports the zones whose limits are below what a wish needs in chips or GPUs. The TPU
// API counts some generations in cores, of which there are more: a limit that is
// below the chips is too small however it counts.
func (c *checker) acceleratorQuotaOf(w *wish, infos map[string]*quotaInfo) {
	need, what := int64(gpuNeed(w)), w.gpuName()+" GPUs"
	if shape, err := accelerators.Parse(w.spec.TPU); err == nil {
		need, what = int64(shape.Chips*w.needs.slices), "chips of "+shape.Generation
	}
	var shut, limits []string
	for _, zone := range w.zones {
		for _, id := range acceleratorQuotaIDs(w, w.engineIn(zone)) {
			info := infos[c.quotaPath(id)]
			if info == nil {
				continue
			}
			if limit, ok := info.limit(zone, id.family); ok && limit >= 0 && limit < need {
				shut = append(shut, zone)
				limits = append(limits, fmt.Sprintf("%s is %d", id.name, limit))
				break
			}
		}
	}
	if len(shut) == 0 {
		return
	}
	slices.Sort(limits)
	detail := fmt.Sprintf("An attempt needs %d %s, and project %s may not use as many in %s: %s. Ask for more at https://console.cloud.google.com/iam-admin/quotas?project=%[3]s, or be elsewhere.",
		need, what, c.config.Project, strings.Join(shut, ", "), strings.Join(slices.Compact(limits), ", "))
	if len(shut) < len(w.zones) {
		c.add(warningAt(w.atZones(), "Quota is too small", detail))
		return
	}
	c.add(problemAt(w.atShape(), "Quota is too small", detail))
}
