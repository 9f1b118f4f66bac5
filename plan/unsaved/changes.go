package unsaved

import (
	"maps"
	"reflect"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Changes are what of a state is not saved.
type Changes struct {
	saved, doc *state.Document
	all        bool            // some of what is not looked at more closely
	slices     map[string]bool // changed ones, those on which changed ones are, and those of changed jobs
}

// Since are the changes of a state since one that is saved.
func Since(saved, doc *state.Document) *Changes {
	c := &Changes{saved: saved, doc: doc, slices: map[string]bool{}}
	c.all = saved.Revision != doc.Revision || !maps.Equal(saved.Resources, doc.Resources) || !maps.Equal(saved.Unmanaged, doc.Unmanaged)
	if c.all {
		return c
	}
	state.Differences(saved.Slices, doc.Slices, func(name string, was, is *state.Slice) {
		c.slice(name)
		for _, s := range []*state.Slice{was, is} {
			if s != nil {
				c.slice(s.Spec.On)
			}
		}
	})
	ofJob := func(was, is *state.Job) {
		c.job(was)
		c.job(is)
	}
	state.Differences(saved.Jobs, doc.Jobs, func(_ schema.Address, was, is *state.Job) { ofJob(was, is) })
	state.Differences(saved.Past, doc.Past, func(_ string, was, is *state.Job) { ofJob(was, is) })
	return c
}

func (c *Changes) slice(name string) {
	if name == "" {
		return
	}
	c.slices[name] = true
	for _, doc := range []*state.Document{c.saved, c.doc} { // a packed task is on a slice of its own
		if s := doc.Slices[name]; s != nil && s.Spec.On != "" {
			c.slices[s.Spec.On] = true
		}
	}
}

func (c *Changes) job(j *state.Job) {
	if j == nil {
		return
	}
	for _, names := range [][]string{j.Slices, j.Staged} {
		for _, name := range names {
			c.slice(name)
		}
	}
	for i := range j.Attempts {
		for _, name := range j.Attempts[i].Slices {
			c.slice(name)
		}
		for k := range j.Attempts[i].Tasks {
			c.slice(j.Attempts[i].Tasks[k].Slice)
		}
	}
}

// Concern reports whether what is recorded of the slice of an action, of its owner, or of a job that has to do with the
// slice, is not saved as it is now.
func (c *Changes) Concern(a *plan.Action) bool {
	return c.all || c.slices[a.Slice.Name] || c.saved.Jobs[a.Addr] != c.doc.Jobs[a.Addr]
}

// Same reports whether two plans ask for the same with two actions.
func Same(a, b *plan.Action) bool {
	return a.Verb == b.Verb && a.Addr == b.Addr && *a.Slice == *b.Slice && a.Object == b.Object && reflect.DeepEqual(a.Assignment, b.Assignment)
}
