package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// region is a region of Google Cloud and the ends of its zones' names.
type region struct {
	name  string
	zones []string
}

// regions lists what the documentation of Google Cloud does. New ones come every
// year, so what is not among them draws a warning and nothing more.
func regions() []region {
	abc := []string{"a", "b", "c"}
	return []region{
		{"africa-south1", abc},
		{"asia-east1", abc}, {"asia-east2", abc},
		{"asia-northeast1", abc}, {"asia-northeast2", abc}, {"asia-northeast3", abc},
		{"asia-south1", abc}, {"asia-south2", abc},
		{"asia-southeast1", abc}, {"asia-southeast2", abc}, {"asia-southeast3", abc},
		{"australia-southeast1", abc}, {"australia-southeast2", abc},
		{"europe-central2", abc}, {"europe-north1", abc}, {"europe-north2", abc}, {"europe-southwest1", abc},
		{"europe-west1", []string{"b", "c", "d"}},
		{"europe-west2", abc}, {"europe-west3", abc}, {"europe-west4", abc}, {"europe-west6", abc}, {"europe-west8", abc},
		{"europe-west9", abc}, {"europe-west10", abc}, {"europe-west12", abc},
		{"me-central1", abc}, {"me-central2", abc}, {"me-west1", abc},
		{"northamerica-northeast1", abc}, {"northamerica-northeast2", abc}, {"northamerica-south1", abc},
		{"southamerica-east1", abc}, {"southamerica-west1", abc},
		{"us-central1", []string{"a", "b", "c", "f", "ai1a"}},
		{"us-central2", []string{"b"}},
		{"us-east1", []string{"b", "c", "d"}},
		{"us-east4", abc}, {"us-east5", abc},
		{"us-south1", []string{"a", "b", "c", "ai1b"}},
		{"us-west1", abc}, {"us-west2", abc}, {"us-west3", abc}, {"us-west4", abc},
	}
}

// regionOf is the region of a zone that is known, the zero region of another.
func regionOf(zone string) region {
	cut := max(strings.LastIndexByte(zone, '-'), 0)
	for _, r := range regions() {
		if r.name == zone[:cut] && slices.Contains(r.zones, zone[cut+1:]) {
			return r
		}
	}
	return region{}
}

func (r region) zoneNames() []string {
	names := make([]string, 0, len(r.zones))
	for _, end := range r.zones {
		names = append(names, r.name+"-"+end)
	}
	return names
}

// warnOfZones warns of zones that nobody knows.
func (e *evaluator) warnOfZones(x *expression, zones []string) {
	for i, zone := range zones {
		if regionOf(zone).name != "" {
			continue
		}
		detail := ""
		var all []string
		for _, r := range regions() {
			if r.name == zone {
				detail = fmt.Sprintf("%s is a region: name its zones, %s.", zone, strings.Join(r.zoneNames(), ", "))
			}
			all = append(all, r.zoneNames()...)
		}
		if detail == "" {
			detail = strings.TrimSpace(fmt.Sprintf("No zone %q is known to this version. %s", zone, didYouMean(zone, all)))
		}
		e.warnOfPlace(x, i, "Unknown zone", detail)
	}
}

// warnOfRegions warns of regions that nobody knows.
func (e *evaluator) warnOfRegions(x *expression, names []string) {
	for i, name := range names {
		var all []string
		for _, r := range regions() {
			all = append(all, r.name)
		}
		switch of := regionOf(name).name; {
		case slices.Contains(all, name):
		case of != "":
			e.warnOfPlace(x, i, "Unknown region", fmt.Sprintf("%s is a zone of the region %s: write zones = [%q] for this one alone.", name, of, name))
		default:
			e.warnOfPlace(x, i, "Unknown region", strings.TrimSpace(fmt.Sprintf("No region %q is known to this version. %s", name, didYouMean(name, all))))
		}
	}
}

// warnOfPlace warns of element i of a list.
func (e *evaluator) warnOfPlace(x *expression, i int, summary, detail string) {
	rng := x.expr.Range()
	if tuple, ok := x.expr.(*hclsyntax.TupleConsExpr); ok && i < len(tuple.Exprs) {
		rng = tuple.Exprs[i].Range()
	}
	e.add(&hcl.Diagnostic{Severity: hcl.DiagWarning, Subject: &rng, Summary: summary, Detail: detail})
}
