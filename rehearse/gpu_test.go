package rehearse

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// gpuFleet are jobs with GPUs of several types, spot and on demand, gangs of several
// machines among them.
func gpuFleet(zones ...string) schema.Desired {
	d := schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderGCP, Project: "rehearsal", Zones: zones}}}
	for i, r := range []schema.Resources{
		{GPU: schema.GPU{Type: "h100", Count: 8}, Slices: 4, Preemptible: true},
		{GPU: schema.GPU{Type: "h100", Count: 8}, Slices: 1, Preemptible: true},
		{GPU: schema.GPU{Type: "a100", Count: 4}, Slices: 2, Preemptible: true},
		{GPU: schema.GPU{Type: "l4", Count: 1}, Slices: 1, Preemptible: true},
		{GPU: schema.GPU{Type: "t4", Count: 2}, Slices: 1},
	} {
		r.Provider = schema.ProviderGCP
		d.Jobs = append(d.Jobs, schema.Job{
			Addr: schema.Address{Kind: schema.KindJob, Name: "work", Key: schema.IntKey(i)}, Namespace: "default",
			Command: []schema.Text{schema.Plain("work")}, Resources: r, Retries: schema.Retries{Preemption: schema.Unlimited},
		})
	}
	return d
}

// TestFleetOfGPUs: a day of preemptions, stockouts of one type in one zone after another,
// quotas and broken machines. Jobs go where there are GPUs, and nothing of theirs is lost.
func TestFleetOfGPUs(t *testing.T) {
	t.Parallel()
	zones := []string{"us-central1-a", "us-central1-b", "us-west4-a", "europe-west4-b"}
	lasts := 24 * time.Hour
	if testing.Short() {
		lasts = 12 * time.Hour
	}
	minutes := func(low, high int) cloud.Range {
		return cloud.Range{Min: time.Duration(low) * time.Minute, Max: time.Duration(high) * time.Minute}
	}
	scenario := cloud.Scenario{
		Conditions: cloud.Conditions{
			Provisioning: minutes(1, 4), Boot: minutes(1, 3), Deletion: minutes(1, 3), StockoutAfter: minutes(0, 2), Preemption: 10 * time.Hour,
			Notice: cloud.Of(0.5), LateFailures: cloud.Of(0.02), BadHosts: cloud.Of(0.02), DeadHosts: cloud.Of(0.01),
		},
		Zones: []cloud.Zone{
			{Name: "us-central1-a", Capacity: map[string]int{"h100": 24}}, // no room for the gang
			{Name: "us-west4-a", Capacity: map[string]int{"h100": 64}},
		},
		Quotas: []cloud.Quota{
			{Region: "europe-west4", Type: "h100", Tier: cloud.TierSpot, Limit: 8}, {Region: cloud.RegionGlobal, Type: cloud.TypeGPU, Limit: 200},
		},
	}
	for i, zone := range zones {
		for at := time.Duration(i) * 3 * time.Hour; at < lasts; at += 12 * time.Hour {
			scenario.Stockouts = append(scenario.Stockouts, cloud.Window{Zone: zone, Type: "h100", From: at, To: at + 4*time.Hour, Preempt: i%2 == 0})
		}
	}
	report, err := Run(t.Context(), Config{Desired: gpuFleet(zones...), Scenario: scenario, For: lasts, Seed: 11, Restarts: 7 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Violations {
		t.Error(v)
	}
	placed := map[string]bool{}
	for _, u := range report.Capacity {
		placed[u.Zone] = true
		if u.Type == "8 h100" && (u.ChipHours < 7.9*u.HostHours || !u.Preemptible) {
			t.Errorf("%+v: want eight chip-hours for an hour of a host", u)
		}
	}
	for _, j := range report.Jobs {
		if j.Goodput < 0.6 {
			t.Errorf("%s was useful for %.2f of the time", j.Job, j.Goodput)
		}
	}
	if !placed["us-central1-a"] || len(placed) < 2 || report.Unpriced || report.Cost.Low <= 0 {
		t.Errorf("zones %v, cost %+v: want several zones, and a price of all", placed, report.Cost)
	}
}
