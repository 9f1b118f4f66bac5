package cloud

import (
	"fmt"
	"time"
)

// forgetAfter is how long an ended operation can be asked for.
const forgetAfter = 24 * time.Hour

// operation is an operation while it is kept. onCancel, if not nil, undoes what
// it stands for as far as that is possible.
type operation struct {
	view     Operation
	onCancel func()
}

// operations are all that are kept, in order of creation.
type operations struct {
	*runner
	byName map[string]*operation
	order  []*operation
	count  uint64
}

func (c *operations) open(k Key, verb string) *operation {
	c.count++
	now := c.clock.Now()
	op := &operation{view: Operation{
		Name:    fmt.Sprintf("operation-%d-%06x", now.UnixMilli(), c.count),
		Project: k.Project, Zone: k.Zone, Kind: k.Kind, Verb: verb, Target: k.Name, Created: now,
	}}
	c.byName[op.view.Name] = op
	c.order = append(c.order, op)
	c.forget(now)
	return op
}

// forget drops operations from the front of the order that ended long ago.
func (c *operations) forget(now time.Time) {
	for len(c.order) > 0 {
		first := c.order[0]
		_, kept := c.byName[first.view.Name]
		if kept && (!first.view.Done() || now.Sub(first.view.Ended) < forgetAfter) {
			return
		}
		delete(c.byName, first.view.Name)
		c.order = c.order[1:]
	}
}

// close ends an operation; ending an ended one does nothing.
func (c *operations) close(op *operation, err *Error) {
	if op == nil || op.view.Done() {
		return
	}
	c.news.Ended++
	op.view.Ended, op.view.Err, op.view.Progress, op.onCancel = c.clock.Now(), err, 100, nil
}

// Operation is the operation of that name.
func (c *operations) Operation(name string) (Operation, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	op, ok := c.byName[name]
	if !ok {
		return Operation{}, false
	}
	return op.view, true
}

// Operations are those of a project in one zone, or in all for "", oldest first.
func (c *operations) Operations(project, zone string) []Operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []Operation
	for _, op := range c.order {
		if _, kept := c.byName[op.view.Name]; kept && op.view.Project == project && (zone == "" || op.view.Zone == zone) {
			found = append(found, op.view)
		}
	}
	return found
}

// CancelOperation asks an open operation to stop: a creation is undone, anything
// else goes on.
func (c *operations) CancelOperation(name string) error {
	var err error
	c.do(func() {
		op, ok := c.byName[name]
		if !ok {
			err = newError(ReasonNotFound, "Operation %q not found.", name)
			return
		}
		if op.view.Done() {
			return
		}
		op.view.CancelRequested = true
		if cancel := op.onCancel; cancel != nil {
			c.close(op, newError(ReasonCancelled, "The operation was cancelled."))
			cancel()
		}
	})
	return err
}

// DeleteOperation forgets an operation; what it stands for goes on.
func (c *operations) DeleteOperation(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.byName[name]; !ok {
		return newError(ReasonNotFound, "Operation %q not found.", name)
	}
	delete(c.byName, name)
	return nil
}

// Record makes an operation of a server's own that ends well after a while; 0
// ends it at once. done, if not nil, is called when it has ended.
func (c *operations) Record(target Key, verb string, after time.Duration, done func()) Operation {
	var view Operation
	c.do(func() {
		op := c.open(target, verb)
		end := func() {
			c.close(op, nil)
			if done != nil {
				c.effects.add(done)
			}
		}
		if after <= 0 {
			end()
		} else {
			c.clock.AfterFunc(c.clock.Now().Add(after), func() { c.do(end) })
		}
		view = op.view
	})
	return view
}
