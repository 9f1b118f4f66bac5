package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
)

// How many rows are shown where nothing else is asked for.
const (
	defaultRows = 200 // of jobs; a stack of more is folded
	groupRows   = 10  // of each summary of a folded stack
	urgentRows  = 20  // of the jobs of a folded stack that need attention
	namedSlices = 20  // that one line names
	noticeLines = 20  // of each kind below the jobs
)

// matches are the jobs that a selection leaves. They are found when they are needed.
type matches struct {
	jobs  map[schema.Address]bool // nil: not looked for yet
	held  map[string]bool         // slices of these jobs, by name
	waits map[schema.Address]plan.WaitKind
}

// matched finds what the filter leaves.
func (v *View) matched() *matches {
	m := &v.found
	if m.jobs != nil {
		return m
	}
	m.jobs, m.held, m.waits = map[schema.Address]bool{}, map[string]bool{}, map[schema.Address]plan.WaitKind{}
	for i := range v.plan.Pending {
		p := &v.plan.Pending[i]
		if kind, known := m.waits[p.Addr]; known {
			m.waits[p.Addr] = plan.Chief(kind, p.Kind)
		} else {
			m.waits[p.Addr] = p.Kind
		}
	}
	for addr, j := range v.Doc.Jobs {
		if !v.meets(addr, j) {
			continue
		}
		m.jobs[addr] = true
		for _, name := range j.Slices {
			m.held[name] = true
		}
	}
	return m
}

func (v *View) meets(addr schema.Address, j *state.Job) bool {
	for i := range v.Select.Terms {
		t := &v.Select.Terms[i]
		if !t.holds(v.valuesOf(t.Field, addr, j)) {
			return false
		}
	}
	return true
}

// valuesOf are what a job has in a field.
func (v *View) valuesOf(f Field, addr schema.Address, j *state.Job) []string {
	if !f.ofSlices() {
		return []string{v.valueOf(f, addr, j)}
	}
	var all []string
	for _, name := range j.Slices {
		if s := v.Doc.Slices[name]; s != nil {
			if value := valueOfSlice(f, s); !slices.Contains(all, value) {
				all = append(all, value)
			}
		}
	}
	if all == nil {
		all = []string{v.valueOf(f, addr, j)}
	}
	return all
}

// valueOf is what a job has in a field without regard to its slices, "" for none.
func (v *View) valueOf(f Field, addr schema.Address, j *state.Job) string {
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
		return string(v.matched().waits[addr])
	case FieldReason:
		return cmp.Or(strings.Join(v.pending[addr], "; "), j.Reason)
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
		return typeOf(&s.Spec)
	case FieldName, FieldNamespace, FieldState, FieldBand, FieldUser, FieldWaits, FieldReason:
	}
	return ""
}

// typeOf names what a slice is made of.
func typeOf(s *schema.SliceSpec) string {
	return cmp.Or(s.TPU, s.GPU.String(), s.MachineType, fmt.Sprintf("%g CPU", s.CPU))
}

// shownSlice reports whether a slice is shown: with the job that holds it, or that it was made for.
func (v *View) shownSlice(name string, s *state.Slice) bool {
	return v.shown(s.Spec.Owner) || len(v.Select.Terms) > 0 && v.matched().held[name]
}

// shownJobs are the addresses of the jobs that are shown, in order.
func (v *View) shownJobs() []schema.Address {
	return slices.DeleteFunc(stack.SortedJobs(v.Doc), func(addr schema.Address) bool { return !v.shown(addr) })
}

// narrowed is the view of fewer jobs, grouped by what is given.
func (v *View) narrowed(terms []Term, by []Field) *View {
	c := *v
	c.Select.Terms = slices.Concat(v.Select.Terms, terms)
	c.Select.By = by
	c.found = matches{}
	return &c
}

// page is the part of n rows that is shown, and how many come after it.
func (s *Selection) page(n int) (from, to, more int) {
	if s.Limit == 0 {
		return 0, n, 0
	}
	from = min(n, (max(1, s.Page)-1)*s.Limit)
	to = min(n, from+s.Limit)
	return from, to, n - to
}
