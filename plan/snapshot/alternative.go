package snapshot

import (
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// AcceleratorOf is which of its alternatives a job has by a document: that of its slices,
// or the first while it has none.
func AcceleratorOf(doc *state.Document, want *schema.Job) schema.Accelerator {
	if doc == nil || len(want.Resources.Accelerators) == 0 {
		return want.Resources.Accelerator()
	}
	return AcceleratorIn(doc, want, doc.Jobs[want.Addr])
}

// AcceleratorIn is AcceleratorOf of a job whose record is given.
func AcceleratorIn(doc *state.Document, want *schema.Job, j *state.Job) schema.Accelerator {
	r := &want.Resources
	if len(r.Accelerators) > 0 && j != nil {
		if held := HeldAccelerator(doc, j); held != "" && slices.Contains(r.Accelerators, held) {
			return held
		}
	}
	return r.Accelerator()
}

// InUse is which accelerator a job has, or had last: "" of one without, and of one
// with alternatives that was given slices of none yet.
func InUse(doc *state.Document, j *state.Job) schema.Accelerator {
	switch held := HeldAccelerator(doc, j); {
	case held != "":
		return held
	case len(j.Spec.Resources.Accelerators) == 0:
		return j.Spec.Resources.Accelerator()
	case j.Choice != nil:
		return j.Choice.Accelerator
	}
	return ""
}

// HeldAccelerator is that of the slices that a job holds, "" where it holds none.
func HeldAccelerator(doc *state.Document, j *state.Job) schema.Accelerator {
	for _, name := range j.Slices {
		if s := doc.Slices[name]; s != nil {
			return s.Spec.Accelerator()
		}
	}
	return ""
}

// Running is a job as it is on the alternative that it has.
func (d *Draft) Running(want *schema.Job) *schema.Job { return want.As(AcceleratorOf(d.Next, want)) }
