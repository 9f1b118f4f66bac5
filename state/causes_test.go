package state

import (
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
)

func digestsOf(t *testing.T, k *Key, values map[string]schema.Text) *Variables {
	t.Helper()
	v, err := DigestVariables(values, k)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Digests say which values changed, to holders of the key and as long as it is the
// same one, and nothing of what the values are.
func TestVariablesChanged(t *testing.T) {
	key, err := NewKey(slices.Repeat([]byte{1}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewKey(slices.Repeat([]byte{2}, KeySize))
	if err != nil {
		t.Fatal(err)
	}
	values := func(steps, token string) map[string]schema.Text {
		return map[string]schema.Text{"steps": schema.Secret(steps), "token": schema.Secret(token)}
	}
	before := digestsOf(t, key, values("1", "s3cret"))
	for name, c := range map[string]struct {
		now, before *Variables
		want        string
	}{
		"same":                {digestsOf(t, key, values("1", "s3cret")), before, ""},
		"one":                 {digestsOf(t, key, values("2", "s3cret")), before, "steps"},
		"both":                {digestsOf(t, key, values("2", "other")), before, "steps token"},
		"another key":         {digestsOf(t, other, values("2", "other")), before, ""},
		"an old state":        {digestsOf(t, key, values("2", "other")), nil, ""},
		"no key":              {nil, before, ""},
		"a new variable":      {digestsOf(t, key, values("2", "other")), before.Without([]string{"steps"}), "token"},
		"a variable that was": {before.Without([]string{"token"}), digestsOf(t, key, values("2", "other")), "steps"},
	} {
		if got := strings.Join(c.now.Changed(c.before), " "); got != c.want {
			t.Errorf("%s: changed are %q, want %q", name, got, c.want)
		}
	}
	for name, digest := range before.Values {
		if strings.Contains(digest, "s3cret") || len(digest) != 2*digestSize {
			t.Errorf("the digest of %s is %q", name, digest)
		}
		if digest == digestsOf(t, other, values("1", "s3cret")).Values[name] {
			t.Errorf("another key makes the same digest of %s", name)
		}
	}
}

// What is not known of a document is not written, and what is comes back.
func TestCausesAreKept(t *testing.T) {
	doc := &Document{FormatVersion: FormatVersion, Lineage: "abcdef0123456789"}
	data, err := Encode(*doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"variables", "causes"} {
		if strings.Contains(string(data), name) {
			t.Errorf("a document without %s has them: %s", name, data)
		}
	}
	addr, err := schema.ParseAddress("job.a")
	if err != nil {
		t.Fatal(err)
	}
	causes := &ChangeCauses{
		Variables: map[string][]string{"command": {"rate", "steps"}},
		Files:     []FileChange{{Path: "a.py", Verb: FileAdded}}, MoreFiles: 2,
	}
	doc.Variables = &Variables{Key: "k", Values: map[string]string{"steps": "d"}}
	spec := &schema.Job{Addr: addr}
	doc.Jobs = map[schema.Address]*Job{addr: {ID: "1", Spec: spec, Causes: causes, Attempts: []Attempt{{Number: 1, Slices: []string{"s"}, Changed: []string{"command"}, Causes: causes}}}}
	if data, err = Encode(*doc); err != nil {
		t.Fatal(err)
	}
	back, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Encode(back)
	if err != nil || string(again) != string(data) {
		t.Errorf("%v: got\n%s\nwant\n%s", err, again, data)
	}
	if j := back.Jobs[addr]; back.Variables == nil || j == nil || j.Causes.IsZero() || j.Attempts[0].Causes.IsZero() {
		t.Errorf("variables or causes are lost: %s", again)
	}
}
