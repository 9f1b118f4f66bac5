package state

import "github.com/fray-ml/fray/schema"

// Edits are the jobs and slices in which a document differs from an earlier one, as far as that was
// noted when it was made: comparing two large documents costs more than most steps do. A change that
// was not noted is found by comparing. The zero value knows of no document.
type Edits struct {
	from, to *Document
	jobs     map[schema.Address]*Job // as they were in the earlier document, nil: it did not have them
	slices   map[string]*Slice
}

// Begin has edits be those since a document.
func (e *Edits) Begin(doc *Document) { *e = Edits{from: doc, to: doc} }

// From is the earlier document, nil before the first Begin.
func (e *Edits) From() *Document { return e.from }

// Note takes in that a document was made of another one, from which it differs in no other jobs and
// slices than these.
func (e *Edits) Note(was, is *Document, jobs []schema.Address, names []string) {
	if was == is || !sameEntries(e.to, was) {
		return
	}
	e.to = is
	if e.jobs == nil {
		e.jobs, e.slices = map[schema.Address]*Job{}, map[string]*Slice{}
	}
	for _, addr := range jobs {
		if _, noted := e.jobs[addr]; !noted {
			e.jobs[addr] = was.Jobs[addr]
		}
	}
	for _, name := range names {
		if _, noted := e.slices[name]; !noted {
			e.slices[name] = was.Slices[name]
		}
	}
}

// Cover reports whether edits have all jobs and slices in which two documents differ.
func (e *Edits) Cover(was, is *Document) bool {
	return sameEntries(e.from, was) && sameEntries(e.to, is)
}

// Differences reports the jobs and slices in which two documents differ, see the function of the
// same name.
func (e *Edits) Differences(was, is *Document, job func(addr schema.Address, was, is *Job), slice func(name string, was, is *Slice)) {
	if !e.Cover(was, is) {
		Differences(was.Jobs, is.Jobs, job)
		Differences(was.Slices, is.Slices, slice)
		return
	}
	for addr, before := range e.jobs {
		if now := is.Jobs[addr]; now != before {
			job(addr, before, now)
		}
	}
	for name, before := range e.slices {
		if now := is.Slices[name]; now != before {
			slice(name, before, now)
		}
	}
}

// JobChanges are the jobs in which two documents differ, nil where edits do not have all of them.
func (e *Edits) JobChanges(was, is *Document) *JobChanges {
	if !e.Cover(was, is) {
		return nil
	}
	c := JobChanges{Was: was.Jobs}
	c.Set, c.Gone = changedOf(e.jobs, is.Jobs)
	return &c
}

// changedOf are the entries of a map that differ from those which it had before, by key.
func changedOf[K comparable, V any](before, is map[K]*V) (set map[K]*V, gone []K) {
	for key, was := range before {
		now, there := is[key]
		switch {
		case there && now != was:
			if set == nil {
				set = map[K]*V{}
			}
			set[key] = now
		case !there && was != nil:
			gone = append(gone, key)
		}
	}
	return set, gone
}

// sameEntries reports whether two documents have the same maps of jobs and slices.
func sameEntries(a, b *Document) bool {
	return a != nil && b != nil && SameMap(a.Jobs, b.Jobs) && SameMap(a.Slices, b.Slices)
}
