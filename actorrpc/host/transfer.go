package host

import (
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// transferMemory is what a server has for large payloads.
type transferMemory struct {
	room *wire.Memory // for arguments that come in parts
	kept *wire.Memory // for results that are sent so
}

// incoming are the calls of a caller that wait for parts of their arguments, or behind one that does,
// by actor and in order. The session's turn guards it.
type incoming map[string][]*call

// holds takes a call that has to wait, and reports whether it has.
func (in incoming) holds(c *call) bool {
	name := c.in.GetActor()
	held := in[name]
	if c.complete && len(held) == 0 {
		return false
	}
	at := len(held) // before those of later numbers: it may be sent again
	for at > 0 && held[at-1].in.GetSeq() > c.in.GetSeq() {
		at--
	}
	in[name] = append(held[:at:at], append([]*call{c}, held[at:]...)...)
	return true
}

// release is what need not wait any more.
func (in incoming) release() []*call {
	var ready []*call
	for name, held := range in {
		for len(held) > 0 && (held[0].complete || held[0].is(phaseOver)) {
			ready = append(ready, held[0])
			held = held[1:]
		}
		if len(held) == 0 {
			delete(in, name)
		} else {
			in[name] = held
		}
	}
	return ready
}

// cut are the calls whose parts a connection does not bring any more, and those that it brought
// behind them: all of them are sent again, in order.
func (in incoming) cut(from *connection, asks func(*call) answerer) []*call {
	var cut []*call
	for _, held := range in {
		behind := false
		for _, c := range held {
			if behind = behind || !c.complete && c.from == from; behind && asks(c) == answerer(from) {
				cut = append(cut, c)
			}
		}
	}
	return cut
}

// announced reports what is wrong with a call whose payload is to come in parts.
func (c *connection) announced(in *wire.Call) *rpcerror.Error {
	if in.GetTransferBytes() == 0 {
		return nil
	}
	if err := wire.CheckTransfer(in.GetTransferBytes(), in.GetArgsBytes(), in.GetBufferSizes()); err != nil {
		return malformed(err.Error())
	}
	if in.GetSeq() == 0 || len(in.GetArgs()) > 0 {
		return malformed("a call in parts has no number, or arguments of its own")
	}
	return nil
}

// expect asks for the payload of a call once there is memory for it.
func (c *connection) expect(k *call) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.phase == phaseWaits {
		k.room = c.server.room.Reserve(k.transfer, func() { c.accept(k) })
	}
}

func (c *connection) accept(k *call) {
	seq := k.in.GetSeq()
	c.wire.Expect(seq, k.transfer, c.server.stall(), func() {
		k.stopWaiting(busy("no part of the arguments came for %s", c.server.stall()))
	})
	if !k.is(phaseWaits) {
		c.wire.Forget(seq)
		k.room.Release()
		return
	}
	c.post(&wire.Frame{Kind: &wire.Frame_Accept{Accept: &wire.Accept{Seq: seq}}})
}

// stall is how long a transfer may get no further.
func (s *Server) stall() time.Duration { return s.cfg.Keepalive + s.cfg.Patience }

// arrived begins a call all of whose payload is there, and what waited behind it.
func (c *connection) arrived(seq uint64, payload []byte) {
	k := c.server.ledger.running(c.session, seq)
	if k == nil || k.from != c || !k.deliver(payload) {
		return
	}
	c.session.turn.Lock()
	k.complete = true
	c.session.turn.Unlock()
	c.advance()
}

// advance brings the calls of the caller that need not wait any more to their actors.
func (c *connection) advance() {
	c.session.turn.Lock()
	ready := c.session.incoming.release()
	rejections := make([]*answer, len(ready))
	for i, k := range ready {
		rejections[i] = c.server.push(k)
	}
	c.session.turn.Unlock()
	for i, k := range ready {
		k.answer(rejections[i], false)
	}
}

// abandon ends the calls whose parts the connection does not bring any more.
func (c *connection) abandon() {
	answerAll(c.cutOff())
	c.advance()
	for range c.outgoing.end() {
		c.server.leave()
	}
}

// stopped is a call that will not run, with its answer, which is to be handed out.
type stopped struct {
	call   *call
	answer *answer
}

// cutOff has the calls never run whose parts the connection does not bring any more, and those behind
// them. It does so in one turn: what is sent again after it is new.
func (c *connection) cutOff() []stopped {
	c.session.turn.Lock()
	defer c.session.turn.Unlock()
	var all []stopped
	for _, k := range c.session.incoming.cut(c, c.server.ledger.asks) {
		e := &rpcerror.Error{Code: rpcerror.CodeUnavailable, Message: "the connection broke before all of the arguments had come"}
		if a := k.drop(e); a != nil {
			c.server.ledger.refuse(k)
			all = append(all, stopped{k, a})
		}
	}
	return all
}

func answerAll(all []stopped) {
	for _, s := range all {
		s.call.answer(s.answer, false)
	}
}

// deliver gives a call its payload, and reports whether it waits for that.
func (c *call) deliver(payload []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != phaseWaits || c.in.GetArgs() != nil {
		return false
	}
	c.in.Args, c.buffers = wire.Split(payload, c.in.GetArgsBytes(), c.in.GetBufferSizes())
	return true
}

// discharge gives back what a call that is answered held of the memory for transfers.
func (c *call) discharge() {
	if c.transfer == 0 {
		return
	}
	c.mu.Lock()
	room := c.room
	c.mu.Unlock()
	room.Release()
	if c.from != nil {
		c.from.wire.Forget(c.in.GetSeq())
		go c.from.advance() // the session's turn may be held here
	}
}

// outgoing are the results of a connection that its client takes in parts, by the numbers of their calls.
// The zero value has none.
type outgoing struct {
	mu    sync.Mutex
	calls map[uint64]bool // whether it was accepted
	ended bool
}

// add notes a result that was announced; false: it was before, or the connection is over.
func (o *outgoing) add(seq uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, known := o.calls[seq]; known || o.ended {
		return false
	}
	if o.calls == nil {
		o.calls = map[uint64]bool{}
	}
	o.calls[seq] = false
	return true
}

// accept reports whether a result was announced and not accepted before.
func (o *outgoing) accept(seq uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	accepted, known := o.calls[seq]
	if known {
		o.calls[seq] = true
	}
	return known && !accepted
}

// remove reports whether a result was announced, which is over now.
func (o *outgoing) remove(seq uint64) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.calls[seq]
	delete(o.calls, seq)
	return known
}

func (o *outgoing) some() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.calls) > 0
}

// end is what was announced when the connection ended.
func (o *outgoing) end() map[uint64]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	left := o.calls
	o.calls = nil
	return left
}

// inParts reports whether a reply is sent in parts.
func (c *connection) inParts(reply *wire.Reply, buffers [][]byte) bool {
	return c.takesParts > 0 && reply.GetSeq() > 0 && payloadSize(reply, buffers) > wire.PartsFrom
}

func payloadSize(reply *wire.Reply, buffers [][]byte) uint64 {
	size := uint64(len(reply.GetResult()))
	for _, b := range buffers {
		size += uint64(len(b))
	}
	return size
}

// announcement is the frame that offers a result. The call counts as unanswered until the client has it.
func (c *connection) announcement(reply *wire.Reply, buffers [][]byte) *wire.Frame {
	if c.outgoing.add(reply.GetSeq()) {
		c.server.active.Add(1)
	}
	return &wire.Frame{Kind: &wire.Frame_Reply{Reply: &wire.Reply{
		Seq: reply.GetSeq(), Codec: reply.GetCodec(), Incarnation: reply.GetIncarnation(), BufferSizes: reply.GetBufferSizes(),
		TransferBytes: payloadSize(reply, buffers), ResultBytes: uint64(len(reply.GetResult())),
	}}}
}

// transfer sends a result that the client has accepted. It is the ledger's, which may have to forget it.
func (c *connection) transfer(seq uint64) {
	if !c.outgoing.accept(seq) {
		return
	}
	a := c.server.ledger.lend(c.session, seq, func() { c.forgotten(seq) })
	if a == nil {
		c.forgotten(seq)
		return
	}
	c.wire.Transfer(seq, append([][]byte{a.reply.GetResult()}, a.buffers...), nil)
}

// forgotten tells the client that it will not get the rest of a result.
func (c *connection) forgotten(seq uint64) {
	c.wire.Cut(seq)
	if !c.outgoing.remove(seq) {
		return
	}
	c.post(&wire.Frame{Kind: &wire.Frame_Reply{Reply: &wire.Reply{Seq: seq, Error: forgotten().Wire()}}})
	c.server.leave()
}

// released notes that the client needs no more of a result.
func (c *connection) released(seq uint64) {
	if !c.outgoing.remove(seq) {
		return
	}
	c.wire.Cut(seq)
	c.server.ledger.free(c.session, seq)
	c.server.leave()
}

// keep waits until there is room to keep a large result: until others are with their callers, or none of
// these gets any further.
func (s *Server) keep(c *call, a *answer) *wire.Reservation {
	to, ok := c.to.(*connection)
	if !ok || c.entry == nil || !to.inParts(a.reply, a.buffers) {
		return nil
	}
	there := make(chan struct{})
	room := s.kept.Reserve(payloadSize(a.reply, a.buffers), func() { close(there) })
	patience := time.NewTimer(s.stall())
	defer patience.Stop()
	for {
		select {
		case <-there:
			return room
		case <-patience.C:
		}
		if !s.ledger.evict() {
			return room // the others are waited for, too
		}
		patience.Reset(0)
	}
}
