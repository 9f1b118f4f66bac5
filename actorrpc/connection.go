package actorrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

// lastWords is how long the end of a client may take for what waits to be written.
const lastWords = time.Second

// maxStray is how many replies that nothing waits for a server may send.
const maxStray = 100_000

// connection is one connection to a server. It reads what the server sends, and ends when
// the server is silent, breaks the protocol or is not needed any more.
type connection struct {
	address   string
	log       *slog.Logger
	keepalive Keepalive
	caller    string // the client's name in it
	wire      *wire.Conn
	hello     *wire.Handshake // the server's
	user      connectionUser
	over      chan struct{}
	ending    sync.Once
	pongs     atomic.Bool // one is being written
	silent    atomic.Bool // the server was, for as long as that is borne
	questions questions
	receiving receiving

	// Of the reader.
	last  bool // nothing came after the server's notice that it stops
	stray int
}

// connectionUser has the calls that go over a connection.
type connectionUser interface {
	// replied finds the unanswered call of a number, which is answered from now on.
	replied(c *connection, seq uint64) recipient
	// streams finds the unanswered call of a number.
	streams(c *connection, seq uint64) recipient
	// leaves is called when the server stops: it takes no new calls.
	leaves(c *connection)
	// lost is called once, when nothing more comes from the connection. stopped: the
	// server's last frame was that it stops.
	lost(c *connection, stopped bool)
	// expects finds the unanswered call of a number, which remains so.
	expects(c *connection, seq uint64) recipient
	// accepted is called when the server asks for the payload of a call.
	accepted(c *connection, seq uint64)
	// usage is how many calls were submitted, and whether some have no answer yet.
	usage() (calls uint64, busy bool)
	// acked is the number up to which all calls are answered.
	acked() uint64
}

// recipient is the call that a reply is for.
type recipient struct {
	former bool      // of a connection that is not the user's any more
	made   bool      // a call was made of that number
	call   *delivery // nil: it had its answer, or was given up before the connection broke
}

// end closes the connection, for a reason.
func (c *connection) end(cause error) {
	c.ending.Do(func() {
		c.log.Debug("a connection to a server of actors ended", "address", c.address, "cause", cause)
		if errors.Is(cause, errClosing) { // servers are to hear of what was cancelled just now
			c.wire.FlushWithin(lastWords)
		}
		_ = c.wire.Close()
		close(c.over)
	})
}

// post sends a frame without waiting for that. A failure is the reader's, too.
func (c *connection) post(f *wire.Frame) {
	_ = c.wire.Queue(f, nil, nil)
	c.flushLater()
}

func (c *connection) flushLater() {
	go func() { _ = c.wire.Flush() }()
}

// reject closes the connection to a server that does not keep to the protocol.
func (c *connection) reject(problem string) {
	err := &rpcerror.Error{Code: rpcerror.CodeMalformed, Message: problem}
	c.post(&wire.Frame{Kind: &wire.Frame_Close{Close: &wire.Close{Error: err.Wire()}}})
	c.end(err)
}

// read takes what the server sends until the connection ends.
func (c *connection) read(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { c.end(errClosing) })
	defer stop()
	err := c.receive()
	malformed := (*wire.MalformedError)(nil)
	oversize := (*wire.OversizeError)(nil)
	switch {
	case errors.As(err, &malformed), errors.As(err, &oversize):
		c.reject(err.Error())
	default:
		c.end(err)
	}
	c.wire.Settle()
	c.dropAllIncoming()
	c.user.lost(c, c.last && errors.Is(err, io.EOF))
}

func (c *connection) receive() error {
	for {
		f, buffers, err := c.wire.Receive()
		if over, ok := errors.AsType[*wire.OversizeError](err); ok && over.Frame.GetReply() != nil {
			f, err = over.Frame, nil
			f.GetReply().Error = resultTooLarge(over.Size, over.Limit)
		}
		if err != nil {
			return err
		}
		if err := c.take(f, buffers); err != nil {
			return err
		}
	}
}

// take does what a frame asks for.
func (c *connection) take(f *wire.Frame, buffers [][]byte) error {
	switch kind := f.GetKind().(type) {
	case *wire.Frame_Reply:
		c.last = false
		if kind.Reply.GetTransferBytes() > 0 {
			return c.announced(kind.Reply)
		}
		c.dropIncoming(kind.Reply.GetSeq())
		return c.reply(kind.Reply, buffers)
	case *wire.Frame_Part:
		return c.part(kind.Part.GetSeq(), buffers)
	case *wire.Frame_Accept:
		c.user.accepted(c, kind.Accept.GetSeq())
	case *wire.Frame_Items:
		c.last = false
		return c.items(kind.Items, buffers)
	case *wire.Frame_Ping:
		c.pong(kind.Ping.GetId())
	case *wire.Frame_Pong:
	case *wire.Frame_Close:
		return c.close(kind.Close)
	case *wire.Frame_Methods:
		c.questions.deliver(kind.Methods.GetId(), f)
	case *wire.Frame_Actors:
		c.questions.deliver(kind.Actors.GetId(), f)
	case *wire.Frame_Handshake, *wire.Frame_Call, *wire.Frame_Cancel, *wire.Frame_ListMethods, *wire.Frame_ListActors, *wire.Frame_Release, *wire.Frame_StreamAck, nil:
		return &wire.MalformedError{Problem: "a server sends no such frame"}
	}
	return nil
}

func (c *connection) reply(r *wire.Reply, buffers [][]byte) error {
	of := c.user.replied(c, r.GetSeq())
	waits, err := c.known(of, r.GetSeq())
	if waits {
		of.call.owner.answered(r, buffers)
	}
	return err
}

// items takes items of a stream.
func (c *connection) items(f *wire.Items, buffers [][]byte) error {
	of := c.user.streams(c, f.GetSeq())
	waits, err := c.known(of, f.GetSeq())
	switch {
	case !waits || of.call.owner.ended():
		return err
	case of.call.inbox == nil:
		return &wire.MalformedError{Problem: fmt.Sprintf("a stream for call %d, which takes none", f.GetSeq())}
	}
	return of.call.inbox.add(f, buffers)
}

// known reports whether what came for a call has a recipient. Much that has none is an error.
func (c *connection) known(of recipient, seq uint64) (waits bool, err error) {
	switch {
	case of.former:
	case !of.made:
		return false, &wire.MalformedError{Problem: fmt.Sprintf("a reply to call %d, which was not made", seq)}
	case of.call == nil:
		if c.stray++; c.stray > maxStray {
			return false, &wire.MalformedError{Problem: "replies to no calls"}
		}
	default:
		return true, nil
	}
	return false, nil
}

// close ends the connection, or, of a server that stops, only its use for new calls.
func (c *connection) close(g *wire.Close) error {
	err := rpcerror.FromWire(g.GetError())
	if err == nil || err.Code == rpcerror.CodeStopping {
		c.last = true
		c.user.leaves(c)
		return nil
	}
	c.log.Warn("a server of actors ended the connection", "address", c.address, "error", err)
	return err
}

// pong answers a ping. One at a time, so that a server that reads nothing fills no memory.
func (c *connection) pong(id uint64) {
	if !c.pongs.CompareAndSwap(false, true) {
		return
	}
	_ = c.wire.Queue(&wire.Frame{Kind: &wire.Frame_Pong{Pong: &wire.Pong{Id: id}}}, nil, nil)
	go func() {
		_ = c.wire.Flush()
		c.pongs.Store(false)
	}()
}

// keep pings a silent server, closes the connection if there is no answer, and if
// no calls need it any more.
func (c *connection) keep(ctx context.Context) {
	k := c.keepalive
	timer := time.NewTimer(k.Every)
	defer timer.Stop()
	silence := wire.Silence{Every: k.Every, Patience: k.Patience}
	used, since := uint64(0), time.Now()
	for id := uint64(1); ; id++ {
		select {
		case <-c.over:
			return
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := time.Now()
		if n, busy := c.user.usage(); busy || n != used {
			used, since = n, now
		} else if now.Sub(since) >= k.Idle {
			c.end(errUnused)
			return
		}
		measure, next := silence.Look(c.wire.Heard(), now)
		switch measure {
		case wire.Ask:
			c.post(&wire.Frame{Kind: &wire.Frame_Ping{Ping: &wire.Ping{Id: id, Acked: c.user.acked()}}})
		case wire.GiveUp:
			c.log.Warn("a server of actors is silent", "address", c.address, "for", k.Every+k.Patience)
			c.silent.Store(true)
			c.end(errSilent)
			return
		case wire.Wait:
		}
		timer.Reset(next)
	}
}

var (
	errSilent = errors.New("the server is silent")
	errUnused = errors.New("no call used the connection")

	errNotConnected = errors.New("the connection broke")
	errClosing      = errors.New("the client was closed")
)

func errClientClosed() *rpcerror.Error {
	return &rpcerror.Error{Code: rpcerror.CodeUnavailable, Message: "the client was closed"}
}
