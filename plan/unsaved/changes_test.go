package unsaved

import (
	"maps"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// An action begins before the newest state is saved only if nothing that has to do with it has changed
// since the state that is saved.
func TestWhatHasToDoWithAnActionIsSaved(t *testing.T) {
	job := func(name string) schema.Address { return schema.Address{Kind: schema.KindJob, Name: name} }
	saved := &state.Document{
		Revision:  1,
		Resources: map[schema.Address]state.Resource{job("r"): {}},
		Slices: map[string]*state.Slice{
			"a": {}, "b": {}, "packed": {Spec: schema.SliceSpec{Name: "packed", On: "a"}}, "c": {}, "d": {}, "e": {},
		},
		Jobs: map[schema.Address]*state.Job{
			job("a"): {Slices: []string{"a"}}, job("b"): {Slices: []string{"b"}}, job("staged"): {Staged: []string{"c"}},
			job("left"):   {Attempts: []state.Attempt{{Slices: []string{"d"}, Tasks: []state.Task{{Slice: "e"}}}, {}}},
			job("packed"): {Slices: []string{"packed"}},
		},
	}
	saved.Past = map[string]*state.Job{"1": {Slices: []string{"a"}}}
	other := func(doc *state.Document, addr schema.Address) {
		doc.Jobs = maps.Clone(doc.Jobs)
		j := *doc.Jobs[addr]
		doc.Jobs[addr] = &j
	}
	a := plan.Action{Verb: plan.DeleteSlice, Addr: job("a"), Slice: &schema.SliceSpec{Name: "a"}}
	of := func(slice string) plan.Action {
		return plan.Action{Verb: plan.DeleteSlice, Addr: job("gone"), Slice: &schema.SliceSpec{Name: slice}}
	}
	for name, c := range map[string]struct {
		action plan.Action
		change func(doc *state.Document)
		want   bool
	}{
		"nothing":                     {a, func(*state.Document) {}, false},
		"another job":                 {a, func(doc *state.Document) { other(doc, job("b")) }, false},
		"the metering":                {a, func(doc *state.Document) { doc.Metering = &state.Metering{} }, false},
		"another slice":               {a, func(doc *state.Document) { doc.Slices = with(doc.Slices, "b", &state.Slice{}) }, false},
		"its job":                     {a, func(doc *state.Document) { other(doc, job("a")) }, true},
		"the job that has its slice":  {of("a"), func(doc *state.Document) { other(doc, job("a")) }, true},
		"its job is gone":             {of("a"), func(doc *state.Document) { doc.Jobs = without(doc.Jobs, job("a")) }, true},
		"another job takes its slice": {a, func(doc *state.Document) { doc.Jobs = with(doc.Jobs, job("b"), &state.Job{Slices: []string{"a"}}) }, true},
		"a job that stages it":        {of("c"), func(doc *state.Document) { other(doc, job("staged")) }, true},
		"a job that had it":           {of("d"), func(doc *state.Document) { other(doc, job("left")) }, true},
		"a job whose task was on it":  {of("e"), func(doc *state.Document) { other(doc, job("left")) }, true},
		"a job with a task on a host": {of("a"), func(doc *state.Document) { other(doc, job("packed")) }, true},
		"a packed slice":              {of("a"), func(doc *state.Document) { doc.Slices = without(doc.Slices, "packed") }, true},
		"its slice":                   {a, func(doc *state.Document) { doc.Slices = with(doc.Slices, "a", &state.Slice{}) }, true},
		"its slice is gone":           {a, func(doc *state.Document) { doc.Slices = without(doc.Slices, "a") }, true},
		"a job that was":              {of("a"), func(doc *state.Document) { doc.Past = with(doc.Past, "2", &state.Job{Slices: []string{"a"}}) }, true},
		"a reservation": {a, func(doc *state.Document) {
			doc.Resources = with(doc.Resources, job("r"), state.Resource{Since: time.Unix(1, 0)})
		}, true},
		"no reservation":    {a, func(doc *state.Document) { doc.Resources = maps.Clone(doc.Resources) }, false},
		"the configuration": {a, func(doc *state.Document) { doc.Revision++ }, true},
		"what is unmanaged": {a, func(doc *state.Document) { doc.Unmanaged = map[string]state.Unmanaged{"x": {}} }, true},
	} {
		doc := *saved
		c.change(&doc)
		if got := Since(saved, &doc).Concern(&c.action); got != c.want {
			t.Errorf("%s has changed: got %t, want %t", name, got, c.want)
		}
	}
}

func with[K comparable, V any](m map[K]V, key K, v V) map[K]V {
	m = maps.Clone(m)
	if m == nil {
		m = map[K]V{}
	}
	m[key] = v
	return m
}

func without[K comparable, V any](m map[K]V, key K) map[K]V {
	m = maps.Clone(m)
	delete(m, key)
	return m
}
