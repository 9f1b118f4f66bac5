package cloud_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// TestGuideScenarios parses every scenario of the guide.
func TestGuideScenarios(t *testing.T) {
	guide, err := os.ReadFile("../../../../docs/guides/scenario.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(guide), "```hcl\n")[1:]
	if len(blocks) < 3 {
		t.Fatalf("the guide has %d scenarios, want at least 3", len(blocks))
	}
	for _, block := range blocks {
		src, _, _ := strings.Cut(block, "```")
		if _, diags := cloud.ParseScenario([]byte(src), "scenario.md"); len(diags) > 0 {
			t.Errorf("%v\nin\n%s", diags, src)
		}
	}
}

// TestGuideNamesEveryArgument has the guide's tables list what the reader takes.
func TestGuideNamesEveryArgument(t *testing.T) {
	guide, err := os.ReadFile("../../../../docs/guides/scenario.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range cloud.ArgumentNames() {
		if !strings.Contains(string(guide), "`"+name+"`") {
			t.Errorf("docs/guides/scenario.md says nothing of %s", name)
		}
	}
}

func TestParseScenario(t *testing.T) {
	src := `
seed = 7
preemption_every = "6h"
preemption_notice = 0
zone "us-west4-a" {
  capacity = { v5litepod = 64 }
  type "v5litepod" { provisioning = ["1m", "2m"] }
}
quota {
  region = "us-west4"
  type   = "v5litepod"
  tier   = "spot"
  limit  = 0
}
at "2h" {
  preempt = "b"
  silent  = true
}
at "1h" {
  stockout = "us-west4-a"
  for      = "20m"
}
`
	got, diags := cloud.ParseScenario([]byte(src), "s.hcl")
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	want := cloud.Scenario{
		Seed:       7,
		Conditions: cloud.Conditions{Preemption: 6 * time.Hour, Notice: cloud.Of(0)},
		Zones: []cloud.Zone{{
			Name: "us-west4-a", Capacity: map[string]int{"v5litepod": 64},
			Types: []cloud.TypeConditions{{Name: "v5litepod", Conditions: cloud.Conditions{Provisioning: cloud.Range{Min: time.Minute, Max: 2 * time.Minute}}}},
		}},
		Quotas: []cloud.Quota{{Region: "us-west4", Type: "v5litepod", Tier: cloud.TierSpot}},
		Events: []cloud.Scripted{
			{At: time.Hour, Action: cloud.ActionStockout, Zone: "us-west4-a", For: 20 * time.Minute},
			{At: 2 * time.Hour, Action: cloud.ActionPreempt, Target: "b", Silent: true},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestScenarioMistakes(t *testing.T) {
	tests := []struct {
		name, src string
		want      []string // each a diagnostic's range and part of its words
	}{
		{"misspelt argument", "sed = 1", []string{`s.hcl:1,1-4: Unsupported argument; An argument named "sed" is not expected here. Did you mean "seed"?`}},
		{"misspelt block", "stokout {\n}", []string{`s.hcl:1,1-8: Unsupported block type; Blocks of type "stokout" are not expected here. Did you mean "stockout"?`}},
		{"a time without unit", "provisioning = \"90\"", []string{`s.hcl:1,16-20: Bad value of provisioning; "90" is no time`}},
		{"a time that is a number", "latency = 20", []string{`s.hcl:1,11-13: Bad value of latency; Write a time "90s", or two`}},
		{"a range backwards", "boot = [\"2m\", \"1m\"]", []string{`s.hcl:1,8-20: Bad value of boot; The second time is shorter`}},
		{"a negative time", "preemption_every = \"-1h\"", []string{`Bad value of preemption_every; "-1h" is no time`}},
		{"a share in percent", "dead_hosts = 5", []string{`s.hcl:1,14-15: Bad value of dead_hosts; Write a share from 0 to 1`}},
		{"a type by its nickname", "zone \"us-west4-a\" {\n  capacity = { v5e = 4 }\n}", []string{`There is no type "v5e". Did you mean "v5litepod"?`}},
		{"a misspelt type", "zone \"us-west4-a\" {\n  capacity = { v5litpod = 4 }\n}", []string{`There is no type "v5litpod". Did you mean "v5litepod"?`}},
		{"an unknown zone", "outage {\n  zone = \"us-wst4-a\"\n}", []string{`s.hcl:2,10-21: Unknown zone; There is no zone "us-wst4-a". Did you mean "us-west4-a"?`}},
		{"a zone twice", "zone \"us-west4-a\" {}\nzone \"us-west4-a\" {}", []string{`s.hcl:2,1-18: Zone stated twice`}},
		{"a quota without limit", "quota {\n  region = \"us-west4\"\n  type = \"v6e\"\n}", []string{`s.hcl:1,1-6: Missing argument; A quota block needs "limit".`}},
		{"a tier", "quota {\n  region = \"r\"\n  type = \"v6e\"\n  limit = 1\n  tier = \"spott\"\n}", []string{`"spott" is none of on-demand, spot, reserved. Did you mean "spot"?`}},
		{"a window backwards", "stockout {\n  zone = \"us-west4-a\"\n  from = \"2h\"\n  to = \"1h\"\n}", []string{`Window without time; It ends at 1h0m0s and begins at 2h0m0s`}},
		{"an empty event", "at \"1h\" {}", []string{`Nothing happens; State what does`}},
		{"a bad time of an event", "at \"soon\" {\n  preempt = \"a\"\n}", []string{`s.hcl:1,4-10: Bad time; "soon" is no time since the start`}},
		{"all at once", "sed = 1\ndead_hosts = 5", []string{"Unsupported argument", "Bad value of dead_hosts"}},
		{"null", "project = null\ncreate_limit = null\nboot = null", []string{"Bad value of project", "Bad value of create_limit", "Bad value of boot"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, diags := cloud.ParseScenario([]byte(test.src), "s.hcl")
			if len(diags) != len(test.want) {
				t.Fatalf("got %d diagnostics, want %d: %v", len(diags), len(test.want), diags)
			}
			for i, want := range test.want {
				if got := diags[i].Error(); !strings.Contains(got, want) {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			}
		})
	}
}
