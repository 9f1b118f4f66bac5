package cloud

import (
	"slices"
	"time"
)

// request is a queued resource while it is there.
type request struct {
	queue   *queue
	now     *Request // replaced by every change
	groups  []*group // those that are there
	deletes []*operation
	op      *operation // its creation while that is open
	timers  timers
	removed bool
}

var _ owner = (*request)(nil)

// queue holds queued resources, which wait for capacity and then make groups.
type queue struct {
	*lifecycle
	queued  index[*request]
	waiting []*request // in order of arrival
}

// acceptance is how long a queued resource stays CREATING.
const acceptance = time.Second

// Enqueue asks for groups once there is capacity for all of them. Quota is held
// from now until the request is deleted, whatever becomes of it.
func (c *queue) Enqueue(spec RequestSpec) (Operation, error) {
	var view Operation
	var err *Error
	c.do(func() {
		if _, taken := c.queued.byKey[spec.Key]; taken {
			err = newError(ReasonExists, "Resource 'projects/%s/locations/%s/queuedResources/%s' already exists", spec.Project, spec.Zone, spec.Name)
			return
		}
		if err = c.check(spec.Groups); err != nil {
			return
		}
		c.charge(spec.Groups, 1)
		r := &request{queue: c, now: &Request{RequestSpec: spec, State: RequestCreating, Created: c.clock.Now(), ByUser: true}}
		c.queued.put(spec.Key, r)
		r.op = c.open(spec.Key, "create")
		c.later(&r.timers, acceptance, func() {
			c.changeRequest(r, func(v *Request) { v.State = RequestAccepted })
			r.op.view.Request = r.now
			c.close(r.op, nil)
			c.await(r)
		})
		view = r.op.view
	})
	if err != nil {
		return Operation{}, err
	}
	return view, nil
}

// await lets a request wait from when it may begin until it expires.
func (c *queue) await(r *request) {
	now := c.clock.Now()
	if until := r.now.ValidUntil; !until.IsZero() {
		c.later(&r.timers, max(until.Sub(now), time.Nanosecond), func() { c.expire(r) })
	}
	c.later(&r.timers, r.now.ValidAfter.Sub(now), func() {
		c.waiting = append(c.waiting, r)
		c.freed = true
	})
}

func (c *queue) expire(r *request) {
	switch r.now.State {
	case RequestAccepted, RequestWaiting:
		c.failRequest(r, newError(ReasonExpired, "The queued resource %q was not provisioned before its valid_until.", r.now.Name))
	case RequestCreating, RequestProvisioning, RequestActive, RequestSuspending, RequestSuspended, RequestFailed, RequestDeleting,
		RequestGone:
	}
}

// serve provisions what waits and fits, first come first served; a smaller
// request may overtake one that does not fit.
func (c *queue) serve() {
	c.waiting = slices.DeleteFunc(c.waiting, func(r *request) bool {
		switch {
		case r.removed || r.now.State != RequestAccepted && r.now.State != RequestWaiting:
			return true
		case c.lacking(r.now.Groups) == nil:
			c.provisionRequest(r)
			return true
		case r.now.State == RequestAccepted:
			c.changeRequest(r, func(v *Request) { v.State, v.ByUser = RequestWaiting, false })
		}
		return false
	})
}

func (c *queue) provisionRequest(r *request) {
	for _, s := range r.now.Groups {
		if _, taken := c.live.byKey[s.Key]; taken {
			c.failRequest(r, newError(ReasonExists, "Resource 'projects/%s/locations/%s/nodes/%s' already exists", s.Project, s.Zone, s.Name))
			return
		}
	}
	c.changeRequest(r, func(v *Request) { v.State, v.ByUser = RequestProvisioning, false })
	for _, s := range r.now.Groups {
		r.groups = append(r.groups, c.add(s, r, r.now.Name))
	}
	for _, g := range slices.Clone(r.groups) {
		if !g.removed { // because another one failed at once
			c.provision(g)
		}
	}
}

// groupReady makes a request active once all of its groups are ready.
func (r *request) groupReady() {
	ready := !slices.ContainsFunc(r.groups, func(g *group) bool { return g.now.State != StateReady })
	if ready && r.now.State == RequestProvisioning {
		r.queue.changeRequest(r, func(v *Request) { v.State, v.ByUser = RequestActive, false })
	}
}

// groupFailed ends a request one of whose groups did not come up.
func (r *request) groupFailed(err *Error) { r.queue.failRequest(r, err) }

// groupEnded suspends a request one of whose groups was taken.
func (r *request) groupEnded() { r.queue.suspend(r, false) }

// groupGone records that a group of a request is gone.
func (r *request) groupGone(g *group) {
	r.groups = slices.DeleteFunc(r.groups, func(other *group) bool { return other == g })
	switch r.now.State {
	case RequestDeleting:
		r.queue.removeRequestOnceEmpty(r)
	case RequestActive, RequestProvisioning:
		r.queue.suspend(r, true)
	case RequestCreating, RequestAccepted, RequestWaiting, RequestSuspending, RequestSuspended, RequestFailed, RequestGone:
	}
}

// suspend ends a request that lost a group. It gets no other.
func (c *queue) suspend(r *request, byUser bool) {
	if r.now.State != RequestActive && r.now.State != RequestProvisioning {
		return
	}
	r.timers.withdraw()
	c.changeRequest(r, func(v *Request) { v.State, v.ByUser = RequestSuspending, byUser })
	w := c.conditions(r.now.Zone, r.now.Groups[0].Type)
	luck := c.luck(r.now.Key, uint64(r.now.Created.UnixNano()))
	lingers := w.Lingering.draw(luck)
	c.later(&r.timers, w.Suspension.draw(luck), func() {
		c.changeRequest(r, func(v *Request) { v.State = RequestSuspended })
		if !lingers {
			for _, g := range slices.Clone(r.groups) {
				c.remove(g)
			}
		}
	})
}

// failRequest ends a request that got nothing, or not all.
func (c *queue) failRequest(r *request, err *Error) {
	if r.now.State == RequestDeleting || r.removed {
		return
	}
	r.timers.withdraw()
	c.changeRequest(r, func(v *Request) { v.State, v.Err, v.ByUser = RequestFailed, err, false })
	for _, g := range slices.Clone(r.groups) {
		c.remove(g)
	}
}

// DeleteRequest deletes a queued resource, with force also its groups.
func (c *queue) DeleteRequest(k Key, force bool) (Operation, error) {
	var view Operation
	var err *Error
	c.do(func() {
		r, ok := c.queued.byKey[k]
		switch {
		case !ok:
			err = missing(k)
			return
		case len(r.groups) > 0 && !force:
			err = newError(ReasonPrecondition, "The queued resource %q is in state %s and still has nodes: delete them first, or set force.", k.Name, r.now.State)
			return
		}
		op := c.open(k, "delete")
		view = op.view
		r.deletes = append(r.deletes, op)
		if r.now.State == RequestDeleting {
			return
		}
		r.timers.withdraw()
		c.close(r.op, newError(ReasonCancelled, "The operation was cancelled: the queued resource was deleted."))
		c.changeRequest(r, func(v *Request) { v.State, v.ByUser = RequestDeleting, true })
		for _, g := range slices.Clone(r.groups) {
			c.erase(g, nil)
		}
		c.removeRequestOnceEmpty(r)
	})
	if err != nil {
		return Operation{}, err
	}
	return view, nil
}

// removeRequestOnceEmpty lets a deletion end a moment after the last group went.
func (c *queue) removeRequestOnceEmpty(r *request) {
	if len(r.groups) > 0 {
		return
	}
	w := c.conditions(r.now.Zone, r.now.Groups[0].Type)
	takes := w.Deletion.draw(c.luck(r.now.Key, uint64(r.now.Created.UnixNano())))
	c.later(&r.timers, max(takes, time.Nanosecond), func() {
		r.removed, c.freed = true, true
		c.charge(r.now.Groups, -1)
		c.queued.remove(r.now.Key)
		c.changeRequest(r, func(v *Request) { v.State = RequestGone })
		for _, op := range r.deletes {
			c.close(op, nil)
		}
	})
}

// ResetRequest takes the groups of a queued resource that was active, and queues
// it anew.
func (c *queue) ResetRequest(k Key) (Operation, error) {
	var view Operation
	var err *Error
	c.do(func() {
		r, ok := c.queued.byKey[k]
		if !ok {
			err = missing(k)
			return
		}
		if r.now.State != RequestActive && r.now.State != RequestSuspended {
			err = newError(ReasonPrecondition, "The queued resource %q cannot be reset in state %s.", k.Name, r.now.State)
			return
		}
		op := c.open(k, "reset")
		view = op.view
		r.timers.withdraw()
		c.changeRequest(r, func(v *Request) { v.State, v.Err, v.ByUser = RequestAccepted, nil, true })
		for _, g := range slices.Clone(r.groups) {
			c.remove(g)
		}
		op.view.Request = r.now
		c.close(op, nil)
		c.await(r)
		view = op.view
	})
	if err != nil {
		return Operation{}, err
	}
	return view, nil
}

// Request is the queued resource of that key.
func (c *queue) Request(k Key) (*Request, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.queued.byKey[k]
	if !ok {
		return nil, false
	}
	return r.now, true
}

// Requests are a project's queued resources in one zone, or in all for "", sorted
// by zone and name.
func (c *queue) Requests(project, zone string) []*Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	queued := c.queued.under(project, KindQueued, zone)
	found := make([]*Request, len(queued))
	for i, r := range queued {
		found[i] = r.now
	}
	return found
}

func (c *queue) changeRequest(r *request, f func(*Request)) {
	next := *r.now
	f(&next)
	r.now = &next
	if changed := r.now.Changed; changed != nil {
		now := r.now
		c.effects.add(func() { changed(now) })
	}
}

// AllRequests are all queued resources of all projects, sorted by project, zone
// and name.
func (c *queue) AllRequests() []*Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := make([]*Request, len(c.queued.values))
	for i, r := range c.queued.values {
		found[i] = r.now
	}
	return found
}
