package state

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/fray-ml/fray/schema"
)

// Changes are what differs between two documents of one lineage.
type Changes struct {
	// Members are those members of the document which are not listed below, with their new
	// values; Maps those of them that are maps, with the changed elements.
	Members map[string]jsontext.Value `json:"members,omitempty"`
	Maps    map[string]mapChange      `json:"maps,omitempty"`

	Desired    *desiredChange                `json:"desired,omitempty"`
	Slices     map[string]*Slice             `json:"slices,omitempty"`
	SlicesGone []string                      `json:"slices_gone,omitempty"`
	Jobs       map[schema.Address]changedJob `json:"jobs,omitempty"`
	JobsGone   []schema.Address              `json:"jobs_gone,omitempty"`
	Metering   *meteringChange               `json:"metering,omitempty"`
}

// mapChange is what differs between two maps, in JSON.
type mapChange struct {
	Set  jsontext.Value `json:"set,omitempty"`
	Gone jsontext.Value `json:"gone,omitempty"` // a map with the keys that are gone
}

// desiredChange is what differs between two desired configurations.
type desiredChange struct {
	// Around is all but the jobs, nil if that is the same.
	Around *schema.Desired `json:"around,omitempty"`
	// Jobs are new or changed ones, in order; with All, all of them.
	Jobs []schema.Job     `json:"jobs,omitempty"`
	All  bool             `json:"all,omitempty"`
	Gone []schema.Address `json:"gone,omitempty"`
}

// meteringChange is what differs between two meterings.
type meteringChange struct {
	Around *Metering                 `json:"around"` // all but the open intervals; nil: there is no metering
	Open   map[string]*UsageInterval `json:"open,omitempty"`
	Gone   []string                  `json:"gone,omitempty"`
}

// changedJob is a job as it is written in an entry.
type changedJob struct {
	*Job

	// Spec is nil where SpecOf says which it is.
	Spec   *schema.Job `json:"spec,omitempty"`
	SpecOf specOf      `json:"spec_of,omitempty"`
}

// specOf is a closed set of where the spec of a job is.
type specOf string

const (
	specHere    specOf = ""
	specFormer  specOf = "former"  // it is that of the job before the change
	specDesired specOf = "desired" // it is the desired one of its address
)

// Baseline is a document with what finds quickly how another one differs from it.
type Baseline struct {
	doc    *Document
	jobs   pointers[schema.Address, Job]
	slices pointers[string, Slice]
	open   pointers[string, UsageInterval]
}

// NewBaseline returns a baseline, whose document must not change any more.
func NewBaseline(doc *Document) *Baseline {
	return &Baseline{
		doc:    doc,
		jobs:   newPointers(doc.Jobs),
		slices: newPointers(doc.Slices),
		open:   newPointers(doc.openIntervals()),
	}
}

// Document is that of the baseline.
func (b *Baseline) Document() *Document { return b.doc }

func (d *Document) openIntervals() map[string]*UsageInterval {
	if d.Metering == nil {
		return nil
	}
	return d.Metering.Open
}

// Advance makes another document the baseline, from which it takes what changed.
func (b *Baseline) Advance(to *Document) {
	b.jobs.advance(b.doc.Jobs, to.Jobs)
	b.slices.advance(b.doc.Slices, to.Slices)
	b.open.advance(b.doc.openIntervals(), to.openIntervals())
	b.doc = to
}

// Changes are what makes a document of the baseline. Jobs, slices and intervals differ if
// their pointers do: they are never changed in place.
func (b *Baseline) Changes(to *Document) (Changes, error) {
	var c Changes
	if err := c.compareMembers(b.doc, to); err != nil {
		return c, err
	}
	c.Desired = compareDesired(&b.doc.Desired, &to.Desired)
	c.Slices, c.SlicesGone = b.slices.compare(b.doc.Slices, to.Slices)
	jobs, gone := b.jobs.compare(b.doc.Jobs, to.Jobs)
	c.JobsGone = gone
	changed := Document{Resources: to.Resources, Slices: c.Slices, Jobs: jobs}
	if err := changed.check(); err != nil {
		return c, err
	}
	if len(jobs) > 0 {
		c.Jobs = make(map[schema.Address]changedJob, len(jobs))
	}
	for addr, j := range jobs {
		c.Jobs[addr] = b.changedJob(to, addr, j)
	}
	if m := to.Metering; m != b.doc.Metering {
		c.Metering = &meteringChange{}
		if m != nil {
			around := *m
			around.Open = nil
			c.Metering.Around = &around
		}
		c.Metering.Open, c.Metering.Gone = b.open.compare(b.doc.openIntervals(), to.openIntervals())
	}
	return c, nil
}

// Expect has it known in which jobs and slices a document differs from that of the baseline, where
// edits have all of them.
func (b *Baseline) Expect(to *Document, edits *Edits) {
	if !edits.Cover(b.doc, to) {
		return
	}
	set, gone := changedOf(edits.jobs, to.Jobs)
	b.jobs.expect(b.doc.Jobs, to.Jobs, set, gone)
	changed, removed := changedOf(edits.slices, to.Slices)
	b.slices.expect(b.doc.Slices, to.Slices, changed, removed)
}

// JobChanges are the jobs of a document that differ from those of the baseline.
type JobChanges struct {
	Was  map[schema.Address]*Job // all of the baseline
	Set  map[schema.Address]*Job // new or changed ones
	Gone []schema.Address
}

// JobChanges are a part of Changes.
func (b *Baseline) JobChanges(to *Document) *JobChanges {
	c := JobChanges{Was: b.doc.Jobs}
	c.Set, c.Gone = b.jobs.compare(b.doc.Jobs, to.Jobs)
	return &c
}

func (b *Baseline) changedJob(to *Document, addr schema.Address, j *Job) changedJob {
	if was := b.doc.Jobs[addr]; was != nil && (was.Spec == j.Spec || reflect.DeepEqual(was.Spec, j.Spec)) {
		return changedJob{Job: j, SpecOf: specFormer}
	}
	i, found := slices.BinarySearchFunc(to.Desired.Jobs, addr, func(d schema.Job, a schema.Address) int { return d.Addr.Compare(a) })
	if found && (&to.Desired.Jobs[i] == j.Spec || reflect.DeepEqual(&to.Desired.Jobs[i], j.Spec)) {
		return changedJob{Job: j, SpecOf: specDesired}
	}
	return changedJob{Job: j, Spec: j.Spec}
}

// change makes the changes in a document that the caller alone has.
func (c *Changes) change(d *Document) error {
	if err := c.changeMembers(d); err != nil {
		return err
	}
	if c.Desired != nil {
		d.Desired = c.Desired.changed(&d.Desired)
	}
	apply(d.Slices, c.Slices, c.SlicesGone)
	if c.Metering != nil {
		d.Metering = c.Metering.changed(d.Metering)
	}
	var desired map[schema.Address]*schema.Job
	for addr, changed := range c.Jobs {
		if changed.Job == nil {
			return fmt.Errorf("job %q is empty", addr)
		}
		j := *changed.Job
		switch changed.SpecOf {
		case specHere:
			j.Spec = changed.Spec
		case specFormer:
			if was := d.Jobs[addr]; was != nil {
				j.Spec = was.Spec
			}
		case specDesired:
			if desired == nil {
				desired = desiredByAddress(d)
			}
			j.Spec = desired[addr]
		default:
			return fmt.Errorf("job %q: there is no spec_of %q", addr, changed.SpecOf)
		}
		d.Jobs[addr] = &j
	}
	for _, addr := range c.JobsGone {
		delete(d.Jobs, addr)
	}
	return nil
}

// apply sets and removes elements of a map.
func apply[K comparable, V any](m, set map[K]V, gone []K) {
	maps.Copy(m, set)
	for _, key := range gone {
		delete(m, key)
	}
}

func (c *meteringChange) changed(was *Metering) *Metering {
	if c.Around == nil {
		return nil
	}
	next := *c.Around
	if was != nil {
		next.Open = maps.Clone(was.Open)
	}
	if next.Open == nil && len(c.Open) > 0 {
		next.Open = map[string]*UsageInterval{}
	}
	apply(next.Open, c.Open, c.Gone)
	return &next
}

// compareDesired returns nil for the same configurations.
func compareDesired(was, now *schema.Desired) *desiredChange {
	var c desiredChange
	before, after := *was, *now
	before.Jobs, after.Jobs = nil, nil
	changed := !reflect.DeepEqual(before, after)
	if changed {
		c.Around = &after
	}
	if SameSlice(was.Jobs, now.Jobs) {
		if !changed {
			return nil
		}
		return &c
	}
	if !areInOrder(was.Jobs) || !areInOrder(now.Jobs) {
		c.All, c.Jobs = true, now.Jobs
		return &c
	}
	b, a := 0, 0
	for b < len(was.Jobs) || a < len(now.Jobs) {
		var order int
		switch {
		case b == len(was.Jobs):
			order = 1
		case a == len(now.Jobs):
			order = -1
		default:
			order = was.Jobs[b].Addr.Compare(now.Jobs[a].Addr)
		}
		switch {
		case order < 0:
			c.Gone = append(c.Gone, was.Jobs[b].Addr)
			b++
		case order > 0:
			c.Jobs = append(c.Jobs, now.Jobs[a])
			a++
		default:
			if !reflect.DeepEqual(&was.Jobs[b], &now.Jobs[a]) {
				c.Jobs = append(c.Jobs, now.Jobs[a])
			}
			a, b = a+1, b+1
		}
	}
	if !changed && len(c.Jobs) == 0 && len(c.Gone) == 0 {
		return nil
	}
	return &c
}

func areInOrder(jobs []schema.Job) bool {
	for i := 1; i < len(jobs); i++ {
		if jobs[i-1].Addr.Compare(jobs[i].Addr) >= 0 {
			return false
		}
	}
	return true
}

func (c *desiredChange) changed(was *schema.Desired) schema.Desired {
	next := *was
	if c.Around != nil {
		next = *c.Around
	}
	if c.All {
		next.Jobs = c.Jobs
		return next
	}
	next.Jobs = was.Jobs
	if len(c.Jobs) == 0 && len(c.Gone) == 0 {
		return next
	}
	gone := make(map[schema.Address]bool, len(c.Gone))
	for _, addr := range c.Gone {
		gone[addr] = true
	}
	next.Jobs = make([]schema.Job, 0, len(was.Jobs)+len(c.Jobs)-len(gone))
	set := c.Jobs
	for i := range was.Jobs {
		addr := was.Jobs[i].Addr
		for len(set) > 0 && set[0].Addr.Compare(addr) < 0 {
			next.Jobs, set = append(next.Jobs, set[0]), set[1:]
		}
		switch {
		case gone[addr]:
		case len(set) > 0 && set[0].Addr == addr:
			next.Jobs, set = append(next.Jobs, set[0]), set[1:]
		default:
			next.Jobs = append(next.Jobs, was.Jobs[i])
		}
	}
	next.Jobs = append(next.Jobs, set...)
	return next
}

// shareSpecs makes the spec of a job the desired one where they are the same.
func (d *Document) shareSpecs() {
	desired := desiredByAddress(d)
	for addr, j := range d.Jobs {
		if spec := desired[addr]; spec != nil && j.Spec != spec && reflect.DeepEqual(j.Spec, spec) {
			next := *j
			next.Spec = spec
			d.Jobs[addr] = &next
		}
	}
}
