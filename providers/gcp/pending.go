package gcp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	gcpengine "github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/schema"
)

// pendings is what was asked for and may not be there yet, by slice name, with
// "update/" before it for what was asked to be changed. It is a memory, not a
// record: a process that starts anew asks again, and adopts what it finds.
type pendings struct {
	mu     sync.Mutex
	byName map[string]*pending
}

// pending is one request. The goroutine that has taken it is alone with it.
type pending struct {
	all   *pendings
	name  string
	users int // holders and waiters; guarded by all.mu

	mu        sync.Mutex
	order     gcpengine.Order // that was accepted, or may have been; without an id there is none
	operation string          // to ask for; "": none
	at        time.Time       // when the slice was last asked for, or listed
	seen      bool            // the slice was listed since it was asked for
	lost      bool            // and then it was listed no more
	// made is the spec of a creation that has succeeded, until its slice is listed or
	// asked to go: who asks again has not seen it in a list yet.
	made   schema.SliceSpec
	readAt time.Time // when it was last read that it is there still
}

// readMadeEvery is how often what was made is read while it is asked for again.
const readMadeEvery = 10 * time.Second

// isIdle reports whether nothing has to be remembered.
func (c *pending) isIdle() bool { return c.order.ID == "" && c.made.Name == "" }

func (a *pendings) take(name string) *pending {
	a.mu.Lock()
	if a.byName == nil {
		a.byName = map[string]*pending{}
	}
	c := a.byName[name]
	if c == nil {
		c = &pending{all: a, name: name}
		a.byName[name] = c
	}
	c.users++
	a.mu.Unlock()
	c.mu.Lock()
	return c
}

func (c *pending) release() {
	c.mu.Unlock()
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.users--; c.users == 0 && c.isIdle() {
		delete(c.all.byName, c.name)
	}
}

// newsFor is how long after the last report about a slice the error of its operation
// is up to date.
const newsFor = 2 * time.Minute

// ask asks for an operation that is open. It reports whether it goes on; an
// error of an operation that has failed is returned this once, unless it is of
// another time: who has been elsewhere since may ask anew.
func (c *pending) ask(ctx context.Context, e engine, spec schema.SliceSpec, now time.Time) (goesOn bool, err error) {
	if c.operation == "" || c.order.Spec != spec {
		return false, nil
	}
	next, err := e.Poll(ctx, c.order, c.operation)
	if _, unknown := errors.AsType[*gcpengine.AskError](err); unknown {
		return false, err
	}
	lost, old := c.lost, now.Sub(c.at) > newsFor
	c.operation, c.at = next, now
	if err != nil || next == "" || lost {
		c.clear()
		if err == nil && !lost && c.name == spec.Name { // else it is an update
			c.made, c.readAt = spec, now
		}
	}
	if old && err != nil {
		return false, nil
	}
	return next != "" && !lost, err
}

func (c *pending) accepted(o gcpengine.Order, operation string, now time.Time) {
	c.clear()
	if operation != "" {
		c.order, c.operation, c.at = o, operation, now
	}
}

// failed keeps a request whose fate is unknown: asked for again under the same
// id, it is made once. What was asked for before of another spec goes on.
func (c *pending) failed(o gcpengine.Order, err error) {
	switch {
	case c.operation != "" && c.order.Spec != o.Spec:
	case apierror.KindOf(err) == schema.ErrorUnavailable:
		c.order = o
	default:
		c.clear()
	}
}

func (c *pending) clear() {
	c.order, c.operation, c.at, c.seen, c.lost, c.made = gcpengine.Order{}, "", time.Time{}, false, false, schema.SliceSpec{}
}

// forget drops what is known of a slice that was asked to go.
func (a *pendings) forget(name string) {
	for _, each := range []string{name, "update/" + name} {
		c := a.take(each)
		c.clear()
		c.release()
	}
}

// phaseIn is the phase of a slice in a list that is sorted by name, "" if it is not there.
func phaseIn(listed []schema.SliceStatus, name string) schema.SlicePhase {
	at, found := slices.BinarySearchFunc(listed, name, func(s schema.SliceStatus, name string) int { return strings.Compare(s.Spec.Name, name) })
	if !found {
		return ""
	}
	return listed[at].Phase
}

// observe compares what was asked for with an inventory. A slice that was there
// and is not any more may be asked for anew although its operation goes on. A
// request that is being made right now is left for the next inventory.
func (a *pendings) observe(listed []schema.SliceStatus, now time.Time, covers func(schema.SliceSpec) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, c := range a.byName {
		if !c.mu.TryLock() {
			continue
		}
		phase := phaseIn(listed, name)
		if c.operation != "" && name == c.order.Spec.Name && covers(c.order.Spec) {
			c.see(phase, now)
		}
		if phase != "" {
			c.made = schema.SliceSpec{}
		}
		if c.users == 0 && c.isIdle() {
			delete(a.byName, name)
		}
		c.mu.Unlock()
	}
}

func (c *pending) see(phase schema.SlicePhase, now time.Time) {
	switch phase {
	case schema.SliceReady, schema.SliceDeleting:
		c.clear() // whatever came of the operation, it does not matter any more
	case schema.SliceCreating, schema.SliceDead:
		c.at, c.seen, c.lost = now, true, false
	default:
		c.lost = c.seen // it is not listed
	}
}
