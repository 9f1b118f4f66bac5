package incremental

import (
	"time"

	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// listing is a list of a provider, and which of its slices are those of steady jobs. The next list
// has nearly always the same slices in the same order: then it is compared with this one, row by
// row, and no slice is looked up by its name.
type listing struct {
	provider schema.ProviderName
	slices   []schema.SliceStatus
	steady   []*observedSlice // by row; nil: another slice
	held     int              // how many of them are steady
}

// hold takes in that a row is that of a slice of a steady job.
func (l *listing) hold(s *observedSlice, row int) {
	l.steady[row], s.list, s.row = s, l, row
	l.held++
}

// drop takes in that a slice is no steady job's any more, or not listed.
func (l *listing) drop(s *observedSlice) {
	l.steady[s.row], s.list = nil, nil
	l.held--
}

// last is how a slice was listed last, or when its job was found to be steady.
func (s *observedSlice) last() *schema.SliceStatus {
	if s.status != nil {
		return s.status
	}
	return &s.list.slices[s.row]
}

// listedSlice is a slice as a provider lists it.
type listedSlice struct {
	provider schema.ProviderName
	status   *schema.SliceStatus
}

// lists are what is found in the lists of one look.
type lists struct {
	*focus

	stack   string
	listed  []listedSlice    // that are no steady job's
	changed []*observedSlice // of steady jobs, that are listed otherwise or not at all
}

// list takes in how slices are listed, and returns those that are no steady job's and those of
// steady jobs of which the lists differ from what they were. It reports false if one is listed twice.
func (f *focus) list(in *snapshot.Input) (others []listedSlice, changed []*observedSlice, once bool) {
	found := lists{focus: f, stack: in.Doc.Stack()}
	for provider, l := range f.lists {
		if _, there := in.Obs.Inventories[provider]; !there {
			found.end(l)
			delete(f.lists, provider)
		}
	}
	held := 0
	for provider, inv := range in.Obs.Inventories {
		l := f.lists[provider]
		if l == nil {
			l = &listing{provider: provider}
		}
		next, once := found.follow(l, inv.Slices)
		if !once {
			return nil, nil, false
		}
		if next == nil {
			if next, once = found.begin(l, inv.Slices); !once {
				return nil, nil, false
			}
		}
		f.lists[provider] = next
		held += next.held
	}
	if held < len(f.steady) {
		for _, s := range f.steady {
			if s.list == nil {
				found.changed = append(found.changed, s)
			}
		}
	}
	return found.listed, found.changed, true
}

// end takes in that a provider has not been listed.
func (f *lists) end(l *listing) {
	for row, s := range l.steady {
		if s != nil {
			s.status = &l.slices[row]
			l.drop(s)
		}
	}
}

// follow takes in a list after another one of the same slices, in the same order. It is nil if
// the slices are others, and reports false if one is listed twice.
func (f *lists) follow(l *listing, is []schema.SliceStatus) (next *listing, once bool) {
	if len(is) != len(l.slices) {
		return nil, true
	}
	same := state.SameSlice(l.slices, is)
	listed, changed := len(f.listed), len(f.changed)
	var fresh []*observedSlice
	for row := range is {
		st, s := &is[row], l.steady[row]
		if !same && !sameStatus(&l.slices[row], st) {
			if l.slices[row].Spec.Name != st.Spec.Name || l.slices[row].Spec.Stack != st.Spec.Stack {
				f.listed, f.changed = f.listed[:listed], f.changed[:changed]
				return nil, true
			}
			if s != nil {
				f.changed = append(f.changed, s)
			}
		}
		if s != nil || st.Spec.Stack != f.stack {
			continue
		}
		switch s = f.steady[st.Spec.Name]; {
		case s == nil:
			f.addOther(l.provider, st)
			continue
		case s.list != nil:
			return nil, false
		case !sameStatus(s.status, st):
			f.changed = append(f.changed, s)
		}
		l.hold(s, row)
		fresh = append(fresh, s)
	}
	for _, s := range fresh {
		s.status = nil // the list has it
	}
	l.slices = is
	return l, true
}

// begin takes in a list of other slices than those of the last one, or in another order.
func (f *lists) begin(l *listing, is []schema.SliceStatus) (next *listing, once bool) {
	next = &listing{provider: l.provider, slices: is, steady: make([]*observedSlice, len(is))}
	for row := range is {
		st := &is[row]
		if st.Spec.Stack != f.stack {
			continue
		}
		s := f.steady[st.Spec.Name]
		if s == nil {
			f.addOther(l.provider, st)
			continue
		}
		if s.listed == f.look || s.list != nil && s.list != l {
			return nil, false
		}
		s.listed = f.look
		if !sameStatus(s.last(), st) {
			f.changed = append(f.changed, s)
		}
		next.steady[row] = s
	}
	f.end(l)
	for row, s := range next.steady {
		if s != nil {
			next.hold(s, row)
			s.status = nil
		}
	}
	return next, true
}

func (f *lists) addOther(provider schema.ProviderName, st *schema.SliceStatus) {
	f.others[st.Spec.Name] = true
	f.listed = append(f.listed, listedSlice{provider, st})
}

// listedOf is how slices are listed.
func (f *focus) listedOf(seen observation) []listedSlice {
	var found []listedSlice
	for k := range seen {
		if l := seen[k].list; l != nil {
			found = append(found, listedSlice{l.provider, &l.slices[seen[k].row]})
		}
	}
	return found
}

// heardHosts counts slices by when that of their hosts was heard which has been silent for longest.
// Many are heard at one time: an observer looks a few times a second.
type heardHosts map[time.Duration]int

// add counts a slice n times.
func (h heardHosts) add(heard time.Duration, n int) {
	if heard == never {
		return
	}
	if h[heard] += n; h[heard] == 0 {
		delete(h, heard)
	}
}

// first is the earliest of the times.
func (h heardHosts) first() time.Duration {
	first := never
	for heard := range h {
		first = min(first, heard)
	}
	return first
}

// silent are the slices of steady jobs of which a host has been silent for too long.
func (f *focus) silent(n *near) (found []*observedSlice) {
	if first := f.heard.first(); first == never || n.untilSilent(first) > 0 {
		return nil
	}
	for _, s := range f.steady {
		if n.untilSilent(s.earliest) <= 0 {
			found = append(found, s)
		}
	}
	return found
}

// wakeUnheard has the next plan be made once a host that was heard then has been silent for too long.
func (n *near) wakeUnheard(heard time.Duration) {
	if heard != never {
		n.wakeAt(n.in.Now.Add(n.untilSilent(heard)))
	}
}

// Unlisted are the recorded slices that no provider lists, as of the last plan, and perhaps others
// that are not recorded. It reports false where that is not known of doc.
func (p *Planner) Unlisted(doc *state.Document) (names map[string]bool, known bool) {
	f := &p.focus
	if !f.on || !f.partial || doc != p.last {
		return nil, false
	}
	names = map[string]bool{}
	for name := range f.others {
		if !f.there[name] {
			names[name] = true
		}
	}
	return names, true
}
