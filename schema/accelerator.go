package schema

import (
	"slices"
	"strings"
)

// Accelerator is one of the alternatives that a job may run on, as files write it: the
// canonical type of a TPU, such as "v5litepod-16". "" is none.
type Accelerator string

// TPU is the type of the TPU, "" where it is none.
func (a Accelerator) TPU() string { return string(a) }

// Accelerator is what resources name, of several the first; "" for machines without any.
func (r *Resources) Accelerator() Accelerator { return Accelerator(r.TPU) }

// Alternatives are what a job may run on, in order of preference; one where no list is
// declared, "" for machines without any.
func (r *Resources) Alternatives() []Accelerator {
	if len(r.Accelerators) > 0 {
		return r.Accelerators
	}
	return []Accelerator{r.Accelerator()}
}

// As is a job as it is when it runs on one of its alternatives; a job that declares none
// is returned as it is.
func (j *Job) As(a Accelerator) *Job {
	if len(j.Resources.Accelerators) == 0 || j.Resources.Accelerator() == a {
		return j
	}
	as := *j
	as.Resources.TPU = a.TPU()
	return &as
}

// JoinAccelerators writes alternatives for people: "v5litepod-16, else v4-8".
func JoinAccelerators(all []Accelerator) string {
	texts := make([]string, 0, len(all))
	for _, a := range all {
		texts = append(texts, string(a))
	}
	return strings.Join(texts, ", else ")
}

// Accelerator is that of a slice, "" for machines without any.
func (s *SliceSpec) Accelerator() Accelerator { return Accelerator(s.TPU) }

// IsAlternative reports whether resources may be had on an accelerator.
func (r *Resources) IsAlternative(a Accelerator) bool { return slices.Contains(r.Alternatives(), a) }
