package schema

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

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
	sealed, err := Secret("hunter2").Seal(backwards{})
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
	if again, _ := Secret("hunter2").Seal(backwards{}); again != sealed {
		t.Error("sealing twice gives two texts")
	}
}

func TestDigestOf(t *testing.T) {
	t.Parallel()
	j := Job{Addr: Address{Kind: KindJob, Name: "a"}, Command: []Text{Plain("x")}, Labels: map[string]string{"b": "1", "a": "2"}}
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

// backwards seals by writing backwards.
type backwards struct{}

func (backwards) Seal(secret string) (string, error) {
	data := []byte(secret)
	slices.Reverse(data)
	return hex.EncodeToString(data), nil
}

func (backwards) Open(string) (string, error) { return "", fmt.Errorf("not needed") }
