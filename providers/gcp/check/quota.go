package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

// quotas reports what regions allow nothing of, by the quotas of Compute Engine.
func (c *checker) quotas(ctx context.Context) {
	regions := distinct(c.wishes, func(w *wish) []string { return w.computeRegions() })
	limits := map[string]map[string]float64{} // by region and metric
	var mu sync.Mutex
	eachAtOnce(c, regions, func(region string) {
		var found struct {
			Quotas []struct {
				Metric string  `json:"metric"`
				Limit  float64 `json:"limit"`
			} `json:"quotas"`
		}
		if err := c.rest.get(ctx, "compute", c.computePath("regions/"+region+"?fields=quotas"), &found); err != nil {
			c.passes(err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		limits[region] = map[string]float64{}
		for _, q := range found.Quotas {
			limits[region][q.Metric] = q.Limit
		}
	})
	for i := range c.wishes {
		c.quotaOf(&c.wishes[i], limits)
		c.gpuQuotaOf(&c.wishes[i], limits)
	}
}

// computeRegions are the regions where Compute Engine makes it.
func (w *wish) computeRegions() []string {
	var regions []string
	for _, zone := range w.zonesOf(schema.EngineGCE) {
		if region := accelerators.RegionOf(zone); !slices.Contains(regions, region) {
			regions = append(regions, region)
		}
	}
	return regions
}

// quotaOf reports the regions that allow a wish nothing.
func (c *checker) quotaOf(w *wish, limits map[string]map[string]float64) {
	metrics := quotaMetrics(w)
	var shut []string
	for _, region := range w.computeRegions() {
		known, zero := 0, 0
		for _, metric := range metrics {
			if limit, ok := limits[region][metric]; ok {
				known++
				if limit == 0 {
					zero++
				}
			}
		}
		if known > 0 && zero == known {
			shut = append(shut, region)
		}
	}
	if len(shut) == 0 {
		return
	}
	const summary = "Quota is zero"
	detail := fmt.Sprintf("Project %s has no quota for %s in %s: the limit of %s is 0. Ask for more at https://console.cloud.google.com/iam-admin/quotas?project=%[1]s, or be elsewhere.",
		c.config.Project, w.kind(), strings.Join(shut, ", "), strings.Join(metrics, " and "))
	if len(shut) < len(w.regions()) {
		c.add(warningAt(w.atZones(), summary, detail))
		return
	}
	c.add(problemAt(w.atShape(), summary, detail))
}

// quotaMetrics are the quotas that a wish may be counted in; it needs one of
// them. Preemptible machines may use either kind.
// https://cloud.google.com/compute/resource-usage
func quotaMetrics(w *wish) []string {
	metric := machineMetric(w)
	if metric == "" {
		return nil
	}
	if !w.spec.Preemptible {
		return []string{metric}
	}
	return []string{"PREEMPTIBLE_CPUS", metric}
}

func machineMetric(w *wish) string {
	if w.spec.TPU != "" {
		return "" // counted by Cloud Quotas, see tpuQuotas
	}
	family, _, _ := strings.Cut(machineName(w), "-")
	switch family {
	case "e2", "n1", "f1", "g1":
		return "CPUS"
	case "n2", "n2d", "c2", "c2d", "c3", "t2d", "t2a", "a2", "m1", "m2", "m3":
		return strings.ToUpper(family) + "_CPUS"
	}
	return ""
}
