package web

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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

	before atomic.Pointer[index] // of an earlier frame, from which much is taken over; nil: there is none
	once   sync.Once
	index  index
	built  atomic.Pointer[index] // that index, once it is there
	took   atomic.Int64          // nanoseconds that index and sums took
	summed sync.Once
	sum    Overview
	listed sync.Once
	slices []SliceRow
	zones  []ZoneRow
	faced  sync.Once
	facets Facets
}

// index finds jobs and slices for answers.
type index struct {
	snap    *Snapshot
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
	row      *JobRow // shared with later frames: it does not change
	at       int     // in index.jobs
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
	next.before.Store(cmp.Or(old.built.Load(), old.before.Load()))
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
	f.once.Do(func() {
		began := time.Now()
		f.index = buildIndex(f.snap, f.before.Load())
		f.built.Store(&f.index)
		f.before.Store(nil)
		f.took.Add(int64(time.Since(began)))
	})
	return &f.index
}

// buildIndex makes the index of a snapshot, from that of an earlier one where most is the same.
func buildIndex(snap *Snapshot, before *index) index {
	doc := snap.Doc
	x := index{
		snap:    snap,
		pending: map[schema.Address]*plan.Pending{},
		holders: make(map[string]*jobEntry, len(doc.Slices)),
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
	if before == nil || !x.follow(before) {
		before = nil
		x.collect()
		x.grow()
	}
	for i, e := range x.jobs {
		e.at = i
		if !e.past {
			for _, name := range e.job.Slices {
				x.holders[name] = e
			}
			for _, name := range e.job.Staged {
				x.holders[name] = e
			}
		}
		if before != nil && x.sameRow(before, before.jobs[i], e) {
			e.row = before.jobs[i].row
			continue
		}
		row := x.rowOf(snap, e)
		e.row = &row
	}
	return x
}

// collect finds the jobs, in no order.
func (x *index) collect() {
	doc := x.snap.Doc
	x.byID = make(map[string]*jobEntry, len(doc.Jobs)+len(doc.Past))
	for addr, job := range doc.Jobs {
		x.byID[job.ID] = &jobEntry{addr: addr, job: job}
	}
	for id, job := range doc.Past {
		if x.byID[id] == nil && job.Spec != nil {
			x.byID[id] = &jobEntry{addr: job.Spec.Addr, job: job, past: true}
		}
	}
}

// follow takes the order of the jobs over from an earlier index. It reports false where that has
// other jobs.
func (x *index) follow(before *index) bool {
	doc, was := x.snap.Doc, before.snap.Doc
	if len(doc.Jobs) != len(was.Jobs) || len(doc.Past) != len(was.Past) {
		return false
	}
	entries := make([]jobEntry, len(before.jobs))
	x.jobs = make([]*jobEntry, len(before.jobs))
	x.byID = make(map[string]*jobEntry, len(before.jobs))
	for i, old := range before.jobs {
		job := doc.Jobs[old.addr]
		if old.past {
			job = doc.Past[old.job.ID]
		}
		if job == nil || job.ID != old.job.ID || parentOf(job) != parentOf(old.job) {
			x.jobs, x.byID = nil, nil
			return false
		}
		e := &entries[i]
		*e = jobEntry{addr: old.addr, job: job, past: old.past, depth: old.depth}
		if old.parent != nil {
			e.parent = x.jobs[old.parent.at]
			e.parent.children = append(e.parent.children, e)
		}
		x.jobs[i], x.byID[job.ID] = e, e
	}
	return true
}

func parentOf(j *state.Job) string {
	if j.Launch == nil {
		return ""
	}
	return j.Launch.Parent
}

// sameRow reports whether a job's row is that of an earlier index.
func (x *index) sameRow(before *index, old, e *jobEntry) bool {
	if e.job != old.job {
		return false
	}
	for _, name := range e.job.Slices {
		if x.snap.Doc.Slices[name] != before.snap.Doc.Slices[name] {
			return false
		}
	}
	p, q := x.pending[e.addr], before.pending[e.addr]
	if p == nil || q == nil {
		return p == q
	}
	return p.Blocked == q.Blocked && p.Kind == q.Kind && slices.Equal(p.Reasons, q.Reasons)
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
