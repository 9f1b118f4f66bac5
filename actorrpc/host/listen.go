package host

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

const (
	// handshakeTime is how long a peer has for its first bytes and its Hello.
	handshakeTime = 10 * time.Second
	acceptPause   = 50 * time.Millisecond // after a failure, as of too many open files
	closeTime     = time.Second           // for a last frame to go out and to arrive
)

// First bytes of what is spoken.
const (
	tlsRecord   = 0x16
	framesStart = "FRAY"
	grpcStart   = "PRI "
	httpStart   = "GET "
)

// accept takes connections until the listener is closed.
func (l *listener) accept(from net.Listener) {
	for {
		c, err := from.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			l.log.Error("no connection could be accepted", "error", err)
			pause := time.NewTimer(acceptPause)
			<-pause.C
			continue
		}
		if !l.admit(c) {
			c.Close()
			return
		}
		l.tasks.Go(func() {
			defer l.release(c)
			l.sort(c)
		})
	}
}

// sort finds out what a connection speaks, and serves it.
func (l *listener) sort(c net.Conn) {
	if c.SetReadDeadline(time.Now().Add(handshakeTime)) != nil {
		c.Close()
		return
	}
	var first [1]byte
	if _, err := io.ReadFull(c, first[:]); err != nil {
		c.Close()
		return
	}
	if l.cfg.Identity == nil {
		if first[0] == tlsRecord {
			refuseTLS(c)
			return
		}
		l.dispatch(c, first[:])
		return
	}
	if first[0] != tlsRecord {
		l.refusePlain(c, first[0])
		return
	}
	secured := tls.Server(&begunConn{Conn: c, begun: first[:]}, l.cfg.Identity.ServerTLS())
	ctx, cancel := context.WithTimeout(l.calls, handshakeTime)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		l.log.Warn("a peer was refused", "peer", c.RemoteAddr().String(), "error", err)
		c.Close()
		return
	}
	l.dispatch(secured, nil)
}

// dispatch serves a connection of which some bytes were read.
func (l *listener) dispatch(c net.Conn, read []byte) {
	var start [4]byte
	n := copy(start[:], read)
	if _, err := io.ReadFull(c, start[n:]); err != nil {
		c.Close()
		return
	}
	switch string(start[:]) {
	case framesStart:
		l.frames(c)
	case grpcStart:
		l.hand(c, start[:], l.grpcFeed)
	case httpStart:
		l.hand(c, start[:], l.httpFeed)
	default:
		c.Close()
	}
}

func (l *listener) hand(c net.Conn, start []byte, to *feed) {
	if c.SetReadDeadline(time.Time{}) != nil {
		c.Close()
		return
	}
	to.give(&begunConn{Conn: c, begun: start})
}

// refusePlain sends a peer without TLS that it needs it, if its protocol has a frame for that. From
// this machine the state can be read without.
func (l *listener) refusePlain(c net.Conn, first byte) {
	switch {
	case first == httpStart[0] && ownMachine(c):
		var rest [3]byte
		if _, err := io.ReadFull(c, rest[:]); err == nil && string(rest[:]) == httpStart[1:] {
			l.hand(c, []byte(httpStart), l.httpFeed)
			return
		}
	case first == framesStart[0]:
		l.log.Warn("a peer without TLS was refused", "peer", c.RemoteAddr().String())
		closeWith(c, wire.NewConn(c, l.cfg.MaxMessageBytes), &rpcerror.Error{
			Code: rpcerror.CodeDenied, Message: "peers of another namespace are not served: this server takes TLS only",
		})
	}
	c.Close()
}

// refuseTLS sends a peer with an identity that there is none here: a fatal alert
// (RFC 8446, 6), handshake_failure.
func refuseTLS(c net.Conn) {
	defer c.Close()
	if _, err := c.Write([]byte{0x15, 3, 3, 0, 2, 2, 40}); err != nil {
		return
	}
	discard(c)
}

// discard reads what a peer is still sending, for a moment: otherwise its system
// would throw away what was sent to it last.
func discard(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	if c.SetReadDeadline(time.Now().Add(closeTime)) == nil {
		_, _ = io.Copy(io.Discard, c)
	}
}

func ownMachine(c net.Conn) bool {
	remote, ok := c.RemoteAddr().(*net.TCPAddr)
	local, okLocal := c.LocalAddr().(*net.TCPAddr)
	return ok && okLocal && (remote.IP.IsLoopback() || remote.IP.Equal(local.IP))
}

// closeWith sends why the connection ends, and ends it.
func closeWith(c net.Conn, framed *wire.Conn, e *rpcerror.Error) {
	defer c.Close()
	last := &wire.Frame{Kind: &wire.Frame_Close{Close: &wire.Close{Error: e.Wire()}}}
	if framed.Finish(last, closeTime) == nil {
		discard(c)
	}
}
