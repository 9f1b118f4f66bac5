package actorrpc

import (
	"fmt"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// receiving has the results of a connection that come in parts.
type receiving struct {
	limit  uint64        // of a result, in bytes
	room   *wire.Memory  // of the client
	within time.Duration // that a result may get no further

	mu      sync.Mutex
	results map[uint64]*incoming // by the number of the call; nil: the connection is over
}

// incoming is a result of which not all has come.
type incoming struct {
	reply *wire.Reply
	room  *wire.Reservation
}

func newReceiving(config Config, room *wire.Memory) receiving {
	return receiving{
		limit: config.MaxMessageBytes, room: room, within: config.Keepalive.Every + config.Keepalive.Patience,
		results: map[uint64]*incoming{},
	}
}

// add asks for memory for a result that is announced; false: one is of that number already.
func (r *receiving) add(seq uint64, in *incoming, granted func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.results == nil:
		return true
	case r.results[seq] != nil:
		return false
	}
	r.results[seq] = in
	in.room = r.room.Reserve(in.reply.GetTransferBytes(), granted)
	return true
}

// take is the result of a number that is not wanted any more, or has come; nil: there is none.
func (r *receiving) take(seq uint64) *incoming {
	r.mu.Lock()
	defer r.mu.Unlock()
	in := r.results[seq]
	delete(r.results, seq)
	return in
}

// has reports whether a result is wanted.
func (r *receiving) has(seq uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.results[seq] != nil
}

// end is what had not come when the connection ended.
func (r *receiving) end() map[uint64]*incoming {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.results
	r.results = nil
	return left
}

// announced asks for a result once there is memory for it, if its call waits for it.
func (c *connection) announced(r *wire.Reply) error {
	seq := r.GetSeq()
	if err := wire.CheckTransfer(r.GetTransferBytes(), r.GetResultBytes(), r.GetBufferSizes()); err != nil {
		return err
	}
	of := c.user.expects(c, seq)
	switch {
	case of.former:
		return nil
	case !of.made:
		return &wire.MalformedError{Problem: fmt.Sprintf("a reply to call %d, which was not made", seq)}
	case len(r.GetResult()) > 0:
		return &wire.MalformedError{Problem: "a result in parts that comes as a whole"}
	case r.GetTransferBytes() > c.receiving.limit:
		c.release(seq)
		return c.reply(&wire.Reply{Seq: seq, Error: resultTooLarge(r.GetTransferBytes(), c.receiving.limit)}, nil)
	case of.call == nil || of.call.owner.ended():
		c.release(seq)
		return c.reply(r, nil)
	}
	if !c.receiving.add(seq, &incoming{reply: r}, func() { c.accept(seq, r.GetTransferBytes()) }) {
		return &wire.MalformedError{Problem: fmt.Sprintf("two results of call %d", seq)}
	}
	return nil
}

func resultTooLarge(size, limit uint64) *wire.Error {
	message := fmt.Sprintf("the result is %s; at most %s are taken (max_message_bytes)", sizeText(size), sizeText(limit))
	return (&rpcerror.Error{Code: rpcerror.CodeTooLarge, Message: message, Ran: true}).Wire()
}

// accept takes a result for which there is memory now.
func (c *connection) accept(seq, size uint64) {
	c.wire.Expect(seq, size, c.receiving.within, func() { c.end(errSilent) })
	if !c.receiving.has(seq) {
		c.wire.Forget(seq)
		return
	}
	c.post(&wire.Frame{Kind: &wire.Frame_Accept{Accept: &wire.Accept{Seq: seq}}})
}

// part takes a part of a result. With the last one payload is all of it.
func (c *connection) part(seq uint64, payload [][]byte) error {
	if len(payload) == 0 {
		if of := c.user.expects(c, seq); of.call == nil || of.call.owner.ended() {
			return c.unwanted(seq)
		}
		return nil
	}
	in := c.dropIncoming(seq)
	if in == nil {
		return nil
	}
	c.release(seq)
	r := in.reply
	result, buffers := wire.Split(payload[0], r.GetResultBytes(), r.GetBufferSizes())
	r.Result, r.TransferBytes, r.ResultBytes = result, 0, 0
	return c.reply(r, buffers)
}

// unwanted ends a result whose call was given up meanwhile.
func (c *connection) unwanted(seq uint64) error {
	in := c.dropIncoming(seq)
	if in == nil {
		return nil
	}
	c.release(seq)
	return c.reply(in.reply, nil)
}

// dropIncoming ends receiving a result.
func (c *connection) dropIncoming(seq uint64) *incoming {
	in := c.receiving.take(seq)
	if in != nil {
		c.wire.Forget(seq)
		in.room.Release()
	}
	return in
}

// release tells the server that it need not keep a result.
func (c *connection) release(seq uint64) {
	c.post(&wire.Frame{Kind: &wire.Frame_Release{Release: &wire.Release{Seq: seq}}})
}

// dropAllIncoming gives up what has not come as a whole.
func (c *connection) dropAllIncoming() {
	for seq, in := range c.receiving.end() {
		c.wire.Forget(seq)
		in.room.Release()
	}
}

// inParts reports whether the arguments are sent in parts over a connection.
func (d *delivery) inParts(to *wire.Handshake) bool {
	return to.GetMaxTransferBytes() > 0 && d.bytes > wire.PartsFrom
}

// over is the limit that the call is over, of what a server takes; 0: it is not.
func (d *delivery) over(to *wire.Handshake) (limit uint64) {
	limit, size := to.GetMaxMessageBytes(), d.bytes+d.overhead()
	if d.inParts(to) {
		limit, size = to.GetMaxTransferBytes(), d.bytes
	}
	if limit > 0 && size > limit {
		return limit
	}
	return 0
}

// announce makes a frame the announcement of its payload.
func (d *delivery) announce(f *wire.Call) {
	f.TransferBytes, f.ArgsBytes, f.Args = d.bytes, uint64(len(d.args)), nil
}

// pieces are the payload of the call.
func (d *delivery) pieces() [][]byte { return append([][]byte{d.args}, d.buffers...) }

// accepted sends the payload of a call that the server asks for.
func (q *queue) accepted(seq uint64) {
	d := q.window.at(seq)
	if d == nil || d.owner.ended() || !d.inParts(q.conn.hello) || d.payload == payloadSent {
		return
	}
	d.payload = payloadSent
	q.conn.wire.Transfer(seq, d.pieces(), d.receipt)
}

// payload is how far the payload of a call that is sent in parts is.
type payload string

const (
	payloadWith      payload = "" // it goes with the call
	payloadAnnounced payload = "announced"
	payloadSent      payload = "sent" // or about to be
)

// cut sends no more of a call's payload, and reports whether it surely does not arrive as a whole.
func (q *queue) cut(d *delivery) bool {
	switch d.payload {
	case payloadAnnounced:
		return true
	case payloadSent:
		return q.conn != nil && q.conn.wire.Cut(d.seq)
	case payloadWith:
	}
	return false
}

func (p *peer) accepted(conn *connection, seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.conn == conn {
		p.queue.accepted(seq)
	}
}

func (p *peer) expects(conn *connection, seq uint64) recipient {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.conn != conn {
		return recipient{former: true}
	}
	return recipient{made: seq > 0 && seq <= p.queue.window.last(), call: p.queue.window.at(seq)}
}
