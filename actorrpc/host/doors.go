package host

import (
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// doors are the ways into a server: what it accepted, and the servers for that
// which is not frames.
type doors struct {
	tasks    sync.WaitGroup // of accepting, and of each connection
	grpcFeed *feed
	httpFeed *feed
	grpc     *grpc.Server
	http     *http.Server
	health   *health.Server

	mu     sync.Mutex
	conns  map[net.Conn]struct{} // that are told apart, or speak frames
	closed bool
}

func newDoors(s *Server) *doors {
	d := &doors{grpcFeed: newFeed(), httpFeed: newFeed(), health: health.NewServer(), conns: map[net.Conn]struct{}{}}
	limit := int(min(s.cfg.MaxMessageBytes, 1<<31-1))
	d.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(limit), grpc.MaxSendMsgSize(limit), grpc.ForceServerCodecV2(wire.NewGRPCCodec(uint64(limit))),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: s.cfg.Keepalive, Timeout: s.cfg.Patience}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: s.cfg.Keepalive / 2, PermitWithoutStream: true}),
		grpc.ConnectionTimeout(greetingTime),
	)
	wire.RegisterActorsServer(d.grpc, &service{server: s})
	healthpb.RegisterHealthServer(d.grpc, d.health)
	reflection.Register(d.grpc)
	d.setHealth(healthpb.HealthCheckResponse_NOT_SERVING)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	d.http = &http.Server{Handler: mux, ReadHeaderTimeout: greetingTime, IdleTimeout: s.cfg.Keepalive + s.cfg.Patience}
	return d
}

func (d *doors) setHealth(to healthpb.HealthCheckResponse_ServingStatus) {
	d.health.SetServingStatus("", to)
	d.health.SetServingStatus(wire.Actors_ServiceDesc.ServiceName, to)
}

// serve begins to take what is given to the feeds.
func (d *doors) serve(address net.Addr) {
	d.grpcFeed.address, d.httpFeed.address = address, address
	d.tasks.Go(func() { _ = d.grpc.Serve(d.grpcFeed) }) // ends with Stop
	d.tasks.Go(func() { _ = d.http.Serve(d.httpFeed) }) // ends with Close
}

// open tells probes that the server is ready.
func (d *doors) open() { d.setHealth(healthpb.HealthCheckResponse_SERVING) }

// admit notes a connection, unless the doors are closed.
func (d *doors) admit(c net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed {
		d.conns[c] = struct{}{}
	}
	return !d.closed
}

func (d *doors) release(c net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.conns, c)
}

// close ends all connections and waits for what served them.
func (d *doors) close() {
	d.mu.Lock()
	d.closed = true
	for c := range d.conns {
		c.Close()
	}
	d.mu.Unlock()
	_ = d.grpcFeed.Close()
	_ = d.httpFeed.Close()
	d.grpc.Stop()
	_ = d.http.Close()
	d.tasks.Wait()
}

// readyz answers probes: 200 once all names are registered, until it shuts down.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	switch {
	case s.stopping.Load():
		http.Error(w, errStopping.Error(), http.StatusServiceUnavailable)
	case !s.ready.Load():
		http.Error(w, "not all actors are registered yet", http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, "ready")
	}
}
