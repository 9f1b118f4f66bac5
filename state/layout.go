package state

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/fray-ml/fray/schema"
)

// layout is how a document is written: the entries of its maps in order, and
// what their specs are like.
type layout struct {
	specs    common[schema.Job]
	capacity common[schema.SliceSpec]

	desired []int // what the desired jobs are like
	jobs    []jobRow
	slices  []sliceRow
}

type jobRow struct {
	addr    schema.Address
	job     *Job
	desired *schema.Job // nil if its spec is another one
	like    int
}

type sliceRow struct {
	name  string
	slice *Slice
	like  int
}

func layoutOf(d *Document) (*layout, error) {
	l := &layout{}
	return l, together(
		func() error { return l.layOutJobs(d) },
		func() error { return l.layOutSlices(d) },
	)
}

func (l *layout) layOutJobs(d *Document) error {
	s, err := shapeOf[schema.Job]()
	if err != nil {
		return err
	}
	if err := l.sortJobs(d); err != nil {
		return err
	}
	if err := l.compareDesired(s); err != nil {
		return err
	}
	specs := newSharing[schema.Job](s)
	l.desired = make([]int, len(d.Desired.Jobs))
	for i := range l.desired {
		spec := &d.Desired.Jobs[i]
		l.desired[i] = specs.like(spec, spec.Addr.Base())
	}
	for i := range l.jobs {
		if r := &l.jobs[i]; r.desired == nil {
			r.like = specs.like(r.job.Spec, r.addr.Base())
		}
	}
	var numbers []int
	l.specs, numbers = specs.common(func(spec *schema.Job) { spec.Addr = schema.Address{} })
	for i := range l.desired {
		l.desired[i] = numbers[l.desired[i]]
	}
	for i := range l.jobs {
		if r := &l.jobs[i]; r.desired == nil {
			r.like = numbers[r.like]
		}
	}
	return nil
}

// sortJobs makes the rows, in order of address. Those of desired jobs are
// found in order, and sorting what is in order costs little.
func (l *layout) sortJobs(d *Document) error {
	byAddr := desiredByAddress(d.Desired.Jobs)
	l.jobs = make([]jobRow, 0, len(d.Jobs))
	for i := range d.Desired.Jobs {
		spec := &d.Desired.Jobs[i]
		if j, ok := d.Jobs[spec.Addr]; ok && byAddr[spec.Addr] == spec {
			l.jobs = append(l.jobs, jobRow{addr: spec.Addr, job: j, desired: spec})
		}
	}
	for addr, j := range d.Jobs {
		if j == nil || j.Spec == nil {
			return fmt.Errorf("job %q has no spec", addr)
		}
		if byAddr[addr] == nil {
			l.jobs = append(l.jobs, jobRow{addr: addr, job: j})
		}
	}
	slices.SortFunc(l.jobs, func(a, b jobRow) int { return a.addr.Compare(b.addr) })
	return nil
}

// compareDesired forgets the desired specs that are not those of the jobs.
func (l *layout) compareDesired(s *shape) error {
	return inChunks(len(l.jobs), func(_, from, to int) error {
		for i := from; i < to; i++ {
			r := &l.jobs[i]
			if r.desired != nil && r.desired != r.job.Spec && !s.same(elem(r.desired), elem(r.job.Spec)) {
				r.desired = nil
			}
		}
		return nil
	})
}

func (l *layout) layOutSlices(d *Document) error {
	l.slices = make([]sliceRow, 0, len(d.Slices))
	for name, s := range d.Slices {
		if s == nil || s.Spec.Name != name {
			return fmt.Errorf("slice %q is empty or has another name", name)
		}
		l.slices = append(l.slices, sliceRow{name: name, slice: s})
	}
	slices.SortFunc(l.slices, func(a, b sliceRow) int { return cmp.Compare(a.name, b.name) })

	s, err := shapeOf[schema.SliceSpec]()
	if err != nil {
		return err
	}
	capacity := newSharing[schema.SliceSpec](s)
	for i := range l.slices {
		spec := &l.slices[i].slice.Spec
		l.slices[i].like = capacity.like(spec, spec.Owner.Base())
	}
	var numbers []int
	l.capacity, numbers = capacity.common(func(spec *schema.SliceSpec) { spec.Name, spec.Owner = "", schema.Address{} })
	for i := range l.slices {
		l.slices[i].like = numbers[l.slices[i].like]
	}
	return nil
}

// desiredByAddress finds desired jobs. The values point into the list.
func desiredByAddress(jobs []schema.Job) map[schema.Address]*schema.Job {
	byAddr := make(map[schema.Address]*schema.Job, len(jobs))
	for i := range jobs {
		byAddr[jobs[i].Addr] = &jobs[i]
	}
	return byAddr
}
