package change_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

const costLineage = "abcdefghijklmnopqrstuvwxyz"

func onGCP(name string, slices int, change func(*schema.Resources)) schema.Job {
	r := schema.Resources{Provider: schema.ProviderGCP, TPU: "v5litepod-16", Slices: slices, Preemptible: true}
	if change != nil {
		change(&r)
	}
	return schema.Job{Addr: schema.ScopedAddress(schema.KindJob, name), Resources: r}
}

// listedSlice is a slice of a job as its provider lists it.
func listedSlice(job schema.Job, index int, zone string) schema.SliceStatus {
	spec := plan.OwnSlice(costLineage[:12], &job, index)
	spec.Zone = zone
	return schema.SliceStatus{Spec: spec, Phase: schema.SliceReady}
}

// costs sums up what a plan costs that leaves this state.
func costs(desired schema.Desired, next *state.Document, listed ...schema.SliceStatus) []plan.Cost {
	next.Lineage = costLineage
	obs := &plan.Observed{Inventories: map[schema.ProviderName]schema.Inventory{
		schema.ProviderGCP: {Slices: listed}, schema.ProviderLocal: {},
	}}
	return change.Costs(&desired, &plan.Plan{Next: next}, obs)
}

func TestCosts(t *testing.T) {
	gcp := schema.Provider{Name: schema.ProviderGCP, Zones: []string{"us-west4-a", "us-central1-a"}}
	chip := accelerators.Price{Low: 0.21, High: 0.78}
	spend := func(slices int) plan.Spend {
		return plan.Spend{Slices: slices, Hosts: 4 * slices, Chips: 16 * slices, PerHour: chip.Times(float64(16 * slices))}
	}
	row := func(zone string, before, after int) plan.Cost {
		return plan.Cost{
			Provider: schema.ProviderGCP, Zone: zone, Type: "v5litepod-16", Preemptible: true,
			PerChipHour: chip, PerSliceHour: chip.Times(16), Before: spend(before), After: spend(after),
		}
	}
	one := onGCP("a", 2, nil)
	unmanaged := listedSlice(onGCP("old", 1, nil), 0, "us-west4-a")
	foreign := listedSlice(one, 0, "us-west4-a")
	foreign.Spec.Stack = "another"
	dead := listedSlice(one, 0, "us-west4-a")
	dead.Phase = schema.SliceDead
	tests := []struct {
		name   string
		jobs   []schema.Job
		doc    state.Document
		listed []schema.SliceStatus
		want   []plan.Cost
	}{
		{name: "nothing", want: []plan.Cost{}},
		{name: "new", jobs: []schema.Job{one}, want: []plan.Cost{row("us-west4-a", 0, 2)}},
		{
			name: "of the region", jobs: []schema.Job{onGCP("a", 1, func(r *schema.Resources) { r.Regions = []string{"us-central1"} })},
			want: []plan.Cost{row("us-central1-a", 0, 1)},
		},
		{
			name: "of its own zones", jobs: []schema.Job{onGCP("a", 1, func(r *schema.Resources) { r.Zones = []string{"us-west1-c"} })},
			want: []plan.Cost{row("us-west1-c", 0, 1)},
		},
		{
			name: "leaves", listed: []schema.SliceStatus{listedSlice(one, 0, "us-central1-a")},
			want: []plan.Cost{row("us-central1-a", 1, 0)},
		},
		{
			name: "one more, the other where it is", jobs: []schema.Job{one},
			doc:    recorded(one, 1, "us-central1-a"),
			listed: []schema.SliceStatus{listedSlice(one, 0, "us-central1-a")},
			want:   []plan.Cost{row("us-central1-a", 1, 1), row("us-west4-a", 0, 1)},
		},
		{
			name: "replaced by another type", jobs: []schema.Job{one},
			doc:    recorded(onGCP("a", 1, func(r *schema.Resources) { r.TPU = "v5litepod-8" }), 1, "us-central1-a"),
			listed: []schema.SliceStatus{listedSlice(one, 0, "us-central1-a")},
			want:   []plan.Cost{row("us-central1-a", 1, 0), row("us-west4-a", 0, 2)},
		},
		{
			name: "ended", jobs: []schema.Job{one},
			doc:  state.Document{Jobs: map[schema.Address]*state.Job{one.Addr: {Status: schema.JobSucceeded}}},
			want: []plan.Cost{},
		},
		{
			name: "unmanaged goes on", doc: state.Document{Unmanaged: map[string]state.Unmanaged{unmanaged.Spec.Name: {}}},
			listed: []schema.SliceStatus{unmanaged}, want: []plan.Cost{row("us-west4-a", 1, 1)},
		},
		{name: "another stack's", listed: []schema.SliceStatus{foreign}, want: []plan.Cost{}},
		{name: "dead", listed: []schema.SliceStatus{dead}, want: []plan.Cost{}},
		{
			name: "local is free", jobs: []schema.Job{onGCP("a", 1, func(r *schema.Resources) { r.Provider = schema.ProviderLocal })},
			want: []plan.Cost{},
		},
		{
			name: "no price", jobs: []schema.Job{onGCP("a", 1, func(r *schema.Resources) {
				r.TPU, r.Preemptible, r.Zones = "tpu7x-8", false, []string{"us-central1-c"}
			})},
			want: []plan.Cost{{
				Provider: schema.ProviderGCP, Zone: "us-central1-c", Type: "tpu7x-8", After: plan.Spend{Slices: 1, Hosts: 1, Chips: 4},
			}},
		},
		{
			name: "machine", jobs: []schema.Job{onGCP("a", 3, func(r *schema.Resources) { r.TPU, r.MachineType = "", "m9-standard-4" })},
			want: []plan.Cost{{
				Provider: schema.ProviderGCP, Zone: "us-west4-a", Type: "m9-standard-4", Preemptible: true, After: plan.Spend{Slices: 3, Hosts: 3},
			}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			desired := schema.Desired{Providers: []schema.Provider{gcp}, Jobs: test.jobs}
			got := costs(desired, &test.doc, test.listed...)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("costs (-want +got):\n%s", diff)
			}
		})
	}
}

// recorded is a state that has n slices of a job in a zone.
func recorded(job schema.Job, n int, zone string) state.Document {
	doc := state.Document{Slices: map[string]*state.Slice{}}
	for i := range n {
		spec := listedSlice(job, i, zone).Spec
		doc.Slices[spec.Name] = &state.Slice{Spec: spec, Listed: true}
	}
	return doc
}

// TestCostsOfOffers: an offer's price counts, and a reservation's slices do for
// the jobs that draw from it.
func TestCostsOfOffers(t *testing.T) {
	pool := schema.Reservation{
		Addr: schema.ScopedAddress(schema.KindReservation, "pool"), Provider: schema.ProviderGCP,
		Min: schema.Capacity{TPU: "v6e-8", Slices: 2}, Max: schema.Capacity{TPU: "v6e-8", Slices: 2},
	}
	draws := onGCP("a", 1, func(r *schema.Resources) { r.Reservation, r.TPU = "pool", "v6e-8" })
	got := costs(schema.Desired{
		Providers:    []schema.Provider{{Name: schema.ProviderGCP, Offers: []schema.Market{{Name: "v6e", Zones: []string{"asia-east1-a"}, OnDemand: 2}}}},
		Reservations: []schema.Reservation{pool}, Jobs: []schema.Job{draws},
	}, &state.Document{})
	if len(got) != 1 || got[0].Zone != "asia-east1-a" || got[0].After.Slices != 2 || got[0].After.PerHour != (accelerators.Price{Low: 32, High: 32}) {
		t.Errorf("got %+v, want two slices in asia-east1-a for 32 dollars", got)
	}
}

func TestTotal(t *testing.T) {
	costs := []plan.Cost{
		{PerSliceHour: accelerators.Price{Low: 1, High: 2}, Before: plan.Spend{Slices: 1, PerHour: accelerators.Price{Low: 1, High: 2}}, After: plan.Spend{Slices: 2, PerHour: accelerators.Price{Low: 2, High: 4}}},
		{PerSliceHour: accelerators.Price{Low: 0.5, High: 0.5}, Before: plan.Spend{Slices: 2, PerHour: accelerators.Price{Low: 1, High: 1}}},
		{Before: plan.Spend{Slices: 5}, After: plan.Spend{Slices: 7}},
	}
	want := change.CostTotal{Before: accelerators.Price{Low: 2, High: 3}, After: accelerators.Price{Low: 2, High: 4}, UnknownBefore: 5, UnknownAfter: 7}
	if got := change.Total(costs); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
