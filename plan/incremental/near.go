package incremental

import (
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// near is the part of an input on which the next plan is made.
type near struct {
	in     snapshot.Input
	whole  *state.Document
	dirty  []int // jobs to decide about, in order
	beside besides

	missing bool // see isMissing; nothing else is known then

	// Of what is not in the part:
	listed capacity.Demand // slices that are listed
	wake   time.Time       // when time alone changes something

	edited edited // by the plan
}

// edited are the jobs and slices that a plan has changed.
type edited struct {
	jobs   []schema.Address
	slices []string
}

// untilSilent is how long a host that was heard last at a time may still be silent.
func (n *near) untilSilent(heard time.Duration) time.Duration {
	return snapshot.HostTimeout - max(0, n.in.Obs.Monitored-heard)
}

func (n *near) wakeAt(t time.Time) {
	if n.wake.IsZero() || t.Before(n.wake) {
		n.wake = t
	}
}

// isMissing reports whether lists leave slices out that are to stay: how many do so counts
// among all.
func isMissing(d *snapshot.Evidence) bool {
	return slices.ContainsFunc(d.Plan.Doubts, func(doubt plan.Doubt) bool {
		s := d.Doc.Slices[doubt.Slice.Name]
		return doubt.Kind == plan.DoubtAbsent && s.Terminating.IsZero()
	})
}

// isMissing reports the same of the slices that are listed, before a part is made.
func (f *focus) isMissing(in *snapshot.Input, others []listedSlice) bool {
	for _, s := range f.steady {
		if s.list == nil {
			return true
		}
	}
	there := make(map[string]bool, len(others))
	for _, l := range others {
		there[l.status.Spec.Name] = true
	}
	for name := range f.others {
		if s := in.Doc.Slices[name]; s != nil && s.Listed && s.Terminating.IsZero() && s.Spec.On == "" && !there[name] {
			return true
		}
	}
	return false
}

// widened is the whole document with what became of the part. It reports false if a slice
// was made under the name of one that is not in the part.
func (n *near) widened(next *state.Document) (*state.Document, bool) {
	n.edited = edited{}
	if next == n.in.Doc {
		return n.whole, true
	}
	for name := range next.Slices {
		if n.in.Doc.Slices[name] == nil && n.whole.Slices[name] != nil {
			return nil, false
		}
	}
	whole := *next
	whole.Jobs, n.edited.jobs = carried(n.whole.Jobs, n.in.Doc.Jobs, next.Jobs)
	whole.Slices, n.edited.slices = carried(n.whole.Slices, n.in.Doc.Slices, next.Slices)
	return &whole, true
}

// carried is a whole with the changes between two states of a part of it, and what they are of.
func carried[K comparable, V any](whole, was, is map[K]*V) (out map[K]*V, changed []K) {
	state.Differences(was, is, func(key K, _, _ *V) { changed = append(changed, key) })
	if len(changed) == 0 {
		return whole, nil
	}
	out = maps.Clone(whole)
	if out == nil {
		out = map[K]*V{}
	}
	for _, key := range changed {
		if v, left := is[key]; left {
			out[key] = v
		} else {
			delete(out, key)
		}
	}
	return out, changed
}

// recordsOf is the part of a document that has to do with jobs: with what they depend on,
// with those that wait for them, and with all slices that are not a steady job's.
func (p *Planner) recordsOf(doc *state.Document, obs *plan.Observed, n *near, some []string) *state.Document {
	part := *doc
	part.Jobs, part.Slices = make(map[schema.Address]*state.Job, 2*len(n.dirty)+len(n.beside.jobs)), make(map[string]*state.Slice, len(p.focus.others)+len(some))
	added := make([]bool, len(p.desired.Jobs)) // addresses take long to look up
	add := func(i int) {
		if added[i] {
			return
		}
		added[i] = true
		addr := p.desired.Jobs[i].Addr
		part.Jobs[addr] = doc.Jobs[addr]
	}
	addNamed := func(addr schema.Address) {
		if k, single := p.index[addr]; single {
			add(k)
			return
		}
		for _, k := range p.families[addr] {
			add(k)
		}
	}
	addWithNeeded := func(i int) {
		add(i)
		j := doc.Jobs[p.desired.Jobs[i].Addr]
		if !j.YieldsTo.IsZero() {
			addNamed(j.YieldsTo)
		}
		for ; j != nil && j.Launch != nil && j.Launch.Parent != ""; j = doc.Jobs[p.desired.Jobs[p.byID[j.Launch.Parent].index].Addr] {
			parent, known := p.byID[j.Launch.Parent]
			if !known {
				break
			}
			add(parent.index)
		}
		for _, on := range p.desired.Jobs[i].DependsOn {
			addNamed(on)
		}
		for _, on := range p.desired.Jobs[i].Uses {
			addNamed(on)
		}
	}
	addOwner := func(addr schema.Address) {
		if i, declared := p.index[addr]; declared {
			add(i)
		}
	}
	for _, i := range n.dirty {
		addWithNeeded(i)
		if len(p.dependents) == 0 {
			continue
		}
		for _, k := range p.waitingFor(p.desired.Jobs[i].Addr) {
			addWithNeeded(k)
		}
	}
	for i := range n.beside.jobs {
		add(i)
	}
	for _, name := range some {
		part.Slices[name] = doc.Slices[name]
	}
	for name := range p.focus.others {
		if s := doc.Slices[name]; s != nil {
			part.Slices[name] = s
			addOwner(s.Spec.Owner)
		}
		if run := obs.Assignments[name].Run; run != nil {
			if j, known := p.byID[run.JobID]; known {
				add(j.index)
			}
		}
	}
	for _, inv := range obs.Inventories {
		for i := range inv.Slices {
			addOwner(inv.Slices[i].Spec.Owner)
		}
	}
	return &part
}
