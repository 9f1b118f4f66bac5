package web

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// frame is one snapshot as it is shown. What is made of it is made once, and
// only when a request needs it.
type frame struct {
	snap *Snapshot // never nil
	// version rises when there is something else to see than the time.
	version    uint64
	superseded chan struct{} // closed when there is another frame

	once   sync.Once
	index  index
	summed sync.Once
	sum    Overview
}

// index finds jobs and slices for answers.
type index struct {
	jobs    []*jobEntry // as a tree: children after their parents
	byID    map[string]*jobEntry
	pending map[schema.Address]*plan.Pending
	holders map[string]*jobEntry // of slices, by name
	listed  map[string]*schema.SliceStatus
}

// jobEntry is one job with its place in the tree.
type jobEntry struct {
	addr     schema.Address
	job      *state.Job
	past     bool // another one has its name now
	parent   *jobEntry
	children []*jobEntry
	depth    int
	row      JobRow
}

func newFrame(snap *Snapshot, version uint64) *frame {
	if snap == nil {
		snap = &Snapshot{}
	}
	if snap.Doc == nil {
		empty := *snap
		empty.Doc = &state.Document{}
		snap = &empty
	}
	return &frame{snap: snap, version: version, superseded: make(chan struct{})}
}

// advance makes a snapshot the one that is shown.
func (s *Server) advance(snap *Snapshot) {
	old := s.current.Load()
	if snap == nil || snap == old.snap {
		return
	}
	next := newFrame(snap, old.version)
	if differs(old.snap, next.snap) {
		next.version++
	}
	s.journal.note(old.snap, next.snap)
	s.used.Observe(next.snap.Hosts, next.snap.At)
	s.current.Store(next)
	close(old.superseded)
}

// differs reports whether two snapshots differ.
func differs(a, b *Snapshot) bool {
	if a.Doc != b.Doc || a.Leads != b.Leads || a.Lease.Epoch != b.Lease.Epoch || a.Wanted != b.Wanted && a.Wanted == nil {
		return true
	}
	return !maps.Equal(a.Unreachable, b.Unreachable) || !slices.EqualFunc(pendingOf(a), pendingOf(b), func(x, y plan.Pending) bool {
		return x.Addr == y.Addr && x.Kind == y.Kind && x.Blocked == y.Blocked && slices.Equal(x.Reasons, y.Reasons)
	})
}

func pendingOf(s *Snapshot) []plan.Pending {
	if s.Plan == nil {
		return nil
	}
	return s.Plan.Pending
}

// look is the frame's index.
func (f *frame) look() *index {
	f.once.Do(func() { f.index = buildIndex(f.snap) })
	return &f.index
}

func buildIndex(snap *Snapshot) index {
	doc := snap.Doc
	x := index{
		byID:    make(map[string]*jobEntry, len(doc.Jobs)+len(doc.Past)),
		pending: map[schema.Address]*plan.Pending{},
		holders: map[string]*jobEntry{},
		listed:  map[string]*schema.SliceStatus{},
	}
	waiting := pendingOf(snap)
	for i := range waiting {
		x.pending[waiting[i].Addr] = &waiting[i]
	}
	for _, inventory := range snap.Inventories {
		for i := range inventory.Slices {
			x.listed[inventory.Slices[i].Spec.Name] = &inventory.Slices[i]
		}
	}
	for addr, job := range doc.Jobs {
		e := &jobEntry{addr: addr, job: job}
		x.byID[job.ID] = e
		for _, name := range slices.Concat(job.Slices, job.Staged) {
			x.holders[name] = e
		}
	}
	for id, job := range doc.Past {
		if x.byID[id] == nil && job.Spec != nil {
			x.byID[id] = &jobEntry{addr: job.Spec.Addr, job: job, past: true}
		}
	}
	x.grow()
	for _, e := range x.jobs {
		e.row = x.rowOf(snap, e)
	}
	return x
}

// grow puts the jobs in order: by address, the past ones of an address after it,
// children after their parents.
func (x *index) grow() {
	all := slices.SortedFunc(maps.Values(x.byID), func(a, b *jobEntry) int {
		return cmp.Or(a.addr.Compare(b.addr), compareBool(a.past, b.past), strings.Compare(b.job.ID, a.job.ID))
	})
	var roots []*jobEntry
	for _, e := range all {
		if l := e.job.Launch; l != nil && l.Parent != "" && x.byID[l.Parent] != nil && !x.under(e, l.Parent) {
			e.parent = x.byID[l.Parent]
			e.parent.children = append(e.parent.children, e)
			continue
		}
		roots = append(roots, e)
	}
	x.jobs = make([]*jobEntry, 0, len(all))
	for _, e := range roots {
		x.add(e, 0)
	}
}

// under reports whether a job is an ancestor of one, or that one itself: only a
// damaged state says so, and a page must not run in circles over it.
func (x *index) under(e *jobEntry, id string) bool {
	for p := x.byID[id]; p != nil; p = p.parent {
		if p == e {
			return true
		}
	}
	return false
}

func (x *index) add(e *jobEntry, depth int) {
	e.depth = depth
	x.jobs = append(x.jobs, e)
	for _, child := range e.children {
		x.add(child, depth+1)
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// shapeOf names what a slice is made of: "v5litepod-16", "8 h100", "n2-standard-8", "4 CPU, 16 GiB".
func shapeOf(s *schema.SliceSpec) string {
	switch {
	case s.TPU != "":
		return s.TPU
	case s.GPU.Count > 0:
		return s.GPU.String()
	case s.MachineType != "":
		return s.MachineType
	case s.CPU == 0 && s.Memory == 0:
		return "a machine"
	case s.Memory == 0:
		return plain(s.CPU) + " CPU"
	}
	return plain(s.CPU) + " CPU, " + s.Memory.String()
}
