package incremental

import (
	"errors"
	"testing"

	"github.com/fray-ml/fray/schema"
)

const (
	west     = "us-west4-a"
	south    = "us-south1-a"
	central  = "us-central1-a"
	central2 = "us-central1-b" // in the same region
)

var errTakenAgain = errors.New("not supported while in state PREEMPTED")

// inCloud puts a job on slices of Google Cloud.
func inCloud(j *schema.Job) {
	onTPU("v5litepod-16")(j)
	j.Resources.Provider = schema.ProviderGCP
}

func inZones(zones ...string) jobOption {
	return func(j *schema.Job) { inCloud(j); j.Resources.Zones = zones }
}

// zoned declares the provider with zones, in order of preference.
func zoned(desired schema.Desired, zones ...string) schema.Desired {
	desired.Providers = []schema.Provider{{Name: schema.ProviderGCP, Project: "p", Zones: zones}}
	return desired
}

// together ties the jobs of group g.
func together(desired schema.Desired, tie func(*schema.JobGroup)) schema.Desired {
	for i := range desired.Groups {
		tie(&desired.Groups[i])
	}
	return desired
}

func sameZone(g *schema.JobGroup) { g.SameZone = true }

func sameRegion(g *schema.JobGroup) { g.SameRegion = true }

// zoneOf is where a job's first slice is or is to be, "" where it has none.
func (w *world) zoneOf(addr schema.Address) string {
	j := w.doc.Jobs[addr]
	if j == nil || len(j.Slices) == 0 || w.doc.Slices[j.Slices[0]] == nil {
		return ""
	}
	return w.doc.Slices[j.Slices[0]].Spec.Zone
}

func (w *world) wantZone(addr schema.Address, want string) {
	w.t.Helper()
	if got := w.zoneOf(addr); got != want {
		w.t.Fatalf("%s is in zone %q, want %q\n%s", addr, got, want, w.describe())
	}
}

func newCloud(t *testing.T, shut map[string]error) *world {
	w := newWorld(t)
	w.shut = shut
	return w
}

// stockoutIn refuses slices like those of inCloud in a zone.
func stockoutIn(zone string) func(schema.SliceSpec) error {
	return func(spec schema.SliceSpec) error {
		if spec.Zone == zone && spec.TPU == "v5litepod-16" {
			return errStockout
		}
		return nil
	}
}
