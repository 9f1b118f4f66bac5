package gce

import (
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/engine"
)

// progress is what this process knows of slices that the cloud does not show.
type progress struct {
	now func() time.Time

	mu    sync.Mutex
	notes map[string]*note // by slice
}

// note is what is known of a slice's progress that the cloud does not show.
// All of it may be lost: then the slice counts as unfinished, and is finished or
// deleted by the process that lists it.
type note struct {
	stack       string
	zone        string
	askedAt     time.Time // when the making of its group was last asked about, zero when that is over
	deletedAt   time.Time // when its deletion was last asked for, zero unless it was
	deleteID    string    // of the requests for that
	failed      error     // why the making of its group ended
	complete    bool      // all its machines were up
	absent      int       // listings in a row that missed some of them
	inspectedAt time.Time // when its group was last asked for its errors
	problem     error     // the last of them, nil for none
	resized     bool      // its resize request is known to be there
	served      bool      // and to have been fulfilled
}

// note returns what is known of a slice, for reading and writing under g.mu.
func (g *progress) note(name string) *note {
	n := g.notes[name]
	if n == nil {
		n = &note{}
		g.notes[name] = n
	}
	return n
}

// noted changes what is known of a slice.
func (g *progress) noted(name string, change func(*note)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g.note(name))
}

// going notes that a slice is being deleted, and returns the id under which that
// is asked for: the same as long as it is the same deletion.
func (g *progress) going(stack string, at engine.Place) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := g.note(at.Name)
	if n.deleteID == "" || g.now().Sub(n.deletedAt) > deletePatience {
		n.deleteID = uuid.NewString()
	}
	*n = note{stack: stack, zone: at.Zone, deletedAt: g.now(), deleteID: n.deleteID}
	return n.deleteID
}

func (g *progress) deleteID(name string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.note(name).deleteID
}

// isGoing reports whether a slice is being deleted as far as this process knows.
func (g *progress) isGoing(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.notes[name].isGoing(g.now())
}

func (n *note) isGoing(now time.Time) bool {
	return n != nil && !n.deletedAt.IsZero() && now.Sub(n.deletedAt) <= deletePatience
}

// goes makes of the answer to a deletion what it means. What is gone or going
// already is as asked for; what was rejected is not going.
func (g *progress) goes(name string, err error) error {
	switch {
	case err == nil, apierror.StatusOf(err) == http.StatusNotFound, isNotReady(err):
		return nil
	}
	g.noted(name, func(n *note) { n.deletedAt = time.Time{} })
	return err
}

// forgetGone forgets the notes of slices that are not there any more.
func (g *progress) forgetGone(stack string, listed engine.Listing, groups []machineGroup) {
	there := map[string]bool{}
	for i := range listed.Slices {
		there[listed.Slices[i].Spec.Name] = true
	}
	for i := range groups {
		there[groups[i].spec.Name] = true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, n := range g.notes {
		asked := !n.askedAt.IsZero() && g.now().Sub(n.askedAt) <= askPatience
		_, blind := listed.Unlisted[n.zone]
		if !there[name] && !asked && !blind && (stack == "" || stack == n.stack) {
			delete(g.notes, name)
		}
	}
}
