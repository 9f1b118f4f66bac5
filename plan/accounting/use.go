package accounting

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan/change"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// isPaid reports whether a recorded slice has machines of its own: it has been listed, and
// waits in no queue. A packed slice is a part of another one.
func isPaid(s *state.Slice) bool { return s.Listed && !s.Queued && s.Spec.On == "" }

// isPriced reports whether slices of a provider cost money that can be estimated: those of
// this machine and of a cluster that exists already have no price.
func isPriced(p schema.ProviderName) bool { return p == schema.ProviderGCP }

// holder is the job that holds a slice, nil if none does. Nearly always that is its owner.
func (m *meter) holder(s *state.Slice) *state.Job {
	if j := m.Doc.Jobs[s.Spec.Owner]; j != nil && slices.Contains(j.Slices, s.Spec.Name) {
		return j
	}
	if m.holders == nil {
		m.holders = holdersOf(m.Doc)
	}
	return m.holders[s.Spec.Name]
}

// holdersOf are the jobs that hold slices, by slice.
func holdersOf(doc *state.Document) map[string]*state.Job {
	holders := make(map[string]*state.Job, len(doc.Slices))
	for _, j := range doc.Jobs {
		for _, name := range j.Slices {
			holders[name] = j
		}
		for _, name := range j.Staged {
			if holders[name] == nil {
				holders[name] = j
			}
		}
	}
	return holders
}

func declaredNamespaces(doc *state.Document) map[string]bool {
	declared := make(map[string]bool, len(doc.Desired.Namespaces))
	for i := range doc.Desired.Namespaces {
		declared[doc.Desired.Namespaces[i].Addr.Scoped()] = true
	}
	return declared
}

// intervalOf is what a slice is used for, without a beginning.
func (m *meter) intervalOf(s *state.Slice) state.UsageInterval {
	i := state.UsageInterval{Slice: s.Spec.Name, UsageShape: ShapeOf(&s.Spec)}
	if isPriced(s.Spec.Provider) {
		estimate := accelerators.EstimateOf(&s.Spec, offersOf(m.Doc, s.Spec.Provider)).PerHour
		i.PerHour = state.Dollars{Low: estimate.Low, High: estimate.High}
	}
	j := m.holder(s)
	i.Use, i.UsageOwner = m.useOf(s, j), m.ownerOf(s, j)
	if last := lastOn(j, s.Spec.Name); last != nil && last.Outcome == "" {
		i.Attempt = last.Number
	}
	return i
}

// lastOn is the last attempt of a job if that has a slice, else nil.
func lastOn(j *state.Job, slice string) *state.Attempt {
	if j == nil || j.Last() == nil || !slices.Contains(j.Last().Slices, slice) {
		return nil
	}
	return j.Last()
}

func (m *meter) useOf(s *state.Slice, j *state.Job) state.SliceUse {
	last := lastOn(j, s.Spec.Name)
	goesOn := last != nil && last.Outcome == ""
	switch {
	case goesOn && last.StopGeneration != 0:
		return state.UseStopping
	case !s.Terminating.IsZero():
		return state.UseDeleting
	case goesOn && !last.ReadyAt.IsZero():
		return state.UseRunning
	case goesOn, s.UpAt.IsZero():
		return state.UseStarting
	case j == nil:
		return state.UseIdle
	}
	return state.UseWaiting
}

// ownerOf is who uses a slice. Jobs of a namespace that is declared nowhere have that for
// their actors alone, and count as jobs without one.
func (m *meter) ownerOf(s *state.Slice, j *state.Job) state.UsageOwner {
	if j == nil {
		owner := state.UsageOwner{Owner: s.Spec.Owner}
		if r := m.Doc.Resources[s.Spec.Owner].Reservation; r != nil {
			owner.Namespace = r.Namespace
		}
		if was := m.was.Open[s.Spec.Name]; was != nil && was.Owner == s.Spec.Owner { // its job is gone: it was that one's until now
			owner.Namespace, owner.User = was.Namespace, was.User
		}
		return owner
	}
	owner := state.UsageOwner{Owner: j.Spec.Addr, JobID: j.ID, User: j.Spec.User}
	if m.declared[j.Spec.Namespace] || j.Launch != nil {
		owner.Namespace = j.Spec.Namespace
	}
	if j.Launch != nil && owner.User == "" {
		owner.User = j.Launch.By
	}
	return owner
}

// ShapeOf is what is counted of a slice.
func ShapeOf(spec *schema.SliceSpec) state.UsageShape {
	shape := state.UsageShape{
		Provider: spec.Provider, Zone: spec.Zone, Type: change.PaidType(spec), Preemptible: spec.Preemptible, Hosts: max(1, spec.Hosts),
	}
	shape.GPUs = spec.GPU.Count * shape.Hosts
	shape.Chips = accelerators.Chips(spec) - shape.GPUs
	if spec.TPU == "" {
		shape.Cores = coresOf(spec) * float64(shape.Hosts)
	}
	return shape
}

// coresOf is how many cores a host has: those that are asked for, or of a machine type those
// that its name ends in.
func coresOf(spec *schema.SliceSpec) float64 {
	if spec.CPU > 0 || spec.MachineType == "" {
		return spec.CPU
	}
	n, err := strconv.Atoi(spec.MachineType[strings.LastIndexByte(spec.MachineType, '-')+1:])
	if err != nil {
		return 0
	}
	return float64(n)
}

func offersOf(doc *state.Document, name schema.ProviderName) []schema.Market {
	for i := range doc.Desired.Providers {
		if p := &doc.Desired.Providers[i]; p.Name == name {
			return p.Offers
		}
	}
	return nil
}
