package state

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fray-ml/fray/schema"
)

var update = flag.Bool("update", false, "write the golden files")

// same compares documents: an empty map is as good as none, as in JSON.
func same() cmp.Options {
	return cmp.Options{
		cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b schema.Address) bool { return a == b }),
		cmp.Comparer(func(a, b schema.Text) bool { return a == b }),
	}
}

// sample has something in every part.
func sample(t testing.TB) Document {
	t.Helper()
	key, err := NewKey(make([]byte, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	token, err := schema.Secret("hunter2").Seal(key)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 21, 6, 30, 0, 123456789, time.UTC)
	code := 0
	job := schema.Job{
		Addr:      schema.Address{Kind: schema.KindJob, Group: "math", Name: "trainer", Key: schema.StringKey("a/b \"c\"")},
		Namespace: "rl",
		Command:   []schema.Text{schema.Plain("train"), schema.Plain("--token"), token, schema.UnknownText()},
		Resources: schema.Resources{
			Provider: schema.ProviderLocal, TPU: "v5litepod-16", Slices: 1, Ports: []schema.Port{{Name: "http"}},
		},
		Environment: schema.Environment{
			Project: "/src", UV: &schema.UV{Extras: []string{"tpu"}}, Env: map[string]schema.Text{"TOKEN": token, "A": schema.Plain("<b>&")},
		},
		Retries:     schema.Retries{Preemption: schema.Unlimited},
		HealthCheck: &schema.Health{HTTP: "/healthz", Port: "http", Interval: schema.Duration(10 * time.Second), Threshold: 3},
		StopGrace:   schema.Duration(30 * time.Second),
	}
	namespace := schema.Namespace{Addr: schema.Address{Kind: schema.KindNamespace, Name: "rl"}, MaxChips: 256}
	digest, err := schema.DigestOf(job)
	if err != nil {
		t.Fatal(err)
	}
	return Document{
		FormatVersion: FormatVersion, FrayVersion: "0.1.0", Lineage: "abcdefghijklmnopqrstuvwxyz",
		Serial: 41, Epoch: 7, Nonce: "N", Revision: 3,
		Desired: schema.Desired{Namespaces: []schema.Namespace{namespace}, Jobs: []schema.Job{job}},
		Resources: map[schema.Address]Resource{
			namespace.Addr: {Digest: "v1:00", Namespace: &namespace},
		},
		Slices: map[string]*Slice{"s-1": {
			Spec:    schema.SliceSpec{Name: "s-1", Stack: "abcdefghijkl", Owner: job.Addr, Provider: schema.ProviderLocal, TPU: "v5litepod-16", Hosts: 4},
			AskedAt: at, Seen: true, Error: "no room", Tries: 2, RetryAt: at.Add(time.Minute),
		}},
		Jobs: map[schema.Address]*Job{job.Addr: {
			ID: "j-1", Spec: &job, Digest: digest, Status: schema.JobRunning, Ready: true, Slices: []string{"s-1"}, Attempt: 1,
			Attempts: []Attempt{{
				Number: 1, Generation: 5, Why: "first", StartedAt: at, Slices: []string{"s-1"},
				Tasks: []Task{{
					Slice: "s-1", Address: "127.0.0.1", State: schema.TaskSucceeded, ExitCode: &code,
					Ports: map[string]int{"http": 8080}, Tail: []string{"one", "two"}, Started: true,
				}},
			}},
		}},
		Outputs: map[string]schema.Output{
			"plain":  {Value: json.RawMessage(`{"a":[1,2,{"b":"<c>"}],"d":null}`), Description: "what it is"},
			"secret": {Secret: token, Sensitive: true},
			"later":  {Unknown: true},
		},
	}
}

func TestEncodeGolden(t *testing.T) {
	got, err := Encode(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "document.json")
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the encoding changed; a stack's state must stay readable (-want +got):\n%s", diff)
	}
	if strings.Contains(string(got), "hunter2") {
		t.Error("the encoding has a secret in clear")
	}
}

func TestDecodeReturnsWhatWasEncoded(t *testing.T) {
	for name, want := range map[string]Document{
		"full": sample(t), "empty": {FormatVersion: FormatVersion, Lineage: "l"},
	} {
		data, err := Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, same()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEncodeRefusesASecretInClear(t *testing.T) {
	d := sample(t)
	d.Outputs["secret"] = schema.Output{Secret: schema.Secret("hunter2"), Sensitive: true}
	if data, err := Encode(d); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %.40q, %v, want an error without the secret", data, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	whole, err := Encode(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, data string
		want       error
		says       string
	}{
		{"nothing", "", ErrDamaged, "empty"},
		{"spaces", " \n", ErrDamaged, "empty"},
		{"another kind of file", "lineage = 1", ErrDamaged, "line 1"},
		{"a list", "[]", ErrDamaged, "no JSON object"},
		{"null", "null", ErrDamaged, "no JSON object"},
		{"an empty object", "{}", ErrDamaged, "format_version"},
		{"half of it", string(whole[:len(whole)/2]), ErrDamaged, ""},
		{"all but its end", strings.TrimSuffix(string(whole), "}\n"), ErrDamaged, "unexpected end"},
		{"something after its end", string(whole) + "x", ErrDamaged, "line "},
		{"zeros", strings.Repeat("\x00", 4096), ErrDamaged, "line 1"},
		{"version 0", `{"format_version":0,"lineage":"l"}`, ErrDamaged, "format_version 0"},
		{"negative version", `{"format_version":-3,"lineage":"l"}`, ErrDamaged, "format_version -3"},
		{"no number", `{"format_version":"1","lineage":"l"}`, ErrDamaged, ""},
		{"no lineage", `{"format_version":1}`, ErrDamaged, "lineage"},
		{"two versions", `{"format_version":1,"lineage":"l","format_version":2}`, ErrDamaged, "two format_versions"},
		{"a field of another type", `{"format_version":1,"lineage":"l","serial":"x"}`, ErrDamaged, "serial"},
		{"an address of nothing", `{"format_version":1,"lineage":"l","jobs":{"":{"spec":{}}}}`, ErrDamaged, "job"},
		{"a bad address", `{"format_version":1,"lineage":"l","jobs":{"jobs.x":{}}}`, ErrDamaged, "jobs.x"},
		{"an empty job", `{"format_version":1,"lineage":"l","jobs":{"job.x":null}}`, ErrDamaged, "job.x"},
		{"a job without a spec", `{"format_version":1,"lineage":"l","jobs":{"job.x":{}}}`, ErrDamaged, "job.x"},
		{"an empty slice", `{"format_version":1,"lineage":"l","slices":{"s":null}}`, ErrDamaged, `"s"`},
		{"a slice of another name", `{"format_version":1,"lineage":"l","slices":{"s":{"spec":{"name":"r"}}}}`, ErrDamaged, `"s"`},
		{"a resource without a spec", `{"format_version":1,"lineage":"l","resources":{"namespace.n":{}}}`, ErrDamaged, "namespace.n"},
		{"a newer version", `{"format_version":2,"fray_version":"3.1.4","lineage":"l"}`, ErrNewer, "use fray 3.1.4 or a newer one"},
		{"a newer version that looks quite different", `{"lineage":{"a":[]},"format_version":99}`, ErrNewer, "format_version is 99"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Decode([]byte(test.data))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %v that says %q", err, test.want, test.says)
			}
			if got.Lineage != "" {
				t.Errorf("got a document beside the error: %+v", got)
			}
		})
	}
}

func TestDecodeToleratesUnknownFields(t *testing.T) {
	d, err := Decode([]byte(`{"later":1,"format_version":1,"lineage":"l","serial":7,"jobs":{"job.x":{"spec":{"new":true},"more":[]}}}`))
	if err != nil || d.Serial != 7 || len(d.Jobs) != 1 {
		t.Errorf("got %+v, %v, want serial 7 and one job", d, err)
	}
}

// There is one version so far; this is what reading older ones will be like.
func TestDecodeUpgradesOlderVersions(t *testing.T) {
	rename := func(from, to string) upgrade {
		return func(fields map[string]json.RawMessage) error {
			value, ok := fields[from]
			if !ok {
				return fmt.Errorf("there is no %s", from)
			}
			delete(fields, from)
			fields[to] = value
			return nil
		}
	}
	third := codec{version: 3, upgrades: []upgrade{rename("number", "count"), rename("count", "serial")}}
	tests := []struct{ name, data, fails string }{
		{"two back", `{"number":7,"format_version":1,"lineage":"l"}`, ""},
		{"one back", `{"format_version":2,"lineage":"l","count":7}`, ""},
		{"this one", `{"format_version":3,"lineage":"l","serial":7}`, ""},
		{"an upgrade that fails", `{"format_version":1,"lineage":"l"}`, "upgrade from format_version 1: there is no number"},
		{"damaged and old", `{"format_version":1,"lineage":`, "unexpected end"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, err := third.decode([]byte(test.data))
			if test.fails != "" {
				if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("got %v, want ErrDamaged that says %q", err, test.fails)
				}
				return
			}
			if err != nil || d.Serial != 7 || d.FormatVersion != 3 || d.Lineage != "l" {
				t.Errorf("got %+v, %v, want serial 7, version 3", d, err)
			}
		})
	}
	if _, err := third.decode([]byte(`{"format_version":4}`)); !errors.Is(err, ErrNewer) {
		t.Errorf("one ahead: got %v, want ErrNewer", err)
	}
	if len(upgrades()) != FormatVersion-1 {
		t.Errorf("there are %d upgrades to version %d, want one for each step", len(upgrades()), FormatVersion)
	}
}

func FuzzDecode(f *testing.F) {
	whole, err := Encode(sample(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	for _, seed := range []string{
		``, `null`, `{}`, `{"format_version":1,"lineage":"l"}`, `{"format_version":2}`,
		`{"format_version":1,"lineage":"l","outputs":{"a":{"value": [ 1 , "\u003c" ]},"b":{"value":null}}}`,
		`{"format_version":1,"lineage":"l","jobs":{"job.x[\"\\xff\"]":{"spec":{"command":["a",{"unknown":true}]},"attempts":null}}}`,
		`{"format_version":1,"lineage":"l","slices":{"s":{"spec":{"name":"s","cpu":1e-7},"asked_at":"2026-01-02T03:04:05.6+07:00"}}}`,
		`{"format_version":1,"lineage":"l","desired":{"reservations":[{"ttl":"1h0.5s","addr":""}]}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := Decode(data)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNewer) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		encoded, err := Encode(first)
		if err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		second, err := Decode(encoded)
		if err != nil {
			t.Fatalf("what was encoded cannot be decoded: %v\n%s", err, encoded)
		}
		if diff := cmp.Diff(first, second, same()); diff != "" {
			t.Fatalf("decode(encode(x)) is not x (-x +got):\n%s", diff)
		}
	})
}
