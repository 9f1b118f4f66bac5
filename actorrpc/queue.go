package actorrpc

import (
	"cmp"
	"slices"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// maxPending is how many calls of one connection are on the way at most.
const maxPending = 10_000

// queue has the calls of one peer in their order, and whether they can be sent there. It keeps
// the calls without an answer when a connection breaks, until it is known who answers at
// the address now. Its peer's lock guards all of it: every method needs that lock.
type queue struct {
	conn    *connection  // nil: not connected
	leaving bool         // the server at the other end of conn announced that it stops
	dialing *dialAttempt // nil: none
	process string       // that the window's numbers are of
	window  window
	waiting []*delivery   // beyond what the server takes at once
	drained chan struct{} // closed when waiting gets shorter; nil: nothing waits for that
	used    uint64        // calls submitted
	retired bool          // the client has forgotten the peer
}

// submit numbers a call and queues it for the connection. It reports false without one.
func (q *queue) submit(d *delivery) bool {
	if q.conn == nil || q.leaving {
		return false
	}
	if limit := d.over(q.conn.hello); limit > 0 {
		d.owner.fail(tooLarge(d.bytes, limit))
		return true
	}
	if d.behindWaiter(q.process) {
		return true
	}
	q.used++
	d.reset()
	if len(q.waiting) > 0 || q.full() {
		q.waiting = append(q.waiting, d)
		return true
	}
	d.sends++
	q.window.add(d)
	q.transmit(d)
	return true
}

// full reports whether the server takes no more calls before it has answered some.
func (q *queue) full() bool {
	limit := int(min(q.conn.hello.GetMaxPending(), maxPending))
	return q.window.open >= cmp.Or(limit, maxPending)
}

// transmit queues a numbered call. What goes wrong with the connection is found by
// its reader.
func (q *queue) transmit(d *delivery) {
	f := d.frame()
	f.Acked = q.window.acked
	d.arrived = d.mayHaveArrived()
	d.receipt, d.payload = &wire.Receipt{}, payloadWith
	if d.inParts(q.conn.hello) {
		d.payload = payloadAnnounced
		d.announce(f)
		_ = q.conn.wire.Queue(&wire.Frame{Kind: &wire.Frame_Call{Call: f}}, nil, nil)
		return
	}
	_ = q.conn.wire.Queue(&wire.Frame{Kind: &wire.Frame_Call{Call: f}}, d.buffers, d.receipt)
}

// refill sends calls that waited for others to be answered.
func (q *queue) refill() {
	if len(q.waiting) == 0 || q.conn == nil {
		return
	}
	sent := false
	for len(q.waiting) > 0 && !q.full() {
		d := q.waiting[0]
		q.waiting = q.waiting[1:]
		if !d.owner.ended() {
			d.sends++
			q.window.add(d)
			q.transmit(d)
			sent = true
		}
	}
	q.makeRoom()
	if sent {
		q.conn.flushLater()
	}
}

// makeRoom wakes the callers that wait for room.
func (q *queue) makeRoom() {
	if q.drained != nil {
		close(q.drained)
		q.drained = nil
	}
}

// await is closed once fewer calls wait; nil: none does.
func (q *queue) await() <-chan struct{} {
	if len(q.waiting) == 0 {
		return nil
	}
	if q.drained == nil {
		q.drained = make(chan struct{})
	}
	return q.drained
}

// withdraw asks the server not to run a call, or to end it. Its number stays taken until that is
// answered. It reports whether the call may have arrived.
func (q *queue) withdraw(d *delivery) bool {
	if i := slices.Index(q.waiting, d); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		q.makeRoom()
		return false
	}
	if !q.window.has(d) {
		return d.mayHaveArrived()
	}
	if q.conn == nil { // it is not sent again
		q.window.take(d.seq)
		d.owner.settled()
		return d.mayHaveArrived()
	}
	incomplete := q.cut(d)
	q.conn.post(&wire.Frame{Kind: &wire.Frame_Cancel{Cancel: &wire.Cancel{Seq: d.seq}}})
	return !incomplete || d.arrived // what waits to be written will be
}

// hold holds the unanswered calls that are for one endpoint of an actor, and returns them.
func (q *queue) hold(actor locator, e resolver.Endpoint) []*delivery {
	var held []*delivery
	for _, d := range q.window.calls {
		if d != nil && d.locator == actor && d.endpoint.Same(e) && !d.owner.ended() {
			d.owner.hold()
			held = append(held, d)
		}
	}
	return held
}

// takeOut ends the queue's part in calls that are unanswered still.
func (q *queue) takeOut(calls []*delivery) (mayHaveRun, notRun []*delivery) {
	calls = slices.DeleteFunc(calls, func(d *delivery) bool { return !q.window.has(d) })
	for _, d := range calls {
		q.window.take(d.seq)
	}
	return partition(calls)
}

// connected has the calls go over a new connection. If the same process answers, all calls
// without an answer are sent again under their numbers, which it knows. The others are
// returned: one that may be why connections break, those that may have run and those that did not.
func (q *queue) connected(conn *connection) (blamed *delivery, mayHaveRun, notRun []*delivery) {
	gone := q.window.all()
	same := conn.hello.GetPeer() == q.process
	if same {
		gone = slices.DeleteFunc(gone, func(d *delivery) bool { return d.attempt < maxSends })
		for _, d := range gone {
			q.window.take(d.seq)
		}
	} else {
		q.window, q.process = window{}, conn.hello.GetPeer()
	}
	mayHaveRun, notRun = partition(gone)
	if same && len(mayHaveRun) == 0 && len(notRun) > 0 {
		blamed, notRun = notRun[0], notRun[1:]
	}
	q.conn, q.leaving, q.dialing = conn, false, nil
	for _, d := range q.window.all() {
		d.attempt++
		q.transmit(d)
		d.owner.settled()
	}
	return blamed, mayHaveRun, notRun
}

// disconnected holds the calls of a connection that is over. Those that waited to be sent
// are to go back to their actors; the unanswered ones stay in the window until it is known who answers
// at the address now. If the server's last frame was that it stops they leave the window, too:
// none of them ran over this connection, though one may have over an earlier one.
func (q *queue) disconnected(stopped bool) (back, unanswered, mayHaveRun []*delivery) {
	q.conn, q.leaving = nil, false
	for _, d := range q.window.all() {
		if d.owner.ended() { // given up: it is not sent again
			q.window.take(d.seq)
		}
	}
	back, unanswered = q.waiting, q.window.all()
	q.waiting = nil
	for _, d := range slices.Concat(unanswered, back) {
		d.owner.hold()
	}
	if stopped {
		var notRun []*delivery
		mayHaveRun, notRun = q.rejected(unanswered)
		back, unanswered = append(notRun, back...), nil
	}
	q.makeRoom()
	return back, unanswered, mayHaveRun
}

// rejected takes out of the window what a server that stopped did not answer.
func (q *queue) rejected(calls []*delivery) (mayHaveRun, notRun []*delivery) {
	for _, d := range calls {
		q.window.take(d.seq)
		d.receipt = nil
	}
	return partition(calls)
}

// idle reports whether the peer has neither a connection nor calls.
func (q *queue) idle() bool {
	return q.conn == nil && q.dialing == nil && q.window.open == 0 && len(q.waiting) == 0
}
