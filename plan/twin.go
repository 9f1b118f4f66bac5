package plan

import (
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// twin spares a Planner the copy of a whole document for every change: it keeps
// the document before the last one, brings that up to date where the two
// differ, and gives it out as the next. So a document that a Planner returned
// stays as it is until the call after the next.
type twin struct {
	last   *state.Document // whose entries are the Planner's own to change later
	before *state.Document // the same, one older; nil: there is none to be had
	// jobs and slices name the entries in which last may differ from before.
	jobs   []schema.Address
	slices []string
}

// copyOf returns a document that is equal to the last one and may be changed.
func (t *twin) copyOf(doc *state.Document) *state.Document {
	if t.before == nil || t.last != doc {
		return doc.Clone()
	}
	next := *doc // what is not a job or slice does not change on a Planner's way
	next.Jobs, next.Slices = t.before.Jobs, t.before.Slices
	t.before = nil
	copyEntries(next.Jobs, doc.Jobs, t.jobs)
	copyEntries(next.Slices, doc.Slices, t.slices)
	return &next
}

func copyEntries[K comparable, V any](to, from map[K]V, keys []K) {
	for _, key := range keys {
		if v, there := from[key]; there {
			to[key] = v
		} else {
			delete(to, key)
		}
	}
}

// turn takes in what a differ has made of the document doc: next, in which the
// entries that are named differ.
func (t *twin) turn(doc, next *state.Document, jobs []schema.Address, slices []string) {
	if next == doc {
		if t.last != doc { // it is somebody else's
			*t = twin{}
		}
		return
	}
	t.before = nil
	if t.last == doc {
		t.before = doc
	}
	t.last, t.jobs, t.slices = next, jobs, slices
}
