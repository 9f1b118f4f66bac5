package proposal

import (
	"maps"
	"slices"
	"testing"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// An apply of everything records all values; one that leaves something out forgets those
// that changed, since it is not known later with which value the rest was applied.
func TestExplanationOfTargets(t *testing.T) {
	key, err := state.NewKey(slices.Repeat([]byte{1}, state.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	other, err := state.NewKey(slices.Repeat([]byte{2}, state.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]schema.Text{"steps": schema.Secret("2"), "rate": schema.Secret("1"), "fresh": schema.Secret("3")}
	digests := func(k *state.Key, steps string) *state.Variables {
		v, err := state.DigestVariables(map[string]schema.Text{"steps": schema.Secret(steps), "rate": schema.Secret("1")}, k)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	target := []schema.Address{schema.ScopedAddress(schema.KindNamespace, "n")}
	for name, c := range map[string]struct {
		before  *state.Variables
		targets []schema.Address
		want    []string // nil: none are recorded
	}{
		"everything":                    {digests(key, "1"), nil, []string{"fresh", "rate", "steps"}},
		"everything, first":             {nil, nil, []string{"fresh", "rate", "steps"}},
		"everything, after another key": {digests(other, "1"), nil, []string{"fresh", "rate", "steps"}},
		"some":                          {digests(key, "1"), target, []string{"rate"}},
		"some, as before":               {digests(key, "2"), target, []string{"rate", "steps"}},
		"some, first":                   {nil, target, nil},
		"some, after another key":       {digests(other, "1"), target, nil},
	} {
		l := &configuration.Loaded{Config: &schema.Config{Variables: values}, Sealer: key, Source: &lang.Source{}}
		e := explanation(t.Context(), l, &state.Document{Variables: c.before}, c.targets)
		var got []string
		if e.Variables != nil {
			got = slices.Sorted(maps.Keys(e.Variables.Values))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: recorded are %q, want %q", name, got, c.want)
		}
	}
}
