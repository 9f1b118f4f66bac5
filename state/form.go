package state

import (
	"slices"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/fray-ml/fray/schema"
)

// A document is written as its types say, but for what would be written many
// times over. The forms below embed a type and hide such fields behind their own:
//
//   - a spec is a JSON Merge Patch of one in "common" that it is "like", by
//     number; the spec of a job or slice lacks its address or name, which is
//     the key beside it;
//   - a job has a spec only if it is not the desired one of its address;
//   - an attempt has slices only if they are not the job's;
//   - a task has a slice only if it is not that of the task before, or for
//     the first task not the attempt's first.
//
// What is written in full is read as well, which is all of version 1. So
//
//	jq '.common.jobs as $c | .desired.jobs[] | if has("like") then $c[.like] * . else . end'
//
// shows what is desired.

// Names of the parts that are written in another form.
const (
	partCommon  = "common"
	partDesired = "desired"
	partSlices  = "slices"
	partJobs    = "jobs"
)

// headForm is a document without its long parts.
type headForm struct {
	*Document

	Desired nothing `json:"desired,omitzero"`
	Slices  nothing `json:"slices,omitzero"`
	Jobs    nothing `json:"jobs,omitzero"`
}

// desiredForm is what is desired without the jobs.
type desiredForm struct {
	*schema.Desired

	Jobs nothing `json:"jobs,omitzero"`
}

type nothing struct{}

type sliceForm struct {
	*Slice

	Spec *specForm[schema.SliceSpec] `json:"spec,omitzero"`
	// Doomed is what documents had before causes were typed: a text.
	Doomed given[string] `json:"doomed,omitzero"`
}

type jobForm struct {
	*Job

	Spec     *specForm[schema.Job] `json:"spec,omitzero"`
	Attempts []attemptForm         `json:"attempts"`
}

type attemptForm struct {
	*Attempt

	Slices given[[]string] `json:"slices,omitzero"`
	Tasks  []taskForm      `json:"tasks,omitempty"`
}

type taskForm struct {
	*Task

	Slice given[string] `json:"slice,omitzero"`
}

// given is a value that may be left out, which is not the same as null.
type given[T any] struct {
	is    bool
	value T
}

// IsZero reports whether the value is left out.
func (g given[T]) IsZero() bool { return !g.is }

// MarshalJSONTo writes the value.
func (g *given[T]) MarshalJSONTo(enc *jsontext.Encoder) error {
	return jsonv2.MarshalEncode(enc, &g.value)
}

// UnmarshalJSONFrom reads the value.
func (g *given[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	g.is = true
	return jsonv2.UnmarshalDecode(dec, &g.value)
}

// specForm is a spec and what it takes to write or to read it.
type specForm[T any] struct {
	common *common[T]
	spec   *T // nil until it is read
	like   int
	preset func(*T)
}

// MarshalJSONTo writes the spec.
func (f *specForm[T]) MarshalJSONTo(enc *jsontext.Encoder) error {
	return f.common.write(enc, f.spec, f.like, f.preset)
}

// UnmarshalJSONFrom reads the spec.
func (f *specForm[T]) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	if f.spec == nil {
		f.spec = new(T)
	}
	return f.common.read(raw, f.spec, f.preset, dec.Options())
}

// attemptForms leaves out what attempts repeat.
func attemptForms(j *Job) []attemptForm {
	if j.Attempts == nil {
		return nil
	}
	forms := make([]attemptForm, len(j.Attempts))
	for i := range forms {
		a := &j.Attempts[i]
		forms[i].Attempt = a
		if !slices.Equal(a.Slices, j.Slices) {
			forms[i].Slices = given[[]string]{is: true, value: a.Slices}
		}
		if len(a.Tasks) > 0 {
			forms[i].Tasks = taskForms(a)
		}
	}
	return forms
}

func taskForms(a *Attempt) []taskForm {
	forms := make([]taskForm, len(a.Tasks))
	before := firstSlice(a)
	for i := range forms {
		t := &a.Tasks[i]
		forms[i].Task = t
		if t.Slice != before {
			forms[i].Slice = given[string]{is: true, value: t.Slice}
		}
		before = t.Slice
	}
	return forms
}

// attempts puts back what attemptForms left out.
func (f *jobForm) attempts() []Attempt {
	if f.Attempts == nil {
		return nil
	}
	attempts := make([]Attempt, len(f.Attempts))
	for i := range attempts {
		form, a := &f.Attempts[i], &attempts[i]
		if form.Attempt != nil {
			*a = *form.Attempt
		}
		if a.Slices = slices.Clip(f.Slices); form.Slices.is {
			a.Slices = form.Slices.value
		}
		a.Tasks = form.tasks(firstSlice(a))
	}
	return attempts
}

func (f *attemptForm) tasks(before string) []Task {
	if f.Tasks == nil {
		return nil
	}
	tasks := make([]Task, len(f.Tasks))
	for i := range tasks {
		form, t := &f.Tasks[i], &tasks[i]
		if form.Task != nil {
			*t = *form.Task
		}
		if t.Slice = before; form.Slice.is {
			t.Slice = form.Slice.value
		}
		before = t.Slice
	}
	return tasks
}

func firstSlice(a *Attempt) string {
	if len(a.Slices) == 0 {
		return ""
	}
	return a.Slices[0]
}
