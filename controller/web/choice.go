package web

import (
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Choice is which of its alternatives a job was last given slices of.
type Choice struct {
	state.Choice
	Text string `json:"text"` // the reason for people
}

func choiceOf(j *state.Job) *Choice {
	c := j.Chosen()
	if c == nil {
		return nil
	}
	return &Choice{Choice: *c, Text: c.Reason.Text()}
}

// shapeOfJob names what a slice of a job is made of: of several alternatives the chosen one,
// or all while none is.
func shapeOfJob(j *state.Job) string {
	r := &j.Spec.Resources
	if c := j.Chosen(); c != nil {
		r = &j.Spec.As(c.Accelerator).Resources
	} else if len(r.Accelerators) > 0 {
		return schema.JoinAccelerators(r.Accelerators)
	}
	return shapeOf(&schema.SliceSpec{TPU: r.TPU, GPU: r.GPU, MachineType: r.MachineType, CPU: r.CPU, Memory: r.Memory})
}
