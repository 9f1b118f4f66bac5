package schema

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Accelerator is one of the alternatives that a job may run on, as files write it: the
// canonical type of a TPU, such as "v5litepod-16", or the GPUs of a machine, as "h100:8".
// "" is none.
type Accelerator string

// TPU is the type of the TPU, "" where it is none.
func (a Accelerator) TPU() string {
	if strings.Contains(string(a), ":") {
		return ""
	}
	return string(a)
}

// GPU are the GPUs of one machine, none where it is a TPU.
func (a Accelerator) GPU() GPU {
	kind, text, found := strings.Cut(string(a), ":")
	count, err := strconv.Atoi(text)
	if !found || err != nil {
		return GPU{}
	}
	return GPU{Type: kind, Count: count}
}

func acceleratorOf(tpu string, gpu GPU) Accelerator { return Accelerator(cmp.Or(tpu, gpu.Kind())) }

// Accelerator is what resources name, of several the first; "" for machines without any.
func (r *Resources) Accelerator() Accelerator { return acceleratorOf(r.TPU, r.GPU) }

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
	r := &j.Resources
	if len(r.Accelerators) == 0 || r.Accelerator() == a && (r.TPU != "" || r.Cloud.RuntimeVersion == "") {
		return j
	}
	as := *j
	as.Resources.TPU, as.Resources.GPU = a.TPU(), a.GPU()
	if a.TPU() == "" { // a machine's software is its image
		as.Resources.Cloud.RuntimeVersion = ""
	}
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
func (s *SliceSpec) Accelerator() Accelerator { return acceleratorOf(s.TPU, s.GPU) }

// IsAlternative reports whether resources may be had on an accelerator.
func (r *Resources) IsAlternative(a Accelerator) bool { return slices.Contains(r.Alternatives(), a) }
