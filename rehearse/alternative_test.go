package rehearse

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// TestMixedAlternatives: jobs that prefer a TPU run on GPUs while no zone has it, and when
// these are taken away they go back to the TPU, which is to be had again.
func TestMixedAlternatives(t *testing.T) {
	t.Parallel()
	zones := []string{"us-central1-a", "us-west4-a"}
	d := training(3, "v5litepod-16", zones...)
	for i := range d.Jobs {
		d.Jobs[i].Resources.Accelerators = []schema.Accelerator{"v5litepod-16", "h100:8"}
	}
	const gone, back, lasts = 3 * time.Hour, 4 * time.Hour, 8 * time.Hour
	scenario := cloud.Scenario{Conditions: cloud.Conditions{
		Provisioning: cloud.Range{Min: time.Minute, Max: 2 * time.Minute}, Boot: cloud.Range{Min: time.Minute, Max: 2 * time.Minute},
	}}
	for _, zone := range zones {
		scenario.Stockouts = append(scenario.Stockouts,
			cloud.Window{Zone: zone, Type: "v5litepod", To: gone},
			cloud.Window{Zone: zone, Type: "h100", From: back, To: lasts, Preempt: true})
	}
	report, err := Run(t.Context(), Config{Desired: d, Scenario: scenario, For: lasts, Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Violations {
		t.Error(v)
	}
	hours := map[string]float64{}
	for _, u := range report.Capacity {
		hours[u.Type] += u.HostHours
	}
	// Three machines of GPUs until they are taken away, and then three slices of four hosts.
	if on := hours["8 h100"]; on < 9 || on > 12.5 {
		t.Errorf("GPUs were used for %.1f hours, want those of 3 machines for 4 h: %v", on, hours)
	}
	if on := hours["v5litepod-16"]; on < 30 {
		t.Errorf("TPUs were used for %.1f hours, want those of 12 hosts for the 4 h after that: %v", on, hours)
	}
	for _, j := range report.Jobs {
		if j.Goodput < 0.6 {
			t.Errorf("%s was useful for %.2f of the time", j.Job, j.Goodput)
		}
	}
}
