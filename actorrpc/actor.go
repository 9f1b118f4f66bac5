package actorrpc

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// actorKey is what handles of one actor have in common.
type actorKey struct {
	name, namespace string
	url             string // it is there and nowhere else; "": the client's resolver knows
	member          string // of the endpoints of the name, the one of this Member; "": any
}

// actor is what a client knows of one actor, and the calls that wait until it is
// found. Calls are sent in the order in which they were made.
type actor struct {
	shared
	transports  *transports
	key         actorKey
	resolver    resolver.Resolver
	load        atomic.Int64 // calls without an answer
	unsettled   atomic.Int64 // calls that must be settled before others are sent
	rejections  atomic.Int64 // in a row
	backlogFull atomic.Bool  // more may wait than are to
	retryNow    chan struct{}

	mu sync.Mutex // guards the rest, and what is queued of its calls
	location
	orders   uint64
	queue    backlog
	seeking  bool                       // seek runs
	declared map[string]declaredOptions // of methods, by name; nil: not known
}

// location is what is known of where an actor is.
type location struct {
	transport     transport // nil: not found yet, or not any more
	endpoint      resolver.Endpoint
	lastResolved  resolver.Endpoint // where the resolver had it last
	lastTransport transport         // may still have unanswered calls for endpoint; nil: none were sent
	rejected      *rejection        // nil: none since a call was sent
	unreachable   resolver.Endpoint // where no server answered
	problem       *rpcerror.Error   // why it is not found
}

var _ locator = (*actor)(nil)

func newActor(t *transports, key actorKey, names resolver.Resolver) *actor {
	return &actor{
		shared: t.shared, transports: t, key: key, resolver: names, retryNow: make(chan struct{}, 1),
		queue: backlog{maxCalls: maxBacklogCalls, maxBytes: maxBacklogBytes},
	}
}

// start sends a call, or has it wait until the actor is found; then there is no
// transport. A caller who is not patient does not wait until it is written.
func (a *actor) start(c *call, patient bool) transport {
	a.load.Add(1)
	a.mu.Lock()
	if c.dropped {
		a.mu.Unlock()
		return nil
	}
	a.orders++
	c.order = a.orders
	via := a.transport
	if via == nil || a.seeking || !a.send(c) {
		a.enqueue(c)
		via = nil
	}
	a.mu.Unlock()
	switch {
	case via == nil:
	case patient:
		via.flush()
	default:
		go via.flush()
	}
	return via
}

// send gives a call to the transport. It needs the lock.
func (a *actor) send(c *call) bool {
	c.via = a.transport
	c.endpoint = a.endpoint
	return a.transport.submit(&c.delivery)
}

// enqueue has a call wait until the actor is found. It needs the lock.
func (a *actor) enqueue(c *call) {
	if c.findBy.IsZero() {
		c.findBy = time.Now().Add(a.config.ResolveTimeout)
	}
	a.queue.insert(c)
	if a.queue.over() {
		a.backlogFull.Store(true)
	}
	if !a.seeking {
		a.seeking = a.tasks.Run(a.seek)
		if !a.seeking {
			a.queue.filter(func(*call) bool { return true })
			c.settled()
			c.fail(a.unsentError(c, errClientClosed()))
		}
	}
}

// throttle has the maker of a call wait while too much waits for the actor to be
// found, or until the call is over: at its deadline, or when the actor was looked for
// for ResolveTimeout.
func (a *actor) throttle(done <-chan struct{}) {
	for a.backlogFull.Load() {
		a.mu.Lock()
		drained := a.queue.await()
		a.backlogFull.Store(drained != nil)
		a.mu.Unlock()
		if drained == nil {
			return
		}
		select {
		case <-drained:
		case <-done:
			return
		}
	}
}

// requeue has a call wait that was sent and surely did not run, or may be repeated.
func (a *actor) requeue(c *call) {
	a.mu.Lock()
	a.enqueue(c)
	a.mu.Unlock()
	c.settled()
}

// drop takes a call out of wherever it is. It reports whether it may have arrived
// and, if not, why the actor is not found.
func (a *actor) drop(c *call) (mayHaveArrived bool, problem *rpcerror.Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.dropped = true
	if a.queue.remove(c) {
		return c.loss != nil, a.problem
	}
	mayHaveArrived = c.loss != nil
	if c.via != nil && c.via.withdraw(&c.delivery) {
		mayHaveArrived = true
	}
	return mayHaveArrived, nil
}

// elsewhere reports whether the resolver is sure that an endpoint is not the actor's any more.
func (a *actor) elsewhere(ctx context.Context, e resolver.Endpoint) bool {
	endpoints, err := a.resolver.Resolve(ctx, a.key.name)
	if err != nil {
		return rpcerror.CodeOf(err) == rpcerror.CodeUnknownActor
	}
	return !slices.ContainsFunc(endpoints, e.Still)
}

// moved is for when the resolver's answer has changed: the actor is looked for again
// before the next call.
func (a *actor) moved() {
	a.mu.Lock()
	a.transport = nil
	a.mu.Unlock()
	a.wake()
}
