package dial

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi/token"
)

// MaxMessage is the largest message of the cluster API, in bytes.
const MaxMessage = 64 << 20

// Times of a connection. One whose peer is gone without closing it is found out
// after keepaliveEvery and keepaliveWait, which is no longer than a lease lives.
const (
	keepaliveEvery = 10 * time.Second // the least that gRPC allows
	keepaliveWait  = 5 * time.Second
	// A machine that is reached answers within connectTimeout. Its process may take handshakeTimeout
	// for the rest: where thousands of hosts connect at a time, one that gave up sooner would begin
	// a handshake anew that was nearly done.
	connectTimeout   = 3 * time.Second
	handshakeTimeout = 15 * time.Second
	reconnectLimit   = 2 * time.Second
)

// Token returns the bearer token to send with a call.
type Token func(ctx context.Context) (string, error)

// Conn is a connection to a process.
type Conn interface {
	grpc.ClientConnInterface
	Close() error
}

// Connector connects to the process at an address that serves under the certificate of a
// fingerprint.
type Connector func(address, fingerprint string, token Token) (Conn, error)

// Connect is Open as a Connector.
func Connect(address, fingerprint string, token Token) (Conn, error) {
	conn, err := Open(address, fingerprint, token)
	if err != nil {
		return nil, err // not a nil pointer in an interface
	}
	return conn, nil
}

// Open connects to the process at an address (host:port) that serves under the
// certificate of a fingerprint. It does so at the first call. A nil token sends none.
func Open(address, fingerprint string, token Token) (*grpc.ClientConn, error) {
	config, err := ClientTLS(fingerprint)
	if err != nil {
		return nil, err
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(pinned{credentials.NewTLS(config)}),
		grpc.WithNoProxy(), // processes of a stack reach each other
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveEvery, Timeout: keepaliveWait}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectLimit},
			MinConnectTimeout: handshakeTimeout,
		}),
		grpc.WithContextDialer(reach),
	}
	if token != nil {
		options = append(options, grpc.WithPerRPCCredentials(Bearer(token)))
	}
	return grpc.NewClient("passthrough:///"+address, options...)
}

// reach connects to a machine. Whether it is still there is for gRPC to ask.
func reach(ctx context.Context, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: connectTimeout, KeepAlive: -1}
	return dialer.DialContext(ctx, "tcp", address)
}

// pinned marks connections whose server's certificate was the one expected.
type pinned struct {
	credentials.TransportCredentials
}

// pinnedInfo is what gRPC keeps of such a connection.
type pinnedInfo struct{ credentials.TLSInfo }

func (p pinned) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := p.TransportCredentials.ClientHandshake(ctx, authority, conn)
	if err != nil {
		return nil, nil, err
	}
	tlsInfo, ok := info.(credentials.TLSInfo)
	if !ok {
		secured.Close()
		return nil, nil, errors.New("the connection is not TLS")
	}
	return secured, pinnedInfo{tlsInfo}, nil
}

func (p pinned) Clone() credentials.TransportCredentials {
	return pinned{p.TransportCredentials.Clone()}
}

// Bearer adds a token to each call. It gives it only to a server whose
// certificate was pinned.
func Bearer(token Token) credentials.PerRPCCredentials { return bearer{token} }

type bearer struct{ token Token }

func (b bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	info, ok := credentials.RequestInfoFromContext(ctx)
	if !ok {
		return nil, errors.New("send the token: nothing is known of the connection")
	}
	if _, ok := info.AuthInfo.(pinnedInfo); !ok {
		return nil, errors.New("send the token: the connection is not pinned to a certificate; connect by the lease or a host's report")
	}
	text, err := b.token(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]string{Header: scheme + text}, nil
}

// RequireTransportSecurity is always true.
func (b bearer) RequireTransportSecurity() bool { return true }

// Header is the name under which a token is sent.
const Header = "authorization"

const scheme = "Bearer "

// BearerToken is the token in the values of [Header], and whether there is
// exactly one.
func BearerToken(values []string) (string, bool) {
	if len(values) != 1 || len(values[0]) <= len(scheme) || !strings.EqualFold(values[0][:len(scheme)], scheme) {
		return "", false
	}
	return values[0][len(scheme):], true
}

// ServerCredentials serve under a certificate. rejected is called for connections
// that came to nothing (plain text, a client that expected another
// certificate), from many goroutines.
func ServerCredentials(certificate tls.Certificate, rejected func(peer net.Addr, err error)) credentials.TransportCredentials {
	return watched{credentials.NewTLS(ServerTLS(certificate)), rejected}
}

type watched struct {
	credentials.TransportCredentials
	rejected func(peer net.Addr, err error)
}

func (w watched) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := w.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		w.rejected(conn.RemoteAddr(), err)
	}
	return secured, info, err
}

func (w watched) Clone() credentials.TransportCredentials {
	return watched{w.TransportCredentials.Clone(), w.rejected}
}

var (
	_ credentials.TransportCredentials = pinned{}
	_ credentials.TransportCredentials = watched{}
	_ credentials.PerRPCCredentials    = bearer{}
)

// TokenStatus makes the answer to a call of why its token was not accepted: one whose
// key could not be looked up may be shown again.
func TokenStatus(err error) error {
	if err == nil {
		return nil
	}
	if token.Rejected(err) {
		return status.Error(codes.Unauthenticated, err.Error())
	}
	return status.Error(codes.Unavailable, err.Error())
}
