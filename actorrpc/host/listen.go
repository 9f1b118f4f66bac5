package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

const (
	// greetingTime is how long a peer has to say what it speaks and who it is.
	greetingTime = 10 * time.Second
	acceptPause  = 50 * time.Millisecond // after a failure, as of too many open files
	goodbyeTime  = time.Second           // for a last frame to go out and to arrive
)

// First bytes of what is spoken.
const (
	tlsRecord   = 0x16
	framesStart = "FRAY"
	grpcStart   = "PRI "
	httpStart   = "GET "
)

func (s *Server) listen(ctx context.Context) error {
	address, err := s.cfg.bind()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil || s.closed || s.stopping.Load() {
		return errors.New("a server starts only once")
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	bound, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		listener.Close()
		return fmt.Errorf("%s is no TCP address", listener.Addr())
	}
	s.listener, s.address = listener, s.cfg.advertised(bound)
	s.doors.serve(listener.Addr())
	s.doors.tasks.Go(func() { s.accept(listener) })
	return nil
}

// accept takes connections until the listener is closed.
func (s *Server) accept(listener net.Listener) {
	for {
		c, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Error("no connection could be accepted", "error", err)
			pause := time.NewTimer(acceptPause)
			<-pause.C
			continue
		}
		if !s.doors.admit(c) {
			c.Close()
			return
		}
		s.doors.tasks.Go(func() {
			defer s.doors.release(c)
			s.sort(c)
		})
	}
}

// sort finds out what a connection speaks, and serves it.
func (s *Server) sort(c net.Conn) {
	if c.SetReadDeadline(time.Now().Add(greetingTime)) != nil {
		c.Close()
		return
	}
	var first [1]byte
	if _, err := io.ReadFull(c, first[:]); err != nil {
		c.Close()
		return
	}
	if s.cfg.Identity == nil {
		if first[0] == tlsRecord {
			refuseTLS(c)
			return
		}
		s.dispatch(c, first[:])
		return
	}
	if first[0] != tlsRecord {
		s.refusePlain(c, first[0])
		return
	}
	secured := tls.Server(&begunConn{Conn: c, begun: first[:]}, s.cfg.Identity.ServerTLS())
	ctx, cancel := context.WithTimeout(s.calls, greetingTime)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		s.log.Warn("a peer was refused", "peer", c.RemoteAddr().String(), "error", err)
		c.Close()
		return
	}
	s.dispatch(secured, nil)
}

// dispatch serves a connection of which some bytes were read.
func (s *Server) dispatch(c net.Conn, read []byte) {
	var start [4]byte
	n := copy(start[:], read)
	if _, err := io.ReadFull(c, start[n:]); err != nil {
		c.Close()
		return
	}
	switch string(start[:]) {
	case framesStart:
		s.serveFrames(c)
	case grpcStart:
		s.hand(c, start[:], s.doors.grpcFeed)
	case httpStart:
		s.hand(c, start[:], s.doors.httpFeed)
	default:
		c.Close()
	}
}

func (s *Server) hand(c net.Conn, start []byte, to *feed) {
	if c.SetReadDeadline(time.Time{}) != nil {
		c.Close()
		return
	}
	to.give(&begunConn{Conn: c, begun: start})
}

// refusePlain tells a peer without TLS that it needs it, if it can be told. From
// this machine the state can be read without.
func (s *Server) refusePlain(c net.Conn, first byte) {
	switch {
	case first == httpStart[0] && ownMachine(c):
		var rest [3]byte
		if _, err := io.ReadFull(c, rest[:]); err == nil && string(rest[:]) == httpStart[1:] {
			s.hand(c, []byte(httpStart), s.doors.httpFeed)
			return
		}
	case first == framesStart[0]:
		s.log.Warn("a peer without TLS was refused", "peer", c.RemoteAddr().String())
		part(c, wire.NewConn(c, s.cfg.MaxMessageBytes), &rpcerror.Error{
			Code: rpcerror.CodeDenied, Message: "peers of another namespace are not served: this server takes TLS only",
		})
	}
	c.Close()
}

// refuseTLS tells a peer with an identity that there is none here: a fatal alert
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
	if c.SetReadDeadline(time.Now().Add(goodbyeTime)) == nil {
		_, _ = io.Copy(io.Discard, c)
	}
}

func ownMachine(c net.Conn) bool {
	remote, ok := c.RemoteAddr().(*net.TCPAddr)
	local, okLocal := c.LocalAddr().(*net.TCPAddr)
	return ok && okLocal && (remote.IP.IsLoopback() || remote.IP.Equal(local.IP))
}

// part says why the connection ends, and ends it.
func part(c net.Conn, framed *wire.Conn, e *rpcerror.Error) {
	defer c.Close()
	goodbye := &wire.Frame{Kind: &wire.Frame_Goodbye{Goodbye: &wire.Goodbye{Error: e.Wire()}}}
	if framed.Finish(goodbye, goodbyeTime) == nil {
		discard(c)
	}
}

// begunConn is a connection of which the first bytes were read before.
type begunConn struct {
	net.Conn
	begun []byte
}

func (c *begunConn) Read(p []byte) (int, error) {
	if len(c.begun) > 0 {
		n := copy(p, c.begun)
		c.begun = c.begun[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// feed is a listener whose connections were accepted by another.
type feed struct {
	address net.Addr
	conns   chan net.Conn
	done    chan struct{}
	once    sync.Once
}

var _ net.Listener = (*feed)(nil)

func newFeed() *feed { return &feed{conns: make(chan net.Conn), done: make(chan struct{})} }

func (f *feed) give(c net.Conn) {
	select {
	case f.conns <- c:
	case <-f.done:
		c.Close()
	}
}

func (f *feed) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.done:
		return nil, net.ErrClosed
	}
}

func (f *feed) Close() error {
	f.once.Do(func() { close(f.done) })
	return nil
}

func (f *feed) Addr() net.Addr { return f.address }
