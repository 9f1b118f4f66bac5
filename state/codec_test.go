package state_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

var update = flag.Bool("update", false, "write the golden files")

func TestEncodeGolden(t *testing.T) {
	instances := large(t, 3)
	before := *instances.Jobs[instances.Desired.Jobs[1].Addr].Spec
	before.Environment.Env = map[string]schema.Text{"B": schema.Plain("before")}
	before.HealthCheck = nil
	instances.Jobs[before.Addr].Spec = &before
	for name, d := range map[string]state.Document{"document.json": sample(t), "instances.json": instances} {
		got, err := state.Encode(d)
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name)
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
}

func TestDecodeReturnsWhatWasEncoded(t *testing.T) {
	for name, want := range map[string]state.Document{
		"full": sample(t), "empty": {FormatVersion: state.FormatVersion, Lineage: "l"},
		"for_each": large(t, 2_000), "chain": chain(t, 300),
	} {
		t.Run(name, func(t *testing.T) { roundTrip(t, want) })
	}
}

// What programs say ends up in the state, and must not keep it from being written.
func TestEncodeReplacesWhatIsNoText(t *testing.T) {
	d := sample(t)
	job := d.Jobs[d.Desired.Jobs[0].Addr]
	job.Reason, job.Attempts[0].Tasks[0].Tail = "a\xffb", []string{"\xc3\x28", "plain"}
	data, err := state.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := state.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	job.Reason, job.Attempts[0].Tasks[0].Tail = "a\ufffdb", []string{"\ufffd(", "plain"}
	mustBeSame(t, d, got)
}

func TestEncodeIsTheSameEveryTime(t *testing.T) {
	d := large(t, 1_000)
	first, err := state.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := state.Decode(first)
	if err != nil {
		t.Fatal(err)
	}
	for name, d := range map[string]state.Document{"the same": d, "what was decoded": decoded, "a clone": *d.Clone()} {
		if data, err := state.Encode(d); err != nil || !bytes.Equal(data, first) {
			t.Errorf("%s: got %d bytes, %v, want those written first (%d)", name, len(data), err, len(first))
		}
	}
}

func TestCloneSharesNoMap(t *testing.T) {
	d, want := filled(t), filled(t)
	c := d.Clone()
	clear(c.Resources)
	clear(c.Slices)
	clear(c.Jobs)
	clear(c.Outputs)
	clear(c.Disowned)
	if diff := cmp.Diff(want, d, same()); diff != "" {
		t.Errorf("a change of the clone changed the document (-want +got):\n%s", diff)
	}
}

func TestEncodeRefuses(t *testing.T) {
	broken := map[string]func(d *state.Document){
		"a job without a spec":    func(d *state.Document) { d.Jobs[d.Desired.Jobs[0].Addr] = &state.Job{} },
		"no job":                  func(d *state.Document) { d.Jobs[d.Desired.Jobs[0].Addr] = nil },
		"no slice":                func(d *state.Document) { d.Slices["s-2"] = nil },
		"a slice of another name": func(d *state.Document) { d.Slices["s-2"] = d.Slices["s-1"] },
	}
	for name, breaks := range broken {
		d := sample(t)
		breaks(&d)
		if data, err := state.Encode(d); err == nil {
			t.Errorf("%s: got %d bytes, want an error", name, len(data))
		}
	}
}

func TestEncodeRefusesASecretInClear(t *testing.T) {
	secret := schema.Secret("hunter2")
	places := map[string]func(d *state.Document){
		"output":          func(d *state.Document) { d.Outputs["o"] = schema.Output{Secret: secret, Sensitive: true} },
		"desired command": func(d *state.Document) { d.Desired.Jobs[5].Command = []schema.Text{secret} },
		"desired env":     func(d *state.Document) { d.Desired.Jobs[5].Environment.Env = map[string]schema.Text{"A": secret} },
		"common to desired": func(d *state.Document) {
			for i := range d.Desired.Jobs {
				d.Desired.Jobs[i].Environment.Env = map[string]schema.Text{"A": secret}
			}
		},
		"command of a job": func(d *state.Document) {
			d.Jobs[d.Desired.Jobs[5].Addr].Spec.Command = []schema.Text{schema.Plain("a"), secret}
		},
	}
	for name, hide := range places {
		d := large(t, 10)
		hide(&d)
		if data, err := state.Encode(d); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %.40q, %v, want an error without the secret", name, data, err)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	whole, err := state.Encode(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, data string
		want       error
		says       string
	}{
		{"nothing", "", state.ErrDamaged, "empty"},
		{"spaces", " \n", state.ErrDamaged, "empty"},
		{"another kind of file", "lineage = 1", state.ErrDamaged, "line 1"},
		{"a list", "[]", state.ErrDamaged, "no JSON object"},
		{"null", "null", state.ErrDamaged, "no JSON object"},
		{"an empty object", "{}", state.ErrDamaged, "format_version"},
		{"half of it", string(whole[:len(whole)/2]), state.ErrDamaged, ""},
		{"all but its end", strings.TrimSuffix(string(whole), "}\n"), state.ErrDamaged, "ends too early"},
		{"something after its end", string(whole) + "x", state.ErrDamaged, "line "},
		{"zeros", strings.Repeat("\x00", 4096), state.ErrDamaged, "line 1"},
		{"version 0", `{"format_version":0,"lineage":"l"}`, state.ErrDamaged, "format_version 0"},
		{"negative version", `{"format_version":-3,"lineage":"l"}`, state.ErrDamaged, "format_version -3"},
		{"no number", `{"format_version":"1","lineage":"l"}`, state.ErrDamaged, ""},
		{"no lineage", `{"format_version":1}`, state.ErrDamaged, "lineage"},
		{"two versions", `{"format_version":1,"lineage":"l","format_version":2}`, state.ErrDamaged, `"format_version" is there twice`},
		{"a field of another type", `{"format_version":1,"lineage":"l","serial":"x"}`, state.ErrDamaged, "serial"},
		{"an address of nothing", `{"format_version":1,"lineage":"l","jobs":{"":{"spec":{}}}}`, state.ErrDamaged, "job"},
		{"a bad address", `{"format_version":1,"lineage":"l","jobs":{"jobs.x":{}}}`, state.ErrDamaged, "jobs.x"},
		{"an empty job", `{"format_version":1,"lineage":"l","jobs":{"job.x":null}}`, state.ErrDamaged, "job.x"},
		{"a job without a spec", `{"format_version":1,"lineage":"l","jobs":{"job.x":{}}}`, state.ErrDamaged, "job.x"},
		{"an empty slice", `{"format_version":1,"lineage":"l","slices":{"s":null}}`, state.ErrDamaged, `"s"`},
		{"a slice of another name", `{"format_version":1,"lineage":"l","slices":{"s":{"spec":{"name":"r"}}}}`, state.ErrDamaged, `"s"`},
		{"a resource without a spec", `{"format_version":1,"lineage":"l","resources":{"namespace.n":{}}}`, state.ErrDamaged, "namespace.n"},
		{"a job like none", `{"format_version":2,"lineage":"l","desired":{"jobs":[{"like":0,"addr":"job.x"}]}}`, state.ErrDamaged, "like number 0 of 0"},
		{"a job like a negative one", `{"format_version":2,"lineage":"l","desired":{"jobs":[{"like":-2,"addr":"job.x"}]}}`, state.ErrDamaged, "like number -2"},
		{"a job like no number", `{"format_version":2,"lineage":"l","common":{"jobs":[{}]},"desired":{"jobs":[{"like":"0"}]}}`, state.ErrDamaged, "string"},
		{"a common spec like another", `{"format_version":2,"lineage":"l","common":{"jobs":[{},{"like":0}]}}`, state.ErrDamaged, "like number 0 of 0"},
		{"a job neither desired nor with a spec", `{"format_version":2,"lineage":"l","jobs":{"job.x":{"id":"j"}}}`, state.ErrDamaged, "job.x"},
		{"null for a desired job", `{"format_version":2,"lineage":"l","desired":{"jobs":[{"addr":"job.x"}]},"jobs":{"job.x":null}}`, state.ErrDamaged, "empty"},
		{"a job twice", `{"format_version":2,"lineage":"l","jobs":{"job.x[\"a\"]":{"spec":{}},"job.x[\"\\x61\"]":{"spec":{}}}}`, state.ErrDamaged, "twice"},
		{"a slice twice", `{"format_version":2,"lineage":"l","slices":{"s":{"spec":{}},"\u0073":{"spec":{}}}}`, state.ErrDamaged, `"s" is there twice`},
		{"a spec that is no object", `{"format_version":2,"lineage":"l","jobs":{"job.x":{"spec":[]}}}`, state.ErrDamaged, "object"},
		{"jobs that are no object", `{"format_version":2,"lineage":"l","jobs":[]}`, state.ErrDamaged, "jobs: it is no JSON object"},
		{"desired jobs that are no list", `{"format_version":2,"lineage":"l","desired":{"jobs":{}}}`, state.ErrDamaged, "it is no JSON array"},
		{"an encrypted one", `{"fray_encrypted":1,"data":"AAAA"}`, state.ErrEncrypted, "FRAY_AGE_IDENTITY"},
		{"half an encrypted one", ` { "fray_encrypted" : 1, "da`, state.ErrEncrypted, "no key was given"},
		{"a newer version", `{"format_version":3,"fray_version":"3.1.4","lineage":"l"}`, state.ErrNewer, "use fray 3.1.4 or a newer one"},
		{"a newer version that looks quite different", `{"lineage":{"a":[]},"format_version":99}`, state.ErrNewer, "format_version is 99"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := state.Decode([]byte(test.data))
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
	d, err := state.Decode([]byte(`{"later":1,"format_version":1,"lineage":"l","serial":7,"jobs":{"job.x":{"spec":{"new":true},"more":[]}}}`))
	if err != nil || d.Serial != 7 || len(d.Jobs) != 1 {
		t.Errorf("got %+v, %v, want serial 7 and one job", d, err)
	}
}
