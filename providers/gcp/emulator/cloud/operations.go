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
	byName map[string]*operation
	order  []*operation
	made   uint64
}

func (c *Cloud) open(k Key, verb string) *operation {
	c.operations.made++
	now := c.clock.Now()
	op := &operation{view: Operation{
		Name:    fmt.Sprintf("operation-%d-%06x", now.UnixMilli(), c.operations.made),
		Project: k.Project, Zone: k.Zone, Kind: k.Kind, Verb: verb, Target: k.Name, Created: now,
	}}
	c.operations.byName[op.view.Name] = op
	c.operations.order = append(c.operations.order, op)
	c.forget(now)
	return op
}

// forget drops operations from the front of the order that ended long ago.
func (c *Cloud) forget(now time.Time) {
	o := &c.operations
	for len(o.order) > 0 {
		first := o.order[0]
		_, kept := o.byName[first.view.Name]
		if kept && (!first.view.Done() || now.Sub(first.view.Ended) < forgetAfter) {
			return
		}
		delete(o.byName, first.view.Name)
		o.order = o.order[1:]
	}
}

// close ends an operation; ending an ended one does nothing.
func (c *Cloud) close(op *operation, err *Error) {
	if op == nil || op.view.Done() {
		return
	}
	op.view.Ended, op.view.Err, op.view.Progress, op.onCancel = c.clock.Now(), err, 100, nil
}

// Operation is the operation of that name.
func (c *Cloud) Operation(name string) (Operation, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	op, ok := c.operations.byName[name]
	if !ok {
		return Operation{}, false
	}
	return op.view, true
}

// Operations are those of a project in one zone, or in all for "", oldest first.
func (c *Cloud) Operations(project, zone string) []Operation {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []Operation
	for _, op := range c.operations.order {
		if _, kept := c.operations.byName[op.view.Name]; kept && op.view.Project == project && (zone == "" || op.view.Zone == zone) {
			found = append(found, op.view)
		}
	}
	return found
}

// CancelOperation asks an open operation to stop: a creation is undone, anything
// else goes on.
func (c *Cloud) CancelOperation(name string) error {
	var err error
	c.do(func() {
		op, ok := c.operations.byName[name]
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
func (c *Cloud) DeleteOperation(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.operations.byName[name]; !ok {
		return newError(ReasonNotFound, "Operation %q not found.", name)
	}
	delete(c.operations.byName, name)
	return nil
}

// Record makes an operation of a server's own that ends well after a while; 0
// ends it at once. done, if not nil, is called when it has ended.
func (c *Cloud) Record(target Key, verb string, after time.Duration, done func()) Operation {
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
