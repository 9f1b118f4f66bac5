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

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
)

const (
	// connectTimeout is for one attempt to connect, until the server's Hello.
	connectTimeout = 10 * time.Second
	// maxPeer is how long a name of a process may be, in bytes.
	maxPeer = 64
	// maxMet is how many processes get our calls by one name.
	maxMet = 64
)

// dialer connects to one address. It has a name of its own, by which the server's processes know
// our calls' numbers: where one process has two addresses, calls over one are numbered without
// regard to the other. One goroutine uses it at a time, that of a dial attempt.
type dialer struct {
	shared
	address string
	renamed func() // called when the name has changed: what is unanswered is not to be sent again

	self string          // Handshake.peer
	met  map[string]bool // the processes that know it
}

func newDialer(s shared, address string, renamed func()) *dialer {
	return &dialer{shared: s, address: address, renamed: renamed, self: rand.Text(), met: map[string]bool{}}
}

// open connects and exchanges Handshakes. last is the process that was connected to last, and unanswered whether
// it has calls. The errors of servers that do not accept this client are [Error]s with final codes.
func (d *dialer) open(ctx context.Context, last string, unanswered bool) (*connection, error) {
	if len(d.met) >= maxMet && !unanswered {
		d.rename()
	}
	for {
		c, err := d.attempt(ctx)
		if err != nil {
			return nil, err
		}
		process := c.hello.GetPeer()
		if process == last || !d.met[process] {
			d.met[process] = true
			return c, nil
		}
		// It was here before another was. Its calls of then and ours of now would have
		// the same numbers.
		_ = c.wire.Close()
		d.rename()
	}
}

// rename begins to call by another name, which no process knows.
func (d *dialer) rename() {
	d.self = rand.Text()
	clear(d.met)
	d.renamed()
}

// attempt connects once.
func (d *dialer) attempt(ctx context.Context) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	raw, err := d.dial(ctx, d.address)
	if err != nil {
		return nil, &dialError{unavailable(d.address, dialCause(err)), err}
	}
	closed := context.AfterFunc(ctx, func() { raw.Close() })
	conn, err := d.secure(ctx, raw)
	if err == nil {
		_, err = conn.Write([]byte(wire.Preface))
	}
	if err != nil {
		raw.Close()
		return nil, d.handshakeError(err)
	}
	c := &connection{
		address: d.address, log: d.config.Log, keepalive: d.config.Keepalive,
		caller: d.self, wire: wire.NewConn(conn, d.config.MaxMessageBytes), over: make(chan struct{}),
		receiving: newReceiving(d.config, d.room),
	}
	if c.hello, err = d.handshake(c.wire); err != nil {
		conn.Close()
		return nil, d.handshakeError(err)
	}
	if !closed() {
		return nil, unavailable(d.address, context.DeadlineExceeded)
	}
	return c, nil
}

// dialError keeps why no server answers.
type dialError struct {
	problem *rpcerror.Error
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

func (d *dialer) secure(ctx context.Context, c net.Conn) (net.Conn, error) {
	identity := d.config.Identity
	if identity == nil {
		return c, nil
	}
	secured := tls.Client(c, identity.ClientTLS())
	if err := secured.HandshakeContext(ctx); err != nil {
		if errors.Is(err, errUnknownAuthority) && identity.renew != nil {
			identity.renew(ctx)
		}
		return nil, fmt.Errorf("TLS handshake, which a server without an identity does not take: %w", err)
	}
	return secured, nil
}

func (d *dialer) handshake(conn *wire.Conn) (*wire.Handshake, error) {
	hello := &wire.Handshake{
		Version: wire.Version, Peer: d.self, Namespace: d.config.Namespace, Language: "go",
		MaxMessageBytes: min(d.config.MaxMessageBytes, wire.MaxFrame), MaxTransferBytes: d.config.MaxMessageBytes,
	}
	if err := conn.Send(&wire.Frame{Kind: &wire.Frame_Handshake{Handshake: hello}}, nil, nil); err != nil {
		return nil, err
	}
	f, _, err := conn.Receive()
	if err != nil {
		return nil, err
	}
	if g := f.GetClose(); g != nil {
		if err := rpcerror.FromWire(g.GetError()); err != nil {
			return nil, err
		}
		return nil, errLeaving(d.address)
	}
	return f.GetHandshake(), d.check(f.GetHandshake())
}

// check returns why a server's Hello is not accepted.
func (d *dialer) check(h *wire.Handshake) error {
	mine, theirs := d.config.Namespace, h.GetNamespace()
	switch {
	case h == nil || h.GetPeer() == "" || len(h.GetPeer()) > maxPeer:
		return &wire.MalformedError{Problem: "the server does not say who it is"}
	case h.GetVersion() > wire.Version:
		return versionError(h.GetVersion(), "this program")
	case h.GetVersion() < wire.Version:
		return versionError(h.GetVersion(), "the server")
	case mine != "" && theirs != "" && mine != theirs:
		return &rpcerror.Error{Code: rpcerror.CodeDenied, Message: fmt.Sprintf("%s: the server is of namespace %q", messageOtherNamespace, theirs)}
	}
	return nil
}

func versionError(theirs uint32, old string) *rpcerror.Error {
	return &rpcerror.Error{Code: rpcerror.CodeVersion, Message: fmt.Sprintf(
		"the server speaks version %d of the actor protocol, this program version %d: update %s", theirs, wire.Version, old)}
}

// handshakeError has a final code of servers that never accept this client, and
// [CodeUnavailable] of those that are not there.
func (d *dialer) handshakeError(err error) error {
	malformed, oversize := (*wire.MalformedError)(nil), (*wire.OversizeError)(nil)
	record, alert := tls.RecordHeaderError{}, tls.AlertError(0)
	var e *rpcerror.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &malformed), errors.As(err, &oversize):
		message := "the server at " + d.address + " does not speak the actor protocol"
		if d.config.Identity == nil {
			message += ", or only to peers that show its namespace's identity"
		}
		return &rpcerror.Error{Code: rpcerror.CodeMalformed, Message: message}
	case errors.Is(err, errUnknownAuthority), isUnknownAuthority(err):
		return unavailable(d.address, err)
	case errors.Is(err, errOtherNamespace), errors.As(err, &alert), isRemoteAlert(err):
		return &rpcerror.Error{Code: rpcerror.CodeDenied, Message: messageOtherNamespace}
	case errors.As(err, &record):
		return &rpcerror.Error{Code: rpcerror.CodeDenied, Message: "the server at " + d.address + " has no identity, and this program takes none without"}
	}
	return unavailable(d.address, err)
}

// isRemoteAlert reports whether the server rejected the handshake. In TLS 1.3 it
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

// dialFunc opens connections.
type dialFunc func(ctx context.Context, address string) (net.Conn, error)

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	tcp := net.Dialer{KeepAlive: time.Minute}
	return tcp.DialContext(ctx, "tcp", address)
}

func unavailable(address string, err error) *rpcerror.Error {
	return &rpcerror.Error{Code: rpcerror.CodeUnavailable, Message: fmt.Sprintf("no server answers at %s: %v", address, err)}
}

func errLeaving(address string) *rpcerror.Error {
	return &rpcerror.Error{Code: rpcerror.CodeStopping, Message: "the server at " + address + " is shutting down"}
}

// final are the codes of servers that do not accept this client at all.
func final(code rpcerror.Code) bool {
	return code == rpcerror.CodeVersion || code == rpcerror.CodeDenied || code == rpcerror.CodeMalformed || code == rpcerror.CodeActorDead
}
