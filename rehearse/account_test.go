package rehearse

import (
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/fray-ml/fray/schema"
)

// What a restart loses is the work since the last checkpoint, and no more.
func TestAccount(t *testing.T) {
	start := began()
	for _, c := range []struct {
		name     string
		workload Workload
		ran      time.Duration
		kept     bool
		want     map[Cause]time.Duration
	}{
		{"in the middle", Workload{CheckpointEvery: 30 * time.Minute, Startup: 5 * time.Minute}, 80 * time.Minute, false,
			map[Cause]time.Duration{CauseBooting: time.Minute, CauseStartup: 5 * time.Minute, CauseUseful: time.Hour, CauseRedone: 15 * time.Minute}},
		{"while it starts", Workload{CheckpointEvery: 30 * time.Minute, Startup: 5 * time.Minute}, 3 * time.Minute, false,
			map[Cause]time.Duration{CauseBooting: time.Minute, CauseStartup: 3 * time.Minute}},
		{"without checkpoints", Workload{Startup: time.Minute}, time.Hour, false,
			map[Cause]time.Duration{CauseBooting: time.Minute, CauseStartup: time.Minute, CauseRedone: 59 * time.Minute}},
		{"at a proper end", Workload{CheckpointEvery: time.Hour}, 90 * time.Minute, true,
			map[Cause]time.Duration{CauseBooting: time.Minute, CauseUseful: 90 * time.Minute}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAccount(schema.Address{Kind: schema.KindJob, Name: "a"}, c.workload, start)
			a.turn(start, CauseBooting, "")
			a.begin(start.Add(time.Minute), &gang{})
			a.stop(start.Add(time.Minute+c.ran), c.kept)
			for cause, want := range c.want {
				if got := a.spent[entry{cause: cause}]; got != want {
					t.Errorf("%s: got %s, want %s", cause, got, want)
				}
			}
			if got := a.total(); got != time.Minute+c.ran {
				t.Errorf("in all: got %s, want %s", got, time.Minute+c.ran)
			}
		})
	}
}

func TestWorkloads(t *testing.T) {
	parse := func(text string) ([]Workload, hcl.Diagnostics) {
		file, diags := hclsyntax.ParseConfig([]byte(text), "s", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		return workloads(file.Body)
	}
	got, diags := parse(`
		seed = 1
		workload "job.a[1]" { work = "2h" }
		workload "job.a" { startup = "0s" }
		workload "*" { checkpoint_every = "1h" }`)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	of := func(name string, key int) Workload {
		return workloadOf(got, schema.Address{Kind: schema.KindJob, Name: name, Key: schema.IntKey(key)})
	}
	for name, c := range map[string]struct{ got, want Workload }{
		"instance": {of("a", 1), Workload{Job: "job.a[1]", Work: 2 * time.Hour, CheckpointEvery: 30 * time.Minute, Startup: 4 * time.Minute}},
		"job":      {of("a", 2), Workload{Job: "job.a", CheckpointEvery: 30 * time.Minute}},
		"all else": {of("b", 0), Workload{CheckpointEvery: time.Hour, Startup: 4 * time.Minute}},
		"unstated": {workloadOf(nil, schema.Address{Kind: schema.KindJob, Name: "b"}), DefaultWorkload()},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, c.got, c.want)
		}
	}
	for _, text := range []string{
		`workload "job.a" { work = 5 }`, `workload "job.a" { work = "-1h" }`, `workload "job.a" { worked = "1h" }`,
		"workload \"job.a\" {}\nworkload \"job.a\" {}",
	} {
		if _, diags := parse(text); !diags.HasErrors() {
			t.Errorf("%s: got no error", text)
		}
	}
}
