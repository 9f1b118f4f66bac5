package selection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Matches are the jobs of a stack that a filter leaves.
type Matches struct {
	doc   *state.Document
	terms []Term
	jobs  map[schema.Address]bool // nil: without a filter all are
	held  map[string]bool         // slices of these jobs, by name
	waits map[schema.Address]plan.WaitKind
	// reasons are why jobs wait.
	reasons map[schema.Address][]string
}

// Match finds the jobs that meet all conditions.
func Match(doc *state.Document, pending []plan.Pending, terms []Term) *Matches {
	m := &Matches{doc: doc, terms: terms, waits: map[schema.Address]plan.WaitKind{}, reasons: map[schema.Address][]string{}}
	for i := range pending {
		p := &pending[i]
		if kind, known := m.waits[p.Addr]; known {
			m.waits[p.Addr] = plan.Chief(kind, p.Kind)
		} else {
			m.waits[p.Addr] = p.Kind
		}
		m.reasons[p.Addr] = append(m.reasons[p.Addr], p.Reasons...)
	}
	if len(terms) == 0 {
		return m
	}
	m.jobs, m.held = map[schema.Address]bool{}, map[string]bool{}
	for addr, j := range doc.Jobs {
		if !m.meets(addr, j) {
			continue
		}
		m.jobs[addr] = true
		for _, name := range j.Slices {
			m.held[name] = true
		}
	}
	return m
}

// Filtered reports whether there are conditions at all.
func (m *Matches) Filtered() bool { return m.jobs != nil }

// Has reports whether a job meets the conditions.
func (m *Matches) Has(addr schema.Address) bool { return m.jobs == nil || m.jobs[addr] }

// Holds reports whether a job that meets them holds a slice.
func (m *Matches) Holds(slice string) bool { return m.held[slice] }

func (m *Matches) meets(addr schema.Address, j *state.Job) bool {
	for i := range m.terms {
		t := &m.terms[i]
		if !t.holds(m.valuesOf(t.Field, addr, j)) {
			return false
		}
	}
	return true
}

// valuesOf are what a job has in a field.
func (m *Matches) valuesOf(f Field, addr schema.Address, j *state.Job) []string {
	if !f.ofSlices() {
		return []string{m.valueOf(f, addr, j)}
	}
	var all []string
	for _, name := range j.Slices {
		if s := m.doc.Slices[name]; s != nil {
			if value := valueOfSlice(f, s); !slices.Contains(all, value) {
				all = append(all, value)
			}
		}
	}
	if all == nil {
		all = []string{m.valueOf(f, addr, j)}
	}
	return all
}

// valueOf is what a job has in a field without regard to its slices, "" for none.
func (m *Matches) valueOf(f Field, addr schema.Address, j *state.Job) string {
	spec := j.Spec
	if spec == nil {
		spec = &schema.Job{}
	}
	switch f {
	case FieldName:
		return addr.String()
	case FieldNamespace:
		return spec.Namespace
	case FieldState:
		return string(j.Status)
	case FieldBand:
		return string(cmp.Or(spec.Band, schema.BandInteractive))
	case FieldUser:
		return spec.User
	case FieldWaits:
		if j.Status.Ended() {
			return ""
		}
		return string(m.waits[addr])
	case FieldReason:
		return cmp.Or(strings.Join(m.reasons[addr], "; "), j.Reason)
	case FieldProvider:
		return string(spec.Resources.Provider)
	case FieldType:
		r := &spec.Resources
		return cmp.Or(r.TPU, r.GPU.String(), r.MachineType)
	case FieldZone: // it has none before it has slices
	}
	return ""
}

// valueOfSlice is what a slice has in a field of slices.
func valueOfSlice(f Field, s *state.Slice) string {
	switch f {
	case FieldZone:
		return s.Spec.Zone
	case FieldProvider:
		return string(s.Spec.Provider)
	case FieldType:
		return TypeOf(&s.Spec)
	case FieldName, FieldNamespace, FieldState, FieldBand, FieldUser, FieldWaits, FieldReason:
	}
	return ""
}

// TypeOf names what a slice is made of.
func TypeOf(s *schema.SliceSpec) string {
	return cmp.Or(s.TPU, s.GPU.String(), s.MachineType, fmt.Sprintf("%g CPU", s.CPU))
}
