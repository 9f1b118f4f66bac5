package plan

import (
	"cmp"

	"github.com/fray-ml/fray/schema"
)

// StockPlace is where a slice's capacity comes from, "" where there are no zones.
func StockPlace(s *schema.SliceSpec) string {
	if s.Zone == "" {
		return ""
	}
	return s.Zone + "/" + cmp.Or(s.Kind(), "machines") + "/" + TierOf(s)
}

// TierOf returns how a slice is provisioned: on demand or spot, and by which model.
func TierOf(s *schema.SliceSpec) string {
	tier := "on-demand"
	if s.Preemptible {
		tier = "spot"
	}
	if s.Cloud.Provisioning != "" {
		tier += "-" + string(s.Cloud.Provisioning)
	}
	return tier
}
