package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/providers/gcp/machinetype"
	"github.com/fray-ml/fray/schema"
)

// gpuFamily is how quotas name the GPUs of a wish, "NVIDIA_H100"; "" of one that counts in
// none: one without GPUs, or from a reservation, which has its quota already.
func gpuFamily(w *wish) string {
	gpus, ok := machinetype.GPUs(w.spec)
	if !ok || w.spec.TPU != "" || gpus.GPU == "" || w.spec.Cloud.Provisioning == schema.ProvisioningReserved {
		return ""
	}
	name := gpus.GPU
	if strings.Contains(gpus.Accelerator, "-mega-") {
		name += "-mega"
	}
	return "NVIDIA_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// gpuNeed is how many GPUs one attempt of a wish needs.
func gpuNeed(w *wish) int {
	gpus, _ := machinetype.GPUs(w.spec)
	return gpus.Count * max(1, w.needs.slices)
}

// isCountedAsPreemptible reports whether GPUs count in the quotas of preemptible ones, as
// spot and flex-start ones do (AI Hypercomputer documentation, "Consumption options").
func isCountedAsPreemptible(w *wish) bool {
	return w.spec.Preemptible || w.spec.Cloud.Provisioning == schema.ProvisioningFlexStart
}

// gpuFamilyQuotaIDs are the limits of GPUs on demand that have none of their own: those
// since H100, which one quota counts by family.
func gpuFamilyQuotaIDs(w *wish) []quotaID {
	family := gpuFamily(w)
	old := []string{"NVIDIA_T4", "NVIDIA_V100", "NVIDIA_P100", "NVIDIA_P4", "NVIDIA_L4", "NVIDIA_A100", "NVIDIA_A100_80GB"}
	if family == "" || isCountedAsPreemptible(w) || slices.Contains(old, family) {
		return nil
	}
	return []quotaID{{service: "compute.googleapis.com", name: "GPUS-PER-GPU-FAMILY-per-project-region", family: family}}
}

// gpuMetrics are the quotas of a region that GPUs may count in. Preemptible ones count as
// others where a project has no quota of its own for them.
func gpuMetrics(w *wish) []string {
	family := gpuFamily(w)
	switch {
	case family == "":
		return nil
	case isCountedAsPreemptible(w):
		return []string{"PREEMPTIBLE_" + family + "_GPUS", family + "_GPUS"}
	}
	return []string{family + "_GPUS"}
}

// gpuQuotaOf reports regions that allow fewer GPUs than one attempt needs.
func (c *checker) gpuQuotaOf(w *wish, limits map[string]map[string]float64) {
	need := gpuNeed(w)
	var shut, texts []string
	for _, region := range w.computeRegions() {
		most, known := 0.0, []string(nil)
		for _, metric := range gpuMetrics(w) {
			if limit, ok := limits[region][metric]; ok {
				most = max(most, limit)
				known = append(known, fmt.Sprintf("%s is %g", metric, limit))
			}
		}
		if len(known) > 0 && most < float64(need) {
			shut = append(shut, region)
			texts = append(texts, known...)
		}
	}
	if len(shut) == 0 {
		return
	}
	slices.Sort(texts)
	detail := fmt.Sprintf("An attempt needs %d %s GPUs, and project %s may not use as many in %s: %s. Ask for more at https://console.cloud.google.com/iam-admin/quotas?project=%[3]s, or be elsewhere.",
		need, w.gpuName(), c.config.Project, strings.Join(shut, ", "), strings.Join(slices.Compact(texts), ", "))
	if len(shut) < len(w.regions()) {
		c.add(warningAt(w.atZones(), "Quota is too small", detail))
		return
	}
	c.add(problemAt(w.atShape(), "Quota is too small", detail))
}

// gpuName is the type of a wish's GPUs.
func (w *wish) gpuName() string {
	gpus, _ := machinetype.GPUs(w.spec)
	return gpus.GPU
}

// allGPUQuota reports wishes for more GPUs than the project may use in all regions together.
func (c *checker) allGPUQuota(ctx context.Context) {
	if !slices.ContainsFunc(c.wishes, func(w wish) bool { return gpuFamily(&w) != "" }) {
		return
	}
	var found struct {
		Quotas []struct {
			Metric string  `json:"metric"`
			Limit  float64 `json:"limit"`
		} `json:"quotas"`
	}
	if err := c.rest.get(ctx, "compute", "compute/v1/projects/"+c.config.Project+"?fields=quotas", &found); err != nil {
		c.passes(err)
		return
	}
	for _, q := range found.Quotas {
		if q.Metric != "GPUS_ALL_REGIONS" {
			continue
		}
		for i := range c.wishes {
			w := &c.wishes[i]
			if need := gpuNeed(w); gpuFamily(w) != "" && q.Limit < float64(need) {
				c.add(problemAt(w.atShape(), "Quota is too small", fmt.Sprintf(
					"An attempt needs %d %s GPUs, and project %s may use %g GPUs in all regions together: GPUS_ALL_REGIONS is %[4]g. Ask for more at https://console.cloud.google.com/iam-admin/quotas?project=%[3]s.",
					need, w.gpuName(), c.config.Project, q.Limit)))
			}
		}
	}
}
