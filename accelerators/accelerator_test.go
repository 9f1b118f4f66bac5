package accelerators

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseAccelerator(t *testing.T) {
	t.Parallel()
	tests := map[string]Shape{
		"v2-8":          {"v2-8", "v2", 4, 1, 4, "2x2"},
		"v3-32":         {"v3-32", "v3", 16, 4, 4, "4x4"},
		"v4-8":          {"v4-8", "v4", 4, 1, 4, "2x2x1"},
		"v4-64":         {"v4-64", "v4", 32, 8, 4, "2x4x4"},
		"v4-128":        {"v4-128", "v4", 64, 16, 4, "4x4x4"},
		"v5litepod-1":   {"v5litepod-1", "v5litepod", 1, 1, 1, "1x1"},
		"v5litepod-8":   {"v5litepod-8", "v5litepod", 8, 1, 8, "2x4"},
		"v5e-16":        {"v5litepod-16", "v5litepod", 16, 4, 4, "4x4"},
		"v5litepod-256": {"v5litepod-256", "v5litepod", 256, 64, 4, "16x16"},
		"v5p-12288":     {"v5p-12288", "v5p", 6144, 1536, 4, "16x16x24"},
		"v6e-32":        {"v6e-32", "v6e", 32, 8, 4, "4x8"},
		"tpu7x-16":      {"tpu7x-16", "tpu7x", 8, 2, 4, "2x2x2"},
	}
	for name, want := range tests {
		if got, err := Parse(name); err != nil || got != want {
			t.Errorf("ParseAccelerator(%q) = %+v, %v; want %+v", name, got, err, want)
		}
	}
	for name, hint := range map[string]string{
		"v5litepod-17": `"v5litepod-16" and "v5litepod-32"`,
		"v5litepod-0":  "v5litepod-N",
		"v5litepod":    "v5litepod-N",
		"v5litepod-08": "v5litepod-N",
		"v6-4":         `"v6e-4"?`,
		"v6e16":        `"v6e-16"?`,
		"V5LITEPOD-16": `"v5litepod-16"?`,
		"v5-16":        `"v5litepod-16" or "v5p-16"?`,
		"v5e16":        `"v5litepod-16"?`,
		"v7x-16":       `"tpu7x-16"?`,
		"TPU v4-8":     `"v4-8"?`,
		"v8-4":         "the generations are",
		"h100-8":       `a block gpu with type = "h100" and count = 8`,
		"nvidia-l4":    `type = "l4" and count = 1`,
		"A100-80GB:4":  `type = "a100-80gb" and count = 4`,
		"v4-2":         `"v4-8"`,
		"v4-99999999":  `"v4-4096"`,
		"":             "the generations are",
	} {
		if got, err := Parse(name); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("ParseAccelerator(%q) = %+v, %v; want an error with %s", name, got, err, hint)
		}
	}
}

// TestEveryAccelerator: every valid type has hosts and a topology of its chips.
func TestEveryAccelerator(t *testing.T) {
	t.Parallel()
	for _, g := range generations() {
		for _, size := range g.validSizes() {
			a, err := Parse(fmt.Sprintf("%s-%d", g.name, size))
			if err != nil {
				t.Error(err)
				continue
			}
			chips := 1
			for dim := range strings.SplitSeq(a.Topology, "x") {
				n := 0
				if _, err := fmt.Sscan(dim, &n); err != nil {
					t.Fatal(err)
				}
				chips *= n
			}
			if chips != a.Chips || a.Hosts*a.ChipsPerHost != a.Chips || a.Hosts < 1 {
				t.Errorf("%+v: the topology has %d chips, the hosts %d", a, chips, a.Hosts*a.ChipsPerHost)
			}
		}
	}
}
