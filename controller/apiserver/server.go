// Package apiserver serves the cluster API: TLS connections, the verification of tokens,
// which methods a caller may call, and calls that end with the lease, with the
// attempt that made them, or with the server. What the services answer is theirs.
//
// Start with [Serve] and [Server.Lead]; call.go has the way of a call, auth.go tokens,
// attempts.go which attempts run, rules.go what callers may call.
package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/controller/access"
)

// Config is what is served, and to whom.
type Config struct {
	Listener    net.Listener // closed with the server
	Certificate tls.Certificate
	Tokens      *token.Verifier
	Keys        *keys.Reader // that Tokens uses; nil: it is not told of new leaders
	// The services; nil: it is not served.
	Cluster  clusterapi.ClusterServer
	Metadata clusterapi.MetadataServer
	Admin    clusterapi.AdminServer
	Hosts    clusterapi.HostsServer
	// Leader names who leads while this controller does not, "" if that is
	// not known.
	Leader func() string
	Log    *slog.Logger
	Now    func() time.Time // nil: time.Now
	// Unary and Stream see each call first; nil: calls are not counted.
	Unary  grpc.UnaryServerInterceptor
	Stream grpc.StreamServerInterceptor
}

func (c Config) validate() error {
	switch {
	case c.Listener == nil:
		return errors.New("serve the cluster API: no listener")
	case len(c.Certificate.Certificate) == 0:
		return errors.New("serve the cluster API: no certificate")
	case c.Tokens == nil:
		return errors.New("serve the cluster API: nothing to check tokens with")
	case c.Leader == nil || c.Log == nil:
		return errors.New("serve the cluster API: no leader or log")
	}
	return nil
}

// Times of the server.
const (
	pingIdle     = 30 * time.Second // after which a client is asked whether it lives
	pingWait     = 10 * time.Second
	pingsAtLeast = 5 * time.Second // between those of a client; it sends them every 10 s
)

// readBuffer is what a connection is read by, in bytes.
const readBuffer = 8 << 10

const (
	// StopGrace is how long calls under way may take once a server stops.
	StopGrace = 2 * time.Second
	// VerifyTimeout is how long the lookup of a token's key in the store may take.
	VerifyTimeout = 10 * time.Second
)

// Server serves the cluster API for the life of a process, whether it leads or
// not: see Lead.
type Server struct {
	cfg    Config
	grpc   *grpc.Server
	health *health.Server
	term   atomic.Pointer[term] // nil: it does not lead
	terms  sync.Mutex           // held while term and health change

	// Both end with the server, streams first.
	streams, calls       context.Context
	endStreams, endCalls context.CancelCauseFunc
	done                 chan struct{} // closed when nothing is served any more
}

// Serve begins to serve. Until Lead is called all calls are rejected.
func Serve(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &Server{cfg: cfg, health: health.NewServer(), done: make(chan struct{})}
	s.calls, s.endCalls = context.WithCancelCause(context.WithoutCancel(ctx))
	s.streams, s.endStreams = context.WithCancelCause(s.calls)
	unary, stream := s.interceptors()
	s.grpc = grpc.NewServer(
		grpc.Creds(dial.ServerCredentials(cfg.Certificate, s.refusedConnection)),
		grpc.InTapHandle(s.authenticate),
		grpc.ChainUnaryInterceptor(unary...), grpc.ChainStreamInterceptor(stream...),
		grpc.StatsHandler(sizes{s}),
		// Many hosts hold a connection each, and send little.
		grpc.ReadBufferSize(readBuffer),
		grpc.MaxRecvMsgSize(dial.MaxMessage), grpc.MaxSendMsgSize(dial.MaxMessage),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingIdle, Timeout: pingWait}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsAtLeast, PermitWithoutStream: true}),
	)
	s.register()
	go func() {
		defer close(s.done)
		if err := s.grpc.Serve(cfg.Listener); err != nil {
			cfg.Log.Error("the cluster API is not served any more", "error", err.Error())
		}
	}()
	return s, nil
}

// interceptors are what each call goes through.
func (s *Server) interceptors() ([]grpc.UnaryServerInterceptor, []grpc.StreamServerInterceptor) {
	var unary []grpc.UnaryServerInterceptor
	if s.cfg.Unary != nil {
		unary = append(unary, s.cfg.Unary)
	}
	var stream []grpc.StreamServerInterceptor
	if s.cfg.Stream != nil {
		stream = append(stream, s.cfg.Stream)
	}
	return append(unary, s.unary), append(stream, s.stream)
}

func (s *Server) register() {
	add := func(desc grpc.ServiceDesc, service any) {
		s.grpc.RegisterService(&desc, service)
		s.health.SetServingStatus(desc.ServiceName, healthpb.HealthCheckResponse_NOT_SERVING)
	}
	if s.cfg.Cluster != nil {
		add(clusterapi.Cluster_ServiceDesc, s.cfg.Cluster)
	}
	if s.cfg.Metadata != nil {
		add(clusterapi.Metadata_ServiceDesc, s.cfg.Metadata)
	}
	if s.cfg.Admin != nil {
		add(clusterapi.Admin_ServiceDesc, s.cfg.Admin)
	}
	if s.cfg.Hosts != nil {
		add(clusterapi.Hosts_ServiceDesc, s.cfg.Hosts)
	}
	s.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
}

// Address is where it listens.
func (s *Server) Address() string { return s.cfg.Listener.Addr().String() }

// Lead has the server answer calls as long as the lease holds.
func (s *Server) Lead(lease access.Lease, views access.Views) {
	t := &term{lease: lease, attempts: newAttempts(views, lease.Epoch())}
	if s.cfg.Keys != nil {
		s.cfg.Keys.Forget(lease.Epoch())
	}
	go t.attempts.run(lease.Context())
	s.setTerm(nil, t)
	context.AfterFunc(lease.Context(), func() { s.setTerm(t, nil) })
}

// setTerm puts one term in the place of another: of old, or whichever it is.
func (s *Server) setTerm(old, next *term) {
	s.terms.Lock()
	defer s.terms.Unlock()
	if old != nil && s.term.Load() != old {
		return
	}
	s.term.Store(next)
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if next != nil {
		status = healthpb.HealthCheckResponse_SERVING
	}
	for name := range s.grpc.GetServiceInfo() {
		s.health.SetServingStatus(name, status)
	}
	s.health.SetServingStatus("", status)
}

var errStopping = errors.New("this controller is ending")

// Stop ends streams at once and lets other calls end by themselves for a
// moment. Their callers find the next controller.
func (s *Server) Stop() {
	s.health.Shutdown()
	s.endStreams(errStopping)
	stopped := make(chan struct{})
	go func() {
		s.grpc.GracefulStop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(StopGrace):
		s.endCalls(errStopping)
		s.grpc.Stop()
		<-stopped
	}
	s.endCalls(errStopping)
	<-s.done
}

func (s *Server) refusedConnection(peer net.Addr, err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) { // the client gave up, as many do at a time when they find no controller in time
		s.cfg.Log.Debug("a client ended its connection", "peer", peer.String())
		return
	}
	s.cfg.Log.Warn("refused a connection", "peer", peer.String(), "reason", err.Error())
}
