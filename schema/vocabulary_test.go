package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseAccelerator(t *testing.T) {
	t.Parallel()
	tests := map[string]Accelerator{
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
		if got, err := ParseAccelerator(name); err != nil || got != want {
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
		"h100-8":       "the generations are",
		"v4-2":         `"v4-8"`,
		"v4-99999999":  `"v4-4096"`,
		"":             "the generations are",
	} {
		if got, err := ParseAccelerator(name); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("ParseAccelerator(%q) = %+v, %v; want an error with %s", name, got, err, hint)
		}
	}
}

// TestEveryAccelerator: every valid type has hosts and a topology of its chips.
func TestEveryAccelerator(t *testing.T) {
	t.Parallel()
	for _, g := range generations() {
		for _, size := range g.validSizes() {
			a, err := ParseAccelerator(fmt.Sprintf("%s-%d", g.name, size))
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

func TestAddresses(t *testing.T) {
	t.Parallel()
	inOrder := []string{
		"namespace.rl", "reservation.pool", "job_group.math", "job.etl", "job.etl[0]", "job.etl[2]", "job.etl[10]", `job.etl["10"]`, `job.etl["a \"b\""]`,
		"job.train", "job_group.math.job.rollout", `job_group.math.job.rollout["a.b[0]"]`, "actor_service.s[0]",
	}
	var addrs []Address
	for _, text := range inOrder {
		a, err := ParseAddress(text)
		if err != nil || a.String() != text {
			t.Errorf("ParseAddress(%s) = %s, %v", text, a, err)
		}
		addrs = append(addrs, a)
	}
	if !slices.IsSortedFunc(addrs, Address.Compare) {
		t.Errorf("%s are not in order", addrs)
	}
	for _, text := range []string{"", "job", "job.", "jab.a", "job.a[", "job.a[-1]", "job.a[01]", "job.a[x]", "job.a[0]x", "job_group.g.jab.a", "job.9", "a.b.c"} {
		if a, err := ParseAddress(text); err == nil {
			t.Errorf("ParseAddress(%q) = %s, want an error", text, a)
		}
	}
	group, in, other := addrs[2], addrs[11], addrs[3]
	for _, test := range []struct {
		a, b Address
		want bool
	}{{group, in, true}, {group, other, false}, {other, addrs[5], true}, {addrs[5], other, false}, {in.Base(), in, true}, {group, group, true}} {
		if got := test.a.Contains(test.b); got != test.want {
			t.Errorf("%s contains %s = %v, want %v", test.a, test.b, got, test.want)
		}
	}
	data, err := json.Marshal(map[Address]Address{in: {}})
	var back map[Address]Address
	if err != nil || json.Unmarshal(data, &back) != nil || len(back) != 1 || back[in] != (Address{}) {
		t.Errorf("%s reads back as %v (%v)", data, back, err)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	sealed, err := Secret("hunter2").Seal(reversing{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []Text{Plain("x"), Plain(""), Plain(`{"sealed":"x"}`), sealed, UnknownText()} {
		data, err := json.Marshal(want)
		var got Text
		if err != nil || json.Unmarshal(data, &got) != nil || got != want {
			t.Errorf("%s reads back as %#v (%v), want %#v", data, got, err, want)
		}
	}
	for _, data := range []string{"{}", "[]", "1", `{"other":1}`} {
		var got Text
		if json.Unmarshal([]byte(data), &got) == nil {
			t.Errorf("%s reads as %#v, want an error", data, got)
		}
	}
	if _, err := UnknownText().Reveal(nil); err == nil {
		t.Error("an unknown text was revealed")
	}
	if _, err := sealed.Reveal(nil); err == nil {
		t.Error("a sealed text was revealed without a key")
	}
	if got, err := Secret("hunter2").Reveal(nil); err != nil || got != "hunter2" {
		t.Errorf("Reveal = %q, %v", got, err)
	}
	if again, _ := Secret("hunter2").Seal(reversing{}); again != sealed {
		t.Error("sealing twice gives two texts")
	}
}

func TestDigestOf(t *testing.T) {
	t.Parallel()
	j := Job{Addr: job("a"), Command: []Text{Plain("x")}, Labels: map[string]string{"b": "1", "a": "2"}}
	first, err := DigestOf(j)
	if err != nil || first.Version() != "v1" || len(first.Short()) != 12 {
		t.Fatalf("DigestOf = %s, %v", first, err)
	}
	j.Labels = map[string]string{"a": "2", "b": "1"}
	if again, _ := DigestOf(j); again != first {
		t.Errorf("equal jobs have the digests %s and %s", first, again)
	}
	j.Command[0] = Plain("y")
	if other, _ := DigestOf(j); other == first {
		t.Error("another command has the same digest")
	}
	j.Command[0] = Secret("y")
	if d, err := DigestOf(j); err == nil {
		t.Errorf("a secret in clear has the digest %s", d)
	}
}

func TestDurationText(t *testing.T) {
	t.Parallel()
	var d Duration
	if err := d.UnmarshalText([]byte("90m")); err != nil || d != Duration(90*time.Minute) || d.String() != "1h30m0s" {
		t.Errorf("90m reads as %s, %v", d, err)
	}
	if err := d.UnmarshalText([]byte("90")); err == nil || !strings.Contains(err.Error(), `"30s"`) {
		t.Errorf("90 without a unit: %v, want an error with an example", err)
	}
}
