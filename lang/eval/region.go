package eval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/lang/configs"
	"github.com/fray-ml/fray/lang/diagnose"
)

// WarnOfZones warns of unknown zones.
func (r Reporter) WarnOfZones(x *configs.Expression, zones []string) {
	for i, zone := range zones {
		if accelerators.KnownRegion(zone).Name != "" {
			continue
		}
		detail := ""
		var all []string
		for _, region := range accelerators.Regions() {
			if region.Name == zone {
				detail = fmt.Sprintf("%s is a region: name its zones, %s.", zone, strings.Join(region.ZoneNames(), ", "))
			}
			all = append(all, region.ZoneNames()...)
		}
		if detail == "" {
			detail = strings.TrimSpace(fmt.Sprintf("No zone %q is known to this version. %s", zone, diagnose.DidYouMean(zone, all)))
		}
		r.warnOfPlace(x, i, "Unknown zone", detail)
	}
}

// WarnOfRegions warns of unknown regions.
func (r Reporter) WarnOfRegions(x *configs.Expression, names []string) {
	for i, name := range names {
		var all []string
		for _, region := range accelerators.Regions() {
			all = append(all, region.Name)
		}
		switch of := accelerators.KnownRegion(name).Name; {
		case slices.Contains(all, name):
		case of != "":
			r.warnOfPlace(x, i, "Unknown region", fmt.Sprintf("%s is a zone of the region %s: write zones = [%q] for this one alone.", name, of, name))
		default:
			r.warnOfPlace(x, i, "Unknown region", strings.TrimSpace(fmt.Sprintf("No region %q is known to this version. %s", name, diagnose.DidYouMean(name, all))))
		}
	}
}

// warnOfPlace warns of element i of a list.
func (r Reporter) warnOfPlace(x *configs.Expression, i int, summary, detail string) {
	rng := x.Expr.Range()
	if tuple, ok := x.Expr.(*hclsyntax.TupleConsExpr); ok && i < len(tuple.Exprs) {
		rng = tuple.Exprs[i].Range()
	}
	r.Add(&hcl.Diagnostic{Severity: hcl.DiagWarning, Subject: &rng, Summary: summary, Detail: detail})
}
