package actorrpc

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"reflect"
	"syscall"
	"time"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// maxMet is how many processes get our calls by one name.
const maxMet = 64

// open connects and exchanges Handshakes. The errors of servers that will not take us
// are [Error]s with final codes.
func (s *server) open(ctx context.Context) (*link, error) {
	s.mu.Lock()
	last, unanswered := s.process, s.window.open > 0
	s.mu.Unlock()
	if len(s.met) >= maxMet && !unanswered {
		last = s.rename()
	}
	for {
		l, err := s.greet(ctx)
		if err != nil {
			return nil, err
		}
		process := l.hello.GetPeer()
		if process == last || !s.met[process] {
			s.met[process] = true
			return l, nil
		}
		// It was here before another was. Its calls of then and ours of now would have
		// the same numbers.
		_ = l.conn.Close()
		last = s.rename()
	}
}

// rename begins to call by another name, which nobody knows: what is unanswered is not
// to be sent again by it.
func (s *server) rename() (process string) {
	s.self = rand.Text()
	clear(s.met)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = ""
	return s.process
}

// greet makes one attempt.
func (s *server) greet(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	c, err := s.client.dial(ctx, s.address)
	if err != nil {
		return nil, &dialError{unavailable(s.address, dialCause(err)), err}
	}
	closed := context.AfterFunc(ctx, func() { c.Close() })
	secured, err := s.secure(ctx, c)
	if err == nil {
		c = secured
		_, err = c.Write([]byte(wire.Preface))
	}
	if err != nil {
		c.Close()
		return nil, s.handshakeError(err)
	}
	l := &link{
		server: s, caller: s.self, conn: wire.NewConn(c, s.client.config.MaxMessageBytes), over: make(chan struct{}),
		asked: map[uint64]chan *wire.Frame{},
	}
	if l.hello, err = s.hellos(l.conn); err != nil {
		c.Close()
		return nil, s.handshakeError(err)
	}
	if !closed() {
		return nil, unavailable(s.address, context.DeadlineExceeded)
	}
	return l, nil
}

// dialError keeps why nobody answers.
type dialError struct {
	problem *Error
	cause   error
}

func (e *dialError) Error() string { return e.problem.Error() }

func (e *dialError) Unwrap() []error { return []error{e.problem, e.cause} }

// dialCause leaves the address out, which the message has.
func dialCause(err error) error {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number
	}
	return err
}

func (s *server) secure(ctx context.Context, c net.Conn) (net.Conn, error) {
	identity := s.client.config.Identity
	if identity == nil {
		return c, nil
	}
	secured := tls.Client(c, identity.ClientTLS())
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("TLS handshake, which a server without an identity does not take: %w", err)
	}
	return secured, nil
}

func (s *server) hellos(conn *wire.Conn) (*wire.Handshake, error) {
	hello := &wire.Handshake{
		Version: wire.Version, Peer: s.self, Namespace: s.client.config.Namespace, MaxMessageBytes: s.client.config.MaxMessageBytes, Language: "go",
	}
	if err := conn.Send(&wire.Frame{Kind: &wire.Frame_Handshake{Handshake: hello}}, nil, nil); err != nil {
		return nil, err
	}
	f, _, err := conn.Receive()
	if err != nil {
		return nil, err
	}
	if g := f.GetClose(); g != nil {
		if err := ErrorOf(g.GetError()); err != nil {
			return nil, err
		}
		return nil, errLeaving(s.address)
	}
	return f.GetHandshake(), s.check(f.GetHandshake())
}

// check says why a server's Handshake will not do.
func (s *server) check(h *wire.Handshake) error {
	mine, theirs := s.client.config.Namespace, h.GetNamespace()
	switch {
	case h == nil || h.GetPeer() == "" || len(h.GetPeer()) > maxPeer:
		return &wire.MalformedError{Problem: "the server does not say who it is"}
	case h.GetVersion() > wire.Version:
		return versionError(h.GetVersion(), "this program")
	case h.GetVersion() < wire.Version:
		return versionError(h.GetVersion(), "the server")
	case mine != "" && theirs != "" && mine != theirs:
		return &Error{Code: CodeDenied, Message: fmt.Sprintf("%s: the server is of namespace %q", messageOtherNamespace, theirs)}
	}
	return nil
}

func versionError(theirs uint32, old string) *Error {
	return &Error{Code: CodeVersion, Message: fmt.Sprintf(
		"the server speaks version %d of the actor protocol, this program version %d: update %s", theirs, wire.Version, old)}
}

// handshakeError tells servers that will never take us from those that are not there.
func (s *server) handshakeError(err error) error {
	malformed, oversize := (*wire.MalformedError)(nil), (*wire.OversizeError)(nil)
	record, alert := tls.RecordHeaderError{}, tls.AlertError(0)
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &malformed), errors.As(err, &oversize):
		message := "the server at " + s.address + " does not speak the actor protocol"
		if s.client.config.Identity == nil {
			message += ", or only to peers that show its namespace's identity"
		}
		return &Error{Code: CodeMalformed, Message: message}
	case errors.Is(err, errUnknownAuthority), isUnknownAuthority(err):
		return unavailable(s.address, err)
	case errors.Is(err, errOtherNamespace), errors.As(err, &alert), isRemoteAlert(err):
		return &Error{Code: CodeDenied, Message: messageOtherNamespace}
	case errors.As(err, &record):
		return &Error{Code: CodeDenied, Message: "the server at " + s.address + " has no identity, and this program takes none without"}
	}
	return unavailable(s.address, err)
}

// isRemoteAlert reports whether the server refused the handshake. In TLS 1.3 it
// does so after the client's part, so that the first read finds it.
func isRemoteAlert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// alertUnknownAuthority is unknown_ca (RFC 8446, 6.2).
const alertUnknownAuthority = 48

// isUnknownAuthority reports whether the server does not know yet who has certified
// this program. The library hands out the alert as a number of a type of its own.
func isUnknownAuthority(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" {
		return false
	}
	alert := reflect.ValueOf(op.Err)
	return alert.Kind() == reflect.Uint8 && alert.Uint() == alertUnknownAuthority
}

// dialer opens connections.
type dialer func(ctx context.Context, address string) (net.Conn, error)

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{KeepAlive: time.Minute}
	return d.DialContext(ctx, "tcp", address)
}
