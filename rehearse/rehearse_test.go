package rehearse

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fray-ml/fray/schema"
)

// training is one job, as many instances of it as are asked for.
func training(n int, tpu string, zones ...string) schema.Desired {
	d := schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderGCP, Project: "rehearsal", Zones: zones}}}
	for i := range n {
		d.Jobs = append(d.Jobs, schema.Job{
			Addr: schema.Address{Kind: schema.KindJob, Name: "train", Key: schema.IntKey(i)}, Namespace: "default",
			Command:   []schema.Text{schema.Plain("train")},
			Resources: schema.Resources{Provider: schema.ProviderGCP, TPU: tpu, Slices: 1, Preemptible: true},
			Retries:   schema.Retries{Preemption: schema.Unlimited},
		})
	}
	return d
}

func builtIn(t *testing.T, name string) Scenario {
	t.Helper()
	s, ok := BuiltIn(name)
	if !ok {
		t.Fatalf("there is no scenario %s", name)
	}
	return s
}

// The same seed makes the same rehearsal, or no failure could be repeated.
func TestRehearsalsAreRepeatable(t *testing.T) {
	lasts := 12 * time.Hour
	if testing.Short() {
		lasts = 2 * time.Hour
	}
	var first string
	for i := range 2 {
		rep, err := Run(t.Context(), Config{
			Desired: training(3, "v5litepod-16", "us-west4-a", "us-central1-a"), Scenario: builtIn(t, ScenarioStormy).Cloud,
			For: lasts, Seed: 7, Restarts: lasts * 5 / 12,
		})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(rep, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = string(text)
		} else if first != string(text) {
			t.Errorf("once  %s\nagain %s", first, text)
		}
	}
}
