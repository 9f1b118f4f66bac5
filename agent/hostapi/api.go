package hostapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/ports"
	"github.com/fray-ml/fray/agent/proxy"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/state/store"
)

// Config is what is served and where.
type Config struct {
	Store   store.Store
	Slice   string // of the host
	Address string // the same
	Dir     *hostdir.Dir
	State   *hostdir.State // remembers the port of the cluster API
	Log     *slog.Logger
}

// API is what an agent serves: the cluster API to the tasks of this host,
// and the host itself to the controller and to users.
type API struct {
	// Live are the tasks that the host's calls are about.
	Live *Live
	// Cluster is where tasks find the cluster API, "" if it could not be served.
	Cluster string
	// Offer is for the host's report, zero if the host could not be served.
	Offer Offer

	service *Service
	follow  *dial.Following
	servers []*grpc.Server
}

// Offer is where a host serves, and its certificate's fingerprint.
type Offer struct{ API, Fingerprint string }

// Service implements the service Host of clusterapi.
type Service struct {
	clusterapi.UnimplementedHostServer
	relay relay // for hosts of the same slice
	slice string
	dir   *hostdir.Dir
	live  *Live
	log   *slog.Logger
	execs chan struct{} // as many as there may be

	clock    *store.LeaderClock // by which tokens are judged
	keys     *keys.Reader
	stack    atomic.Pointer[string] // the mark that assignments carry, nil: none was read yet
	mu       sync.Mutex
	verifier *token.Verifier // once there was a mark
}

var _ clusterapi.HostServer = (*Service)(nil)

// Open begins to serve. A host that cannot still runs its tasks, so that
// failures are for the log.
func Open(c Config) *API {
	a := &API{Live: newLive()}
	a.service = &Service{
		slice: c.Slice, dir: c.Dir, live: a.Live, log: c.Log, execs: make(chan struct{}, maxExecs),
		clock: store.NewLeaderClock(c.Store), keys: keys.NewReader(c.Store, nil),
	}
	if err := endExecs(c.Dir); err != nil {
		c.Log.Error("commands of an earlier agent not ended", "error", err)
	}
	if err := a.serveTasks(c); err != nil {
		c.Log.Error("tasks cannot reach the cluster API", "error", err)
	}
	if err := a.serveHost(c.Address); err != nil {
		c.Log.Error("the host's API is not served", "error", err)
	}
	return a
}

// serveTasks passes the cluster API on, at the address that this host's tasks know.
func (a *API) serveTasks(c Config) error {
	local := "127.0.0.1"
	if ip := net.ParseIP(c.Address); ip != nil && ip.IsLoopback() {
		local = c.Address
	}
	before := c.State.Get().ClusterPort
	// By the directory: agents that share an address would take each other's port while one restarts.
	l, err := listen(local, before, ports.Usual(c.Dir.Path, "fray-cluster"))
	if err != nil {
		return err
	}
	if port := l.Addr().(*net.TCPAddr).Port; port != before {
		if before != 0 {
			c.Log.Warn("another program has the port of the cluster API; tasks that run already do not reach it any more", "port", before, "now", port)
		}
		if err := c.State.Change(func(s *hostdir.AgentState) { s.ClusterPort = port }); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	a.Cluster = l.Addr().String()
	a.follow = dial.Follow(dial.FollowConfig{Store: c.Store})
	a.run(proxy.NewServer(a.follow), l)
	return nil
}

// serveHost serves the host itself, to clients that know its report.
func (a *API) serveHost(address string) error {
	certificate, err := dial.NewCertificate()
	if err != nil {
		return err
	}
	l, err := listen(address, ports.Usual(address, "fray-host"))
	if err != nil {
		return err
	}
	h := a.service
	server := grpc.NewServer(
		grpc.Creds(dial.ServerCredentials(certificate, func(from net.Addr, err error) {
			h.log.Warn("connection rejected", "from", from.String(), "error", err)
		})),
		grpc.StreamInterceptor(h.authenticate),
		grpc.WaitForHandlers(true), // what they started has ended then
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: callerSilence, Timeout: callerSilence}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: proxy.MinClientPings, PermitWithoutStream: true}),
	)
	clusterapi.RegisterHostServer(server, h)
	clusterapi.RegisterHostsServer(server, &h.relay)
	a.Offer = Offer{API: l.Addr().String(), Fingerprint: dial.Fingerprint(certificate)}
	a.run(server, l)
	return nil
}

// callerSilence is after which time a caller is asked whether it is there, and
// how long it has to answer.
const callerSilence = 20 * time.Second

// run serves until stop.
func (a *API) run(server *grpc.Server, l net.Listener) {
	a.servers = append(a.servers, server)
	go func() {
		if err := server.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			a.service.log.Error("serving ended", "address", l.Addr().String(), "error", err)
		}
	}()
}

// Stop ends all calls and what they started.
func (a *API) Stop() {
	for _, s := range a.servers {
		s.Stop()
	}
	if a.follow != nil {
		_ = a.follow.Close() // nothing is under way any more
	}
}

// listen listens at the first of ports that is free, or else at any.
func listen(address string, ports ...int) (net.Listener, error) {
	for _, port := range ports {
		if port == 0 {
			continue
		}
		if l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(port))); err == nil {
			return l, nil
		}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return l, nil
}

// SetStack takes note of the stack that the host belongs to, by the mark that its
// assignments carry.
func (a *API) SetStack(stack string) {
	if stack != "" {
		a.service.stack.Store(&stack)
	}
}

// Stack is the mark of the host's stack, "" while it is not known.
func (a *API) Stack() string {
	if stack := a.service.stack.Load(); stack != nil {
		return *stack
	}
	return ""
}

// authenticate lets the controller and users in, and to the relay the hosts of the slice. Every rejection is logged.
func (h *Service) authenticate(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	from := "unknown"
	if p, ok := peer.FromContext(stream.Context()); ok {
		from = p.Addr.String()
	}
	claims, err := h.caller(stream.Context())
	if err == nil {
		err = h.may(claims, info.FullMethod)
	}
	if err != nil {
		h.log.Warn("call rejected", "method", info.FullMethod, "from", from, "error", err)
		return err
	}
	h.log.Info("call", "method", info.FullMethod, "from", from, "by", string(claims.Subject), "user", claims.User)
	return handle(service, stream)
}

func (h *Service) caller(ctx context.Context) (token.Claims, error) {
	given, _ := metadata.FromIncomingContext(ctx)
	text, ok := dial.BearerToken(given.Get(dial.Header))
	if !ok {
		return token.Claims{}, status.Error(codes.Unauthenticated, "the call has no token")
	}
	verifier, err := h.tokens()
	if err != nil {
		return token.Claims{}, status.Error(codes.Unavailable, err.Error())
	}
	// Before the lease is read for a stranger: is it signed at all?
	if err := verifier.Signed(ctx, text); err != nil {
		return token.Claims{}, dial.TokenStatus(err)
	}
	claims, err := verifier.Verify(ctx, text, h.now(ctx))
	return claims, dial.TokenStatus(err)
}

// may returns why a caller may not call a method, or nil.
func (h *Service) may(c token.Claims, method string) error {
	relays := method == clusterapi.Hosts_Connect_FullMethodName
	switch c.Subject {
	case token.SubjectController, token.SubjectUser:
		if !relays {
			return nil
		}
	case token.SubjectRelayed:
		if relays && c.Signer.Slice == h.slice {
			return nil
		}
	case token.SubjectJob, token.SubjectHost:
	}
	return status.Errorf(codes.PermissionDenied, "hosts serve the controller and users, and relay for hosts of their slice; this is the token of a %s", c.Subject)
}

// clockPatience is how long the store may take to return the
// leader's time.
const clockPatience = 10 * time.Second

// now is the time by which tokens are judged: that of the leader, so that a
// host whose clock is wrong takes no token for longer, and none for less long.
func (h *Service) now(ctx context.Context) time.Time {
	ctx, cancel := context.WithTimeout(ctx, clockPatience)
	defer cancel()
	sight, err := h.clock.Observe(ctx)
	if err != nil {
		h.log.Warn("the leader's clock not read; tokens are judged by what is known of it", "error", err)
	}
	h.keys.Forget(sight.Lease.Epoch) // who led before may have revoked some
	return sight.Now
}

// tokens checks those of this stack.
func (h *Service) tokens() (*token.Verifier, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.verifier != nil {
		return h.verifier, nil
	}
	stack := h.stack.Load()
	if stack == nil {
		return nil, errors.New("this host has read no assignment yet, and cannot authenticate callers; try again")
	}
	var err error
	h.verifier, err = token.NewVerifier(*stack, h.keys)
	return h.verifier, err
}
