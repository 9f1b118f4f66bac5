package controller

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/admin"
	"github.com/fray-ml/fray/controller/apiserver"
	"github.com/fray-ml/fray/controller/cluster"
	"github.com/fray-ml/fray/controller/hosts"
	"github.com/fray-ml/fray/controller/joblogs"
	"github.com/fray-ml/fray/controller/metadata"
	"github.com/fray-ml/fray/controller/sessions"
	"github.com/fray-ml/fray/controller/telemetry"
	"github.com/fray-ml/fray/controller/web"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Service is what a controller serves. The zero Service serves nothing.
type Service struct {
	// API is where the cluster API is served, host:port, port 0 for any; "":
	// nowhere. Advertise is the host by which others reach it, "" for the one
	// of API or, if that is every address, one of this machine's.
	API       string
	Advertise string
	Stack     string // the stack's mark
	// Sealer has the stack's key, by which the sensitive values that a job hands
	// on to jobs it launches are sealed.
	Sealer schema.Sealer
	// HTTP is where the web page and the metrics are served; "": nowhere.
	HTTP string
	// Page is a listener of this machine that serves them instead of HTTP, to clients that have PageToken; nil: HTTP counts.
	Page      net.Listener
	PageToken string
}

// services are what a controller serves for the life of its process, whether or
// not it leads.
type services struct {
	api         *apiserver.Server
	metadata    *metadata.Server
	hosts       *hosts.Hub
	sessions    *sessions.Sessions // of clients
	address     string             // of the API, as others reach it
	fingerprint string
	http        string
	web         *webServer
	// signer signs what the controller shows to agents.
	signer *token.Signer
	keys   *keys.Reader // nil: nothing is served
}

// serveAll begins to serve what the configuration says.
func serveAll(ctx context.Context, cfg Config, stack *access.Serializer, seen *telemetry.Telemetry) (*services, error) {
	s := &services{sessions: sessions.New()}
	page := cfg.Service.HTTP != "" || cfg.Service.Page != nil
	if !page && cfg.Service.API == "" {
		return s, nil
	}
	certificate, err := dial.NewCertificate()
	if err != nil {
		return nil, err
	}
	s.keys = keys.NewReader(cfg.Store, func(slice string, host int) (state.HostReport, bool) { return stack.View().Report(slice, host) })
	var verifier *token.Verifier
	if cfg.Service.Stack != "" || cfg.Service.API != "" {
		if verifier, err = token.NewVerifier(cfg.Service.Stack, s.keys); err != nil {
			return nil, err
		}
	}
	if page {
		if s.web, err = serveWeb(ctx, webService{Config: cfg, verifier: verifier, metrics: seen.Handler()}, web.Stack{State: stack}, certificate); err != nil {
			return nil, err
		}
		s.http = s.web.url
	}
	if cfg.Service.API == "" {
		return s, nil
	}
	if s.signer, err = newSigner(cfg.Service.Stack); err != nil {
		s.stop()
		return nil, err
	}
	if err := s.serveAPI(ctx, cfg, stack, seen, apiserver.Config{Certificate: certificate, Tokens: verifier, Keys: s.keys, Unary: seen.Unary, Stream: seen.Stream}); err != nil {
		s.stop()
		return nil, err
	}
	seen.Endpoints(s.metadata.Endpoints)
	seen.LiveHosts(s.hosts.Live, s.hosts.Streams)
	return s, nil
}

// newSigner is what a process signs with for as long as it lives.
func newSigner(stack string) (*token.Signer, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("make the controller's key: %w", err)
	}
	return token.NewSigner(private, stack, token.ID{Role: token.RoleLeader})
}

// serveAPI serves the cluster API as base says.
func (s *services) serveAPI(ctx context.Context, cfg Config, stack *access.Serializer, seen *telemetry.Telemetry, base apiserver.Config) error {
	listener, err := net.Listen("tcp", cfg.Service.API)
	if err != nil {
		return fmt.Errorf("serve the cluster API: %w", err)
	}
	s.fingerprint = dial.Fingerprint(base.Certificate)
	if s.address, err = advertised(listener.Addr(), cfg.Service.Advertise); err != nil {
		return errors.Join(err, listener.Close())
	}
	s.metadata = metadata.New(cfg.Store, cfg.Log, time.Now)
	s.hosts = hosts.New(cfg.Log, verified(base.Tokens))
	base.Listener = listener
	base.Cluster = cluster.New(cluster.Config{State: stack, Store: cfg.Store, Hosts: s.host, Log: cfg.Log, Sealer: cfg.Service.Sealer, Sessions: s.sessions})
	base.Hosts, base.Metadata, base.Admin = s.hosts, s.metadata, &admin.Server{State: stack, Store: cfg.Store, Sealer: cfg.Service.Sealer, Recorded: cfg.Recorded, Log: cfg.Log, Hold: cfg.Hold, Version: cfg.Version, Metrics: seen.Text}
	base.Leader, base.Log = leaderNames(ctx, cfg.Store), cfg.Log
	s.api, err = apiserver.Serve(ctx, base)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return nil
}

// lead has the services answer as long as a lease holds. It returns what hosts report by
// streams; nil: they cannot.
func (s *services) lead(lease *store.Held, stack *access.Serializer, in store.Store) apply.Live {
	if s.api == nil {
		return nil
	}
	if in.WriteInterval() > 0 {
		s.readRoster(lease.Context(), in)
		go keys.KeepRoster(lease.Context(), in, func() keys.Reports { return stack.View().Reports })
	}
	table := s.hosts.Lead(stack.Wake())
	if in.WriteInterval() > 0 { // else hosts read them themselves
		go keys.WatchAuthorities(lease.Context(), in, authoritiesPace, func(o store.Object) { table.Authorities(o.Generation, o.Data) })
	}
	s.metadata.Lead(lease, stack)
	s.api.Lead(lease, stack)
	return table
}

// readRoster has the keys count that the controller before has left. Without them the reports of
// hosts are read.
func (s *services) readRoster(ctx context.Context, in store.Store) {
	ctx, cancel := context.WithTimeout(ctx, rosterPatience)
	defer cancel()
	if roster, err := keys.ReadRoster(ctx, in); err == nil {
		s.keys.Begin(roster)
	}
}

// rosterPatience is how long that may take.
const rosterPatience = 5 * time.Second

// authoritiesPace is how often a controller looks for hosts which authorities certify actors.
const authoritiesPace = 2 * time.Second

// verified is what a token asserts.
func verified(tokens *token.Verifier) hosts.Verify {
	return func(ctx context.Context, text string) (token.Claims, error) {
		ctx, cancel := context.WithTimeout(ctx, apiserver.VerifyTimeout)
		defer cancel()
		return tokens.Verify(ctx, text, time.Now())
	}
}

// relayKey is the public key of the next term for hosts behind relays, nil where it serves
// nothing.
func (s *services) relayKey() ([]byte, error) {
	if s.hosts == nil {
		return nil, nil
	}
	return s.hosts.NewKey()
}

func (s *services) stop() {
	if s.api != nil {
		s.api.Stop()
	}
	if s.web != nil {
		s.web.stop()
	}
}

// prunePace is the time between two removals of expired keys.
const prunePace = 10 * time.Minute

// pruneKeys removes expired keys of commands while this controller leads: they are
// not valid any more and only take room.
func pruneKeys(ctx context.Context, cfg Config, epoch uint64) {
	for ctx.Err() == nil {
		_, err := keys.Prune(ctx, cfg.Store, time.Now(), false)
		err = errors.Join(err, keys.PruneAuthorities(ctx, cfg.Store, time.Now(), epoch))
		if err != nil && ctx.Err() == nil {
			cfg.Log.Debug("expired keys not removed", "error", err.Error())
		}
		sleep.For(ctx, prunePace)
	}
}

// host connects to the agent of a host, as the controller.
func (s *services) host(_ context.Context, report *state.HostReport) (joblogs.HostConn, error) {
	return dial.Open(report.API, report.Fingerprint, func(context.Context) (string, error) {
		return s.signer.Mint(token.Claims{Subject: token.SubjectController, Expires: time.Now().Add(token.UserLife)})
	})
}

// signingKey is the public key of the controller's tokens, nil where it serves nothing.
func (s *services) signingKey() []byte {
	if s.signer == nil {
		return nil
	}
	return s.signer.Public()
}

// leaderPace is how often the lease is read for its holder: every rejected call needs it.
const leaderPace = time.Second

// leaderNames returns who leads, for clients of a controller that does not.
func leaderNames(ctx context.Context, s store.Store) func() string {
	var mu sync.Mutex
	var name string
	var readAt time.Time
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(readAt) < leaderPace {
			return name
		}
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		lease, err := store.ReadLease(ctx, s)
		name, readAt = "", time.Now()
		if err == nil && lease.Live(readAt) {
			name = fmt.Sprintf("%s@%s (pid %d)", lease.User, lease.Host, lease.PID)
		}
		return name
	}
}

// advertised is an address by which others reach a listener.
func advertised(at net.Addr, host string) (string, error) {
	own, port, err := net.SplitHostPort(at.String())
	if err != nil {
		return "", err
	}
	if host == "" {
		host = own
		if ip := net.ParseIP(own); ip != nil && ip.IsUnspecified() {
			if host, err = machineAddress(); err != nil {
				return "", err
			}
		}
	}
	return net.JoinHostPort(host, port), nil
}

// machineAddress is an address of this machine that is not its own alone.
func machineAddress() (string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("find an address of this machine: %w", err)
	}
	for _, each := range byReach(interfaces) {
		addrs, err := each.Addrs()
		if err != nil {
			continue // it went away meanwhile
		}
		for _, a := range addrs {
			if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
				return ip.IP.String(), nil
			}
		}
	}
	return "", errors.New("this machine has no address that others reach it by; name one with --advertise")
}

// byReach are the interfaces that are up, in their order, the loopback ones last: an
// address of those is reached from elsewhere only by routes configured for it.
func byReach(interfaces []net.Interface) []net.Interface {
	up := slices.DeleteFunc(slices.Clone(interfaces), func(i net.Interface) bool { return i.Flags&net.FlagUp == 0 })
	slices.SortStableFunc(up, func(a, b net.Interface) int { return int(a.Flags&net.FlagLoopback) - int(b.Flags&net.FlagLoopback) })
	return up
}
