package actorrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/actorrpc/wire"
)

const (
	// connectTimeout is for one attempt to connect, until the server's Handshake.
	connectTimeout = 10 * time.Second
	// maxPending is how many calls of one connection are on the way at most.
	maxPending = 10_000
	// maxStray is how many replies that nobody waits for a server may send.
	maxStray = 100_000
	// maxPeer is how long a name of a process may be, in bytes.
	maxPeer = 64
)

// link is one connection to a server.
type link struct {
	server *server
	caller string // the client's name in it
	conn   *wire.Conn
	hello  *wire.Handshake // the server's
	over   chan struct{}
	ending sync.Once
	pongs  atomic.Bool // one is being written

	leaving bool // the server said that it stops; under the server's lock

	// Of the reader.
	last  bool // nothing came after the server's word that it stops
	stray int

	mu    sync.Mutex
	id    uint64
	asked map[uint64]chan *wire.Frame
}

// end closes the connection, for a reason.
func (l *link) end(cause error) {
	l.ending.Do(func() {
		l.server.client.log().Debug("a connection to a server of actors ended", "address", l.server.address, "cause", cause)
		_ = l.conn.Close()
		close(l.over)
	})
}

// refuse says goodbye to a server that does not keep to the protocol.
func (l *link) refuse(problem string) {
	err := &Error{Code: CodeMalformed, Message: problem}
	_ = l.conn.Queue(&wire.Frame{Kind: &wire.Frame_Close{Close: &wire.Close{Error: err.Wire()}}}, nil, nil)
	go func() { _ = l.conn.Flush() }()
	l.end(err)
}

// read takes what the server sends until the connection ends.
func (l *link) read(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { l.end(errClientClosed()) })
	defer stop()
	err := l.receive()
	malformed := (*wire.MalformedError)(nil)
	oversize := (*wire.OversizeError)(nil)
	switch {
	case errors.As(err, &malformed), errors.As(err, &oversize):
		l.refuse(err.Error())
	default:
		l.end(err)
	}
	l.conn.Settle()
	l.server.lost(l, l.last && errors.Is(err, io.EOF))
}

func (l *link) receive() error {
	for {
		f, buffers, err := l.conn.Receive()
		if over, ok := errors.AsType[*wire.OversizeError](err); ok && over.Frame.GetReply() != nil {
			f, err = over.Frame, nil
			message := fmt.Sprintf("the result is %s; at most %s are taken (max_message_bytes)", sizeText(over.Size), sizeText(over.Limit))
			f.GetReply().Error = (&Error{Code: CodeTooLarge, Message: message, Ran: true}).Wire()
		}
		if err != nil {
			return err
		}
		if err := l.take(f, buffers); err != nil {
			return err
		}
	}
}

// take does what a frame asks for.
func (l *link) take(f *wire.Frame, buffers [][]byte) error {
	switch kind := f.GetKind().(type) {
	case *wire.Frame_Reply:
		l.last = false
		return l.reply(kind.Reply, buffers)
	case *wire.Frame_Ping:
		l.pong(kind.Ping.GetId())
	case *wire.Frame_Pong:
	case *wire.Frame_Close:
		return l.goodbye(kind.Close)
	case *wire.Frame_Methods:
		l.deliver(kind.Methods.GetId(), f)
	case *wire.Frame_Actors:
		l.deliver(kind.Actors.GetId(), f)
	case *wire.Frame_Handshake, *wire.Frame_Call, *wire.Frame_Cancel, *wire.Frame_ListMethods, *wire.Frame_ListActors, nil:
		return &wire.MalformedError{Problem: "a server sends no such frame"}
	}
	return nil
}

func (l *link) reply(r *wire.Reply, buffers [][]byte) error {
	s := l.server
	s.mu.Lock()
	if s.link != l {
		s.mu.Unlock()
		return nil
	}
	known := r.GetSeq() > 0 && r.GetSeq() <= s.window.last()
	c := s.window.take(r.GetSeq())
	s.refill()
	s.mu.Unlock()
	switch {
	case !known:
		return &wire.MalformedError{Problem: fmt.Sprintf("a reply to call %d, which was not made", r.GetSeq())}
	case c == nil: // of a call that was given up before the connection broke, or a second one
		if l.stray++; l.stray > maxStray {
			return &wire.MalformedError{Problem: "replies to no calls"}
		}
		return nil
	}
	c.actor.answered(c, r, buffers)
	return nil
}

// goodbye ends the connection, or, of a server that stops, only its use for new calls.
func (l *link) goodbye(g *wire.Close) error {
	err := ErrorOf(g.GetError())
	if err == nil || err.Code == CodeStopping {
		l.last = true
		l.server.mu.Lock()
		l.leaving = true
		l.server.mu.Unlock()
		return nil
	}
	l.server.client.log().Warn("a server of actors ended the connection", "address", l.server.address, "error", err)
	return err
}

// pong answers a ping. One at a time, so that a server that reads nothing fills no memory.
func (l *link) pong(id uint64) {
	if !l.pongs.CompareAndSwap(false, true) {
		return
	}
	_ = l.conn.Queue(&wire.Frame{Kind: &wire.Frame_Pong{Pong: &wire.Pong{Id: id}}}, nil, nil)
	go func() {
		_ = l.conn.Flush()
		l.pongs.Store(false)
	}()
}

// keep asks a silent server for a word, closes the connection if there comes none,
// and if nobody needs it any more.
func (l *link) keep(ctx context.Context) {
	k := l.server.client.config.Keepalive
	timer := time.NewTimer(k.Every)
	defer timer.Stop()
	silence := wire.Silence{Every: k.Every, Patience: k.Patience}
	used, since := uint64(0), time.Now()
	for id := uint64(1); ; id++ {
		select {
		case <-l.over:
			return
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := time.Now()
		if n, busy := l.server.usage(); busy || n != used {
			used, since = n, now
		} else if now.Sub(since) >= k.Idle {
			l.end(errUnused)
			return
		}
		measure, next := silence.Look(l.conn.Heard(), now)
		switch measure {
		case wire.Ask:
			_ = l.conn.Queue(&wire.Frame{Kind: &wire.Frame_Ping{Ping: &wire.Ping{Id: id, Acked: l.server.acked()}}}, nil, nil)
			go func() { _ = l.conn.Flush() }() // it may block, for the very reason
		case wire.GiveUp:
			l.server.client.log().Warn("a server of actors is silent", "address", l.server.address, "for", k.Every+k.Patience)
			l.end(errSilent)
			return
		case wire.Wait:
		}
		timer.Reset(next)
	}
}

var (
	errSilent = errors.New("the server is silent")
	errUnused = errors.New("nobody used the connection")

	errNotConnected = errors.New("the connection broke")
)
