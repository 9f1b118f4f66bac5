package host

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// listener accepts a server's connections, finds out what each speaks, and has the servers for what is
// not frames.
type listener struct {
	cfg    Config
	log    *slog.Logger
	calls  context.Context // of methods: handshakes end with it
	frames func(net.Conn)

	tasks    sync.WaitGroup // of accepting, and of each connection
	grpcFeed *feed
	httpFeed *feed
	grpc     *grpc.Server
	http     *http.Server
	health   *health.Server

	mu     sync.Mutex            // guards the rest
	conns  map[net.Conn]struct{} // whose protocol is not known yet, or that speak frames
	closed bool
}

// protocols are what is spoken on the port.
type protocols struct {
	frames func(net.Conn)    // serves a connection after the first bytes of its preface
	grpc   wire.ActorsServer // beside health and reflection
	http   http.Handler
}

func newListener(calls context.Context, cfg Config, speaks protocols) *listener {
	l := &listener{
		cfg: cfg, log: cfg.Log, calls: calls, frames: speaks.frames,
		grpcFeed: newFeed(), httpFeed: newFeed(), health: health.NewServer(), conns: map[net.Conn]struct{}{},
	}
	limit := int(min(cfg.MaxMessageBytes, wire.MaxFrame))
	l.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(limit), grpc.MaxSendMsgSize(limit), grpc.ForceServerCodecV2(wire.NewGRPCCodec(uint64(limit))),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: cfg.Keepalive, Timeout: cfg.Patience}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: cfg.Keepalive / 2, PermitWithoutStream: true}),
		grpc.ConnectionTimeout(handshakeTime),
	)
	wire.RegisterActorsServer(l.grpc, speaks.grpc)
	healthpb.RegisterHealthServer(l.grpc, l.health)
	reflection.Register(l.grpc)
	l.setHealth(healthpb.HealthCheckResponse_NOT_SERVING)
	l.http = &http.Server{Handler: speaks.http, ReadHeaderTimeout: handshakeTime, IdleTimeout: cfg.Keepalive + cfg.Patience}
	return l
}

func (l *listener) setHealth(to healthpb.HealthCheckResponse_ServingStatus) {
	l.health.SetServingStatus("", to)
	l.health.SetServingStatus(wire.Actors_ServiceDesc.ServiceName, to)
}

// serve begins to accept connections, and to take what is given to the feeds.
func (l *listener) serve(from net.Listener) {
	l.grpcFeed.address, l.httpFeed.address = from.Addr(), from.Addr()
	l.tasks.Go(func() { _ = l.grpc.Serve(l.grpcFeed) }) // ends with Stop
	l.tasks.Go(func() { _ = l.http.Serve(l.httpFeed) }) // ends with Close
	l.tasks.Go(func() { l.accept(from) })
}

// open reports to probes that the server is ready.
func (l *listener) open() { l.setHealth(healthpb.HealthCheckResponse_SERVING) }

// admit notes a connection, unless the listener is closed.
func (l *listener) admit(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.conns[c] = struct{}{}
	}
	return !l.closed
}

func (l *listener) release(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// close ends all connections and waits for what served them.
func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	for c := range l.conns {
		c.Close()
	}
	l.mu.Unlock()
	_ = l.grpcFeed.Close()
	_ = l.httpFeed.Close()
	l.grpc.Stop()
	_ = l.http.Close()
	l.tasks.Wait()
}
