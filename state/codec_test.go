package state_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/checksum"
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

// A large document is compressed; what people are shown is not.
func TestEncodeCompressesLargeDocuments(t *testing.T) {
	d := large(t, 1_000)
	stored, err := state.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	text, err := state.Text(d)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) || len(stored) > len(text)/10 {
		t.Errorf("got %d bytes of %d, want a tenth", len(stored), len(text))
	}
	for name, data := range map[string][]byte{"stored": stored, "text": text} {
		got, intact, err := state.DecodeEdited(data)
		if err != nil || !intact {
			t.Fatalf("%s: got intact %v, %v, want intact", name, intact, err)
		}
		mustBeSame(t, d, got)
	}
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
	clear(c.Unmanaged)
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
		{"a job neither desired nor with a spec", `{"format_version":1,"lineage":"l","jobs":{"job.x":{"id":"j"}}}`, state.ErrDamaged, "job.x"},
		{"null for a desired job", `{"format_version":1,"lineage":"l","desired":{"jobs":[{"addr":"job.x"}]},"jobs":{"job.x":null}}`, state.ErrDamaged, "empty"},
		{"a job twice", `{"format_version":1,"lineage":"l","jobs":{"job.x[\"a\"]":{"spec":{}},"job.x[\"\\x61\"]":{"spec":{}}}}`, state.ErrDamaged, "duplicate object member name"},
		{"a slice twice", `{"format_version":1,"lineage":"l","slices":{"s":{"spec":{}},"\u0073":{"spec":{}}}}`, state.ErrDamaged, `duplicate object member name "s"`},
		{"a spec that is no object", `{"format_version":1,"lineage":"l","jobs":{"job.x":{"spec":[]}}}`, state.ErrDamaged, "unmarshal JSON array"},
		{"jobs that are no object", `{"format_version":1,"lineage":"l","jobs":[]}`, state.ErrDamaged, "unmarshal JSON array into Go map"},
		{"desired jobs that are no list", `{"format_version":1,"lineage":"l","desired":{"jobs":{}}}`, state.ErrDamaged, "unmarshal JSON object into Go []"},
		{"an encrypted one", `{"fray_encrypted":1,"data":"AAAA"}`, state.ErrEncrypted, "FRAY_AGE_IDENTITY"},
		{"half an encrypted one", ` { "fray_encrypted" : 1, "da`, state.ErrEncrypted, "no key was given"},
		{"a newer version", `{"format_version":5,"fray_version":"3.1.4","lineage":"l"}`, state.ErrNewer, "use fray 3.1.4 or a newer one"},
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

// What is unknown is refused wherever it is: it may be what was known before
// damage was done to it.
func TestDecodeRefusesUnknownMembers(t *testing.T) {
	places := []string{
		`"later":1`, `"common":{}`,
		`"desired":{"new":1}`, `"desired":{"jobs":[{"addr":"job.x","new":1}]}`, `"desired":{"controller":{"new":1}}`,
		`"jobs":{"job.x":{"spec":{},"new":1}}`, `"jobs":{"job.x":{"spec":{"new":1}}}`, `"jobs":{"job.x":{"spec":{"health_check":{"new":1}}}}`,
		`"jobs":{"job.x":{"spec":{},"attempts":[{"new":1}]}}`, `"jobs":{"job.x":{"spec":{},"attempts":[{"tasks":[{"new":1}]}]}}`,
		`"jobs":{"job.x":{"spec":{},"launch":{"new":1}}}`, `"slices":{"s":{"spec":{"name":"s"},"new":1}}`, `"slices":{"s":{"spec":{"name":"s","cloud":{"new":1}}}}`,
		`"resources":{"namespace.n":{"namespace":{"new":1}}}`, `"outputs":{"o":{"new":1}}`, `"zone_health":{"w":{"new":1}}`, `"paused":{"new":1}`,
		`"unmanaged":{"s":{"new":1}}`, `"past":{"j":{"new":1}}`,
		`"Lineage":"l"`, `"jobs":{"job.x":{"spec":{},"ID":"i"}}`,
	}
	for _, place := range places {
		data := `{"format_version":1,"lineage":"l",` + place + `}`
		if d, err := state.Decode([]byte(data)); !errors.Is(err, state.ErrDamaged) || !strings.Contains(err.Error(), "unknown object member name") {
			t.Errorf("%s: got %+v, %v, want ErrDamaged for an unknown member", data, d, err)
		}
		checked, err := checksum.Append([]byte(`{"format_version":4,"fray_version":"9.8.7","lineage":"l",` + place + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if d, err := state.Decode(checked); !errors.Is(err, state.ErrNewer) || !strings.Contains(err.Error(), "fray 9.8.7") {
			t.Errorf("%s: got %+v, %v, want ErrNewer of fray 9.8.7", checked, d, err)
		}
	}
}

func TestDecodeRefusesUnknownMembersOfTexts(t *testing.T) {
	data := `{"format_version":1,"lineage":"l","jobs":{"job.x":{"spec":{"command":[{"sealed":"v1:AAAA","new":1}]}}}}`
	if d, err := state.Decode([]byte(data)); !errors.Is(err, state.ErrDamaged) || !strings.Contains(err.Error(), `"new"`) {
		t.Errorf("got %+v, %v, want ErrDamaged for the member new", d, err)
	}
}

func TestDecodeEdited(t *testing.T) {
	whole, err := state.Encode(sample(t))
	if err != nil {
		t.Fatal(err)
	}
	want, err := state.Decode(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got, intact, err := state.DecodeEdited(whole); err != nil || !intact {
		t.Errorf("what was written: got intact %v, %v, want intact", intact, err)
	} else {
		mustBeSame(t, want, got)
	}
	edits := map[string][2]string{
		"another value":           {`"lineage": "`, `"lineage": "z`},
		"another form":            {"\n ", "\n  "},
		"no checksum":             {`"checksum"`, `"checksun"`},
		"an unknown member":       {`"lineage"`, `"lineages"`},
		"a member that was twice": {`"serial"`, `"serial":1,"serial"`},
	}
	for name, edit := range edits {
		data := bytes.Replace(whole, []byte(edit[0]), []byte(edit[1]), 1)
		if bytes.Equal(data, whole) {
			t.Fatalf("%s: nothing is edited", name)
		}
		if _, err := state.Decode(data); !errors.Is(err, state.ErrDamaged) {
			t.Errorf("%s: got %v from Decode, want ErrDamaged", name, err)
		}
		got, intact, err := state.DecodeEdited(data)
		if intact {
			t.Errorf("%s: it is intact, want edited", name)
		}
		if known := name == "another value" || name == "another form"; known != (err == nil) {
			t.Errorf("%s: got %+v, %v, want it to be read: %v", name, got, err, known)
		}
	}
}
