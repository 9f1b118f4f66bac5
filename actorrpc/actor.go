package actorrpc

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/fray-ml/fray/actorrpc/codec"
	"github.com/fray-ml/fray/actorrpc/wire"
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
	client   *Client
	key      actorKey
	resolver Resolver
	load     atomic.Int64 // calls without an answer
	holds    atomic.Int64 // calls that must be settled before others are sent
	tries    atomic.Int64 // refusals in a row
	crowded  atomic.Bool  // more may wait than are to
	poke     chan struct{}

	mu       sync.Mutex
	via      transport // nil: not found yet, or not any more
	endpoint Endpoint
	seen     Endpoint  // where the resolver had it last
	place    transport // which has calls that were sent to the endpoint; nil: none were
	orders   uint64
	queue    backlog
	seeking  bool // seek runs
	refused  *refusal
	failing  Endpoint        // where nobody answered
	problem  *Error          // why it is not found
	declared map[string]bool // which methods are idempotent; nil: not known
}

// refusal is an answer that sends the actor's calls elsewhere, or asks for patience.
type refusal struct {
	endpoint Endpoint
	err      *Error
	until    time.Time // nothing is sent there before
}

func newActor(client *Client, key actorKey, resolver Resolver) *actor {
	return &actor{
		client: client, key: key, resolver: resolver, poke: make(chan struct{}, 1),
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
	via := a.via
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
	c.via = a.via
	c.endpoint = a.endpoint
	return a.via.submit(c)
}

// enqueue has a call wait until the actor is found. It needs the lock.
func (a *actor) enqueue(c *call) {
	if c.findBy.IsZero() {
		c.findBy = time.Now().Add(a.client.config.ResolveTimeout)
	}
	a.queue.insert(c)
	if a.queue.over() {
		a.crowded.Store(true)
	}
	if !a.seeking {
		a.seeking = a.client.run(a.seek)
		if !a.seeking {
			a.queue.filter(func(*call) bool { return true })
			c.settled()
			c.fail(a.verdict(c, errClientClosed()))
		}
	}
}

// throttle has whoever made a call wait while too much waits for the actor to be
// found, or until the call is over: at its deadline, or when the actor was looked for
// for ResolveTimeout.
func (a *actor) throttle(done <-chan struct{}) {
	for a.crowded.Load() {
		a.mu.Lock()
		room := a.queue.await()
		a.crowded.Store(room != nil)
		a.mu.Unlock()
		if room == nil {
			return
		}
		select {
		case <-room:
		case <-done:
			return
		}
	}
}

func errClientClosed() *Error {
	return &Error{Code: CodeUnavailable, Message: "the client was closed"}
}

// requeue has a call wait that was sent and surely did not run, or may be repeated.
func (a *actor) requeue(c *call) {
	a.mu.Lock()
	a.enqueue(c)
	a.mu.Unlock()
	c.settled()
}

// settled says that the call holds up no others any more.
func (c *call) settled() {
	if c.held.CompareAndSwap(true, false) && c.actor.holds.Add(-1) == 0 {
		c.actor.wake()
	}
}

// hold lets nothing be sent to the call's actor until it is settled.
func (c *call) hold() {
	if c.held.CompareAndSwap(false, true) {
		c.actor.holds.Add(1)
	}
}

// drop takes a call out of wherever it is. It reports whether it may have arrived
// and, if not, why the actor is not found.
func (a *actor) drop(c *call) (mayHaveArrived bool, problem *Error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.dropped = true
	if a.queue.remove(c) {
		return c.loss != nil, a.problem
	}
	mayHaveArrived = c.loss != nil
	if c.via != nil && c.via.withdraw(c) {
		mayHaveArrived = true
	}
	return mayHaveArrived, nil
}

// answered takes the server's answer to a call.
func (a *actor) answered(c *call, reply *wire.Reply, results [][]byte) {
	err := ErrorOf(reply.GetError())
	if err == nil {
		a.learn(c, reply.GetIncarnation())
		c.settled()
		c.finish(reply, results, nil)
		return
	}
	switch {
	case !err.Ran && resendable(err.Code):
		a.turnedAway(c, err)
	case err.Code == CodeMaybeExecuted:
		a.lost(c, err)
	default:
		a.learn(c, reply.GetIncarnation())
		c.settled()
		a.mu.Lock()
		err.Ran = err.Ran || c.loss != nil
		a.mu.Unlock()
		c.fail(err)
	}
}

// resendable are the codes of calls that did not run and may elsewhere or later.
func resendable(code Code) bool {
	switch code {
	case CodeStale, CodeStopping, CodeUnknownActor, CodeBusy:
		return true
	case CodeApplication, CodeUnknownMethod, CodeBadArguments, CodeEncoding, CodeTooLarge, CodeMalformed, CodeVersion, CodeDeadline,
		CodeCancelled, CodeMaybeExecuted, CodeDenied, CodeInternal, CodeUnavailable:
	}
	return false
}

// learn notes who answered, where the resolver did not know.
func (a *actor) learn(c *call, incarnation string) {
	if a.tries.Load() != 0 {
		a.tries.Store(0)
	}
	if c.endpoint.Incarnation != "" || incarnation == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.endpoint.same(c.endpoint) {
		a.endpoint.Incarnation = incarnation
	}
}

// turnedAway has a call that was refused sent again, elsewhere or later, in order
// with those that are with the server still and may be refused as well.
func (a *actor) turnedAway(c *call, err *Error) {
	a.mu.Lock()
	if a.refused == nil || !a.refused.endpoint.same(c.endpoint) {
		tries := a.tries.Add(1)
		a.refused = &refusal{endpoint: c.endpoint, err: err, until: time.Now().Add(backoff(int(tries)))}
		if err.Code != CodeBusy {
			a.resolver.Forget(a.key.name)
			c.via.hold(a, c.endpoint)
		}
	}
	c.refusal = err
	a.enqueue(c)
	a.mu.Unlock()
	c.settled()
}

// lost deals with a call that may have run, and whose answer will not come.
func (a *actor) lost(c *call, err *Error) {
	a.mu.Lock()
	defer c.settled()
	c.loss = err
	switch {
	case c.repeatable():
		c.findBy = time.Time{}
		a.enqueue(c)
	case a.declaration(c.method) == declaredNot || c.sends >= maxSends:
		c.fail(err)
	default:
		c.asks, c.findBy = true, time.Time{}
		a.enqueue(c)
	}
	a.mu.Unlock()
}

// declaration is what is known of a method. It needs the lock.
func (a *actor) declaration(method string) declaration {
	if a.declared == nil {
		return declarationUnknown
	}
	if a.declared[method] {
		return declaredIdempotent
	}
	return declaredNot
}

// elsewhere reports whether the resolver is sure that an endpoint is not the actor's any more.
func (a *actor) elsewhere(ctx context.Context, e Endpoint) bool {
	endpoints, err := a.resolver.Resolve(ctx, a.key.name)
	if err != nil {
		return CodeOf(err) == CodeUnknownActor
	}
	return !slices.ContainsFunc(endpoints, e.still)
}

// moved is told that the resolver's answer changed: the actor is looked for again
// before the next call.
func (a *actor) moved() {
	a.mu.Lock()
	a.via = nil
	a.mu.Unlock()
	a.wake()
}

// newCall encodes a call.
func (a *actor) newCall(method string, given arguments) (*call, *Error) {
	c := &call{actor: a, method: method, options: given.options, codec: codec.Msgpack, done: make(chan struct{})}
	var err error
	if c.args, c.buffers, err = codec.EncodeArgs(c.codec, given.positional, given.named); err != nil {
		return nil, encodingError(a.key.name, method, err)
	}
	return c, c.sendable()
}

// sendable refuses a call that is larger than this side allows, or whose names no frame carries.
func (c *call) sendable() *Error {
	name := c.actor.key.name
	switch {
	case !utf8.ValidString(name):
		return c.named(unknownActor(name, nil))
	case !utf8.ValidString(c.method):
		return c.named(&Error{Code: CodeUnknownMethod, Message: fmt.Sprintf("no method %q", c.method)})
	}
	c.bytes = uint64(len(c.args))
	for _, b := range c.buffers {
		c.bytes += uint64(len(b))
	}
	if limit := c.actor.client.config.MaxMessageBytes; c.bytes+c.overhead() > limit {
		return c.named(tooLarge(c.bytes, limit))
	}
	return nil
}

// overhead is at most what a frame has beside its arguments, in bytes.
func (c *call) overhead() uint64 {
	const fields = 192
	return fields + uint64(len(c.method)+len(c.actor.key.name)+10*len(c.buffers))
}
