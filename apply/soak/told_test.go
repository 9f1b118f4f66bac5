package soak

import (
	"errors"
	"slices"
	"strings"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/state/store"
)

// What clients are told, and what becomes of objects beside their writes.

// acknowledged sees a change that its maker was told is saved.
func (o *oracle) acknowledged(c *client, id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.run.note("%s is told that change %s is saved", c, id)
	o.run.tally.add("change acknowledged")
	if !slices.Contains(ledgerIn(&o.state.Desired), id) {
		o.run.fail("no update is lost", "%s was told that change %s is saved, and it is not", c, id)
	}
}

// stateRead sees a process read the state.
func (o *oracle) stateRead(c *client) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.read[c] = o.state.Epoch
}

// removed sees an object removed.
func (o *oracle) removed(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if name, ok := strings.CutPrefix(key, store.AssignPrefix); ok {
		delete(o.told, strings.TrimSuffix(name, ".json"))
	}
}

// force notes that the lease's object was removed.
func (o *oracle) force() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forced = true
}

// refused sees a client learn that another one holds the lease.
func (o *oracle) refused(c *client, by store.Lease) {
	if by.Command == c.String() && !c.outrun.Load() {
		o.run.fail("no client is in its own way", "%s was denied the lease because of itself: %+v", c, by)
	}
}

// notSaved sees a client being told that its state was not written.
func (o *oracle) notSaved(c *client, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if errors.Is(err, apply.ErrStateMoved) && o.writer == c && !c.outrun.Load() && !c.blind.Load() {
		o.run.fail("no client is in its own way", "%s learned that another client wrote the state, and it was itself: %v", c, err)
	}
}
