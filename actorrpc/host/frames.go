package host

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// connection is one of a client that speaks frames.
type connection struct {
	server  *Server
	net     net.Conn
	wire    *wire.Conn
	session *session
	caller  string
	limits
	streams  bool // the client takes them as the answer to any call
	done     chan struct{}
	pending  atomic.Int64
	deferred deferred
	outgoing outgoing
}

// limits are how much a client takes, in bytes.
type limits struct {
	limit      uint64 // of a frame; 0: any
	takesParts uint64 // of a payload in parts; 0: none
}

var (
	_ answerer = (*connection)(nil)
	_ sink     = (*connection)(nil)
)

// maxPeerName is how long Handshake.peer may be, in bytes.
const maxPeerName = 64

// serveFrames serves a client until it goes, breaks the protocol or is silent for too long.
func (s *Server) serveFrames(raw net.Conn) {
	defer raw.Close()
	var preface [len(wire.Preface) - len(framesStart)]byte
	if _, err := io.ReadFull(raw, preface[:]); err != nil || framesStart+string(preface[:]) != wire.Preface {
		return
	}
	c := &connection{server: s, net: raw, wire: wire.NewConn(raw, s.cfg.MaxMessageBytes), done: make(chan struct{})}
	if e := c.handshake(); e != nil {
		s.log.Warn("a peer was refused", "peer", raw.RemoteAddr().String(), "error", e.Message)
		closeWith(raw, c.wire, e)
		return
	}
	c.session = s.ledger.open(c.caller, time.Now())
	defer func() { s.ledger.close(c.session, time.Now()) }()
	if !s.join(c) {
		closeWith(raw, c.wire, stopping(false))
		return
	}
	defer c.leaveStreams()
	defer close(c.done)
	defer s.leaveConnection(c)
	defer c.abandon()
	watch := newWatch(c.wire, wire.Silence{Every: s.cfg.Keepalive, Patience: s.cfg.Patience}, func() {
		s.log.Warn("a silent connection was ended", "peer", raw.RemoteAddr().String())
		raw.Close()
	})
	defer watch.stop()
	if e := c.read(); e != nil {
		s.log.Warn("a connection was ended", "peer", raw.RemoteAddr().String(), "error", e.Message)
		closeWith(raw, c.wire, e)
	}
}

func (s *Server) join(c *connection) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.connections[c] = struct{}{}
	return true
}

func (s *Server) leaveConnection(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.connections, c)
}

// handshake exchanges Handshakes, or returns why the peer is not served.
func (c *connection) handshake() *rpcerror.Error {
	cfg := c.server.cfg
	hello := &wire.Handshake{
		Version: wire.Version, Peer: c.server.peer, Namespace: cfg.Namespace, MaxMessageBytes: min(cfg.MaxMessageBytes, wire.MaxFrame),
		MaxTransferBytes: cfg.MaxMessageBytes, MaxPending: uint32(cfg.MaxPending), Language: "go",
	}
	if err := c.wire.Send(&wire.Frame{Kind: &wire.Frame_Handshake{Handshake: hello}}, nil, nil); err != nil {
		return malformed("the peer left before it said who it is")
	}
	f, _, err := c.wire.Receive()
	if err != nil {
		return malformed("no Handshake came: " + err.Error())
	}
	peer := f.GetHandshake()
	switch {
	case peer == nil:
		return malformed("the first frame is not a Handshake")
	case peer.GetVersion() != wire.Version:
		return otherVersion(peer.GetVersion())
	case peer.GetPeer() == "" || len(peer.GetPeer()) > maxPeerName:
		return malformed("Handshake.peer is empty or too long")
	case cfg.Namespace != "" && peer.GetNamespace() != "" && cfg.Namespace != peer.GetNamespace():
		return &rpcerror.Error{Code: rpcerror.CodeDenied, Message: "peers of another namespace are not served"}
	}
	c.caller = strings.Clone(peer.GetPeer())
	c.limits = limits{peer.GetMaxMessageBytes(), peer.GetMaxTransferBytes()}
	c.streams = peer.GetStreams()
	if c.net.SetReadDeadline(time.Time{}) != nil {
		return malformed("the peer has left")
	}
	return nil
}

func malformed(problem string) *rpcerror.Error {
	return &rpcerror.Error{Code: rpcerror.CodeMalformed, Message: problem}
}

func otherVersion(theirs uint32) *rpcerror.Error {
	older := "the server"
	if theirs < wire.Version {
		older = "this program"
	}
	return &rpcerror.Error{
		Code:    rpcerror.CodeVersion,
		Message: fmt.Sprintf("the server speaks version %d of the actor protocol, this program version %d: update %s", wire.Version, theirs, older),
	}
}

// read serves frames until the connection ends; the error is for the peer.
func (c *connection) read() *rpcerror.Error {
	for {
		f, buffers, err := c.wire.Receive()
		if oversize, ok := errors.AsType[*wire.OversizeError](err); ok && oversize.Frame.GetCall() != nil {
			c.call(oversize.Frame.GetCall(), nil, tooLarge("the arguments are", oversize.Size, oversize.Limit))
			continue
		} else if ok {
			return tooLarge("a frame is", oversize.Size, oversize.Limit)
		}
		if problem, ok := errors.AsType[*wire.MalformedError](err); ok {
			return malformed(problem.Error())
		}
		if err != nil {
			return nil // the peer left, or was let go
		}
		if e := c.handle(f, buffers); e != nil {
			return e
		}
	}
}

// handle serves one frame.
func (c *connection) handle(f *wire.Frame, buffers [][]byte) *rpcerror.Error {
	switch kind := f.GetKind().(type) {
	case *wire.Frame_Call:
		if e := c.announced(kind.Call); e != nil {
			return e
		}
		c.call(kind.Call, buffers, nil)
	case *wire.Frame_Part:
		if len(buffers) > 0 {
			c.arrived(kind.Part.GetSeq(), buffers[0])
		}
	case *wire.Frame_Accept:
		c.transfer(kind.Accept.GetSeq())
	case *wire.Frame_Release:
		c.released(kind.Release.GetSeq())
	case *wire.Frame_Cancel:
		if running := c.server.ledger.running(c.session, kind.Cancel.GetSeq()); running != nil {
			running.stop(cancelledByCaller())
		}
	case *wire.Frame_StreamAck:
		if s := c.server.ledger.stream(c.session, kind.StreamAck.GetSeq()); s != nil {
			s.ack(kind.StreamAck.GetTaken())
		}
	case *wire.Frame_Ping:
		c.server.ledger.ack(c.session, kind.Ping.GetAcked())
		c.post(&wire.Frame{Kind: &wire.Frame_Pong{Pong: &wire.Pong{Id: kind.Ping.GetId()}}})
	case *wire.Frame_Pong:
	case *wire.Frame_ListMethods:
		out := c.server.listMethods(kind.ListMethods.GetActor())
		out.Id = kind.ListMethods.GetId()
		c.post(&wire.Frame{Kind: &wire.Frame_Methods{Methods: out}})
	case *wire.Frame_ListActors:
		out := &wire.ListActorsResponse{Id: kind.ListActors.GetId(), Actors: c.server.listActors(kind.ListActors.GetPrefix())}
		c.post(&wire.Frame{Kind: &wire.Frame_Actors{Actors: out}})
	case *wire.Frame_Close:
		c.net.Close() // the next read ends
	default:
		return malformed("a frame is of a kind that a server does not get")
	}
	return nil
}

// post sends a frame without waiting for that. If it fails, the reader ends, too.
func (c *connection) post(f *wire.Frame) { _ = c.wire.Post(f, nil) }

// call leads a call to its actor, unless it was sent before or cannot be taken.
func (c *connection) call(in *wire.Call, buffers [][]byte, rejection *rpcerror.Error) {
	now := time.Now()
	k := &call{
		server: c.server, in: in, buffers: buffers, caller: c.caller, arrived: now, to: c,
		deadline: deadlineOf(now, in.GetTimeoutNs()), transferred: transferred{transfer: in.GetTransferBytes(), complete: in.GetTransferBytes() == 0, from: c},
		takes: takingOf(in, c.streams), itemLimit: c.limit,
	}
	k.memory = wire.DecodedLimit(c.server.cfg.MaxMessageBytes, max(k.transfer, uint64(k.size())))
	if limit := c.server.cfg.MaxMessageBytes; k.transfer > limit {
		rejection = tooLarge("the arguments are", k.transfer, limit)
	}
	if n := c.pending.Add(1); n > int64(c.server.cfg.MaxPending) && rejection == nil {
		rejection = busy("%d calls of this connection are not answered (max_pending)", n-1)
	}
	if in.GetSeq() == 0 {
		k.answer(c.server.submit(k, rejection), false)
		return
	}
	c.session.turn.Lock()
	v, a := c.server.ledger.begin(c.session, k, c)
	if v == dispositionNew {
		a = c.server.submit(k, rejection)
	}
	c.session.turn.Unlock() // before anything is written
	switch v {
	case dispositionNew:
		if k.former != nil {
			k.former.stopWaiting(cancelledByCaller())
		}
		if a == nil && k.transfer > 0 {
			c.expect(k)
		}
		k.answer(a, false)
	case dispositionReplay, dispositionAwait:
		if s := c.server.ledger.stream(c.session, in.GetSeq()); s != nil {
			s.attach(c, in.GetStream())
		} else if v == dispositionReplay {
			c.answer(a.reply, a.buffers, false)
		}
	case dispositionOld:
		c.pending.Add(-1)
	case dispositionLost:
		a := k.failed(&rpcerror.Error{
			Code: rpcerror.CodeMaybeExecuted, Message: "the connection broke after the call was sent: it may have run", Ran: true,
		})
		c.answer(a.reply, nil, false)
	}
}

// close sends the last frame of a server that has drained, and waits until the
// client has gone, for a moment.
func (c *connection) close() {
	last := &wire.Frame{Kind: &wire.Frame_Close{Close: &wire.Close{Error: stopping(false).Wire()}}}
	// The last frame must not be sent while replies are deferred: after it the client expects none.
	if c.deferred.some() || c.outgoing.some() || c.wire.Finish(last, closeTime) != nil || c.net.SetReadDeadline(time.Now().Add(closeTime)) != nil {
		c.net.Close()
	}
	<-c.done
}

// answer sends a reply, without waiting for a client that reads slowly.
func (c *connection) answer(reply *wire.Reply, buffers [][]byte, unhurried bool) {
	c.pending.Add(-1) // before the client can know
	f, buffers := c.frame(reply, buffers)
	if !c.wire.Offer(f, buffers, unhurried) {
		if reply.GetSeq() > 0 {
			c.deferReply(reply.GetSeq())
			return
		}
		_ = c.wire.Post(f, buffers) // the ledger does not have it
	}
}

// frame is a reply as it is sent, with its buffers: an error instead of one that is larger than the client takes.
func (c *connection) frame(reply *wire.Reply, buffers [][]byte) (*wire.Frame, [][]byte) {
	f := &wire.Frame{Kind: &wire.Frame_Reply{Reply: reply}}
	inParts := c.inParts(reply, buffers)
	limit := c.limit
	if inParts {
		limit = c.takesParts
	}
	if size := over(f, buffers, limit); size > 0 {
		e := tooLarge("the result is", size, limit)
		e.Ran = true
		f.Kind = &wire.Frame_Reply{Reply: &wire.Reply{Seq: reply.GetSeq(), Codec: reply.GetCodec(), Incarnation: reply.GetIncarnation(), Error: e.Wire()}}
		return f, nil
	}
	if inParts {
		return c.announcement(reply, buffers), nil
	}
	return f, buffers
}

// over is the size of a frame that is larger than the limit, 0 of others.
func over(f *wire.Frame, buffers [][]byte, limit uint64) uint64 {
	const small = 4 << 10 // no client takes less
	reply := f.GetReply()
	size := len(reply.GetResult())
	for _, b := range buffers {
		size += len(b)
	}
	if limit == 0 || reply.GetError() != nil || size <= small {
		return 0
	}
	total := uint64(size - len(reply.GetResult()) + proto.Size(f))
	if total > limit {
		return total
	}
	return 0
}

// deferReply has a reply sent once others have been. Until then it is the ledger's, which has
// only so much room; the call counts as unanswered.
func (c *connection) deferReply(seq uint64) {
	c.server.active.Add(1)
	c.pending.Add(1)
	if c.deferred.add(seq) {
		go c.catchUp()
	}
}

// catchUp sends the deferred replies, one after the other as fast as the client reads.
func (c *connection) catchUp() {
	for more := true; more; {
		seq := c.deferred.first()
		reply, buffers := &wire.Reply{Seq: seq, Error: forgotten().Wire()}, [][]byte(nil)
		if a := c.server.ledger.answer(c.session, seq); a != nil {
			reply, buffers = a.reply, a.buffers
		}
		c.pending.Add(-1)
		_ = c.wire.Post(c.frame(reply, buffers)) // the reader finds out, too
		more = c.deferred.next()
		c.server.leave()
	}
}

func forgotten() *rpcerror.Error {
	return &rpcerror.Error{
		Code: rpcerror.CodeMaybeExecuted, Message: "the call was answered, and its reply forgotten as the caller read too slowly", Ran: true,
	}
}

// items queues items of a stream. The stream bounds how many there are.
func (c *connection) items(f *wire.Items, buffers [][]byte) {
	_ = c.wire.Queue(&wire.Frame{Kind: &wire.Frame_Items{Items: f}}, buffers, nil) // the reader finds out, too
}

func (c *connection) flush() { _ = c.wire.Flush() }

func (c *connection) left() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// leaveStreams ends the streams that the connection carried, unless their caller comes back.
func (c *connection) leaveStreams() {
	for _, e := range c.server.ledger.streamsOf(c.session, c) {
		c.server.expire(e, c)
	}
}
