package controller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// Service says what a controller serves to others. The zero Service is nothing.
type Service struct {
	// API is where the cluster API is served, host:port, port 0 for any; "":
	// nowhere. Advertise is the host by which others reach it, "" for the one
	// of API or, if that is every address, one of this machine's.
	API       string
	Advertise string
	// Tokens and Sealer are made of the stack's key, Stack is its mark.
	Tokens *token.Keeper
	Sealer schema.Sealer
	Stack  string
	// HTTP is where the web page and the metrics are served; "": nowhere.
	HTTP string
}

// services are what a controller serves for the life of its process, whether or
// not it leads.
type services struct {
	api         *server
	metadata    *metadataServer
	address     string // of the API, as others reach it
	fingerprint string
	http        string
	web         *webServer
}

// serveAll begins to serve what the configuration says.
func serveAll(ctx context.Context, cfg Config, l *loop) (*services, error) {
	s := &services{}
	if cfg.Service.HTTP == "" && cfg.Service.API == "" {
		return s, nil
	}
	certificate, err := dial.NewCertificate()
	if err != nil {
		return nil, err
	}
	if cfg.Service.HTTP != "" {
		if s.web, err = serveWeb(ctx, cfg, l, certificate); err != nil {
			return nil, err
		}
		s.http = s.web.url
	}
	if cfg.Service.API == "" {
		return s, nil
	}
	if err := s.serveAPI(ctx, cfg, l, certificate); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *services) serveAPI(ctx context.Context, cfg Config, l *loop, certificate tls.Certificate) error {
	listener, err := net.Listen("tcp", cfg.Service.API)
	if err != nil {
		return fmt.Errorf("serve the cluster API: %w", err)
	}
	s.fingerprint = dial.Fingerprint(certificate)
	if s.address, err = advertised(listener.Addr(), cfg.Service.Advertise); err != nil {
		return errors.Join(err, listener.Close())
	}
	s.metadata = newMetadataServer(cfg.Store, cfg.Log, time.Now)
	cfg.telemetry.registry(s.metadata)
	s.api, err = serve(ctx, serveConfig{
		Listener: listener, Certificate: certificate, Tokens: cfg.Service.Tokens,
		Cluster:  newCluster(clusterConfig{Desk: l, Store: cfg.Store, Hosts: cfg.Service.host, Log: cfg.Log, Sealer: cfg.Service.Sealer}),
		Metadata: s.metadata, Admin: &adminServer{desk: l, cfg: &cfg},
		Leader: leaderNames(ctx, cfg.Store), Log: cfg.Log, Telemetry: cfg.telemetry,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return nil
}

// lead has the services answer as long as a lease holds.
func (s *services) lead(lease *store.Held, l *loop) {
	if s.api == nil {
		return
	}
	s.metadata.lead(lease, l)
	s.api.lead(lease, l)
}

func (s *services) stop() {
	if s.api != nil {
		s.api.stop()
	}
	if s.web != nil {
		s.web.stop()
	}
}

// host connects to the agent of a host, as the controller.
func (c *Service) host(_ context.Context, report *store.HostReport) (hostConn, error) {
	return dial.Open(report.API, report.Fingerprint, func(context.Context) (string, error) {
		return c.Tokens.Mint(token.Claims{
			Stack: c.Stack, Subject: token.SubjectController, Expires: time.Now().Add(token.UserLife),
		})
	})
}

// Token makes what the tasks of an attempt show to the cluster API, sealed.
func (c *Service) Token(run *store.Run) (schema.Text, error) {
	text, err := c.Tokens.Mint(token.Claims{
		Stack: c.Stack, Subject: token.SubjectJob, Namespace: run.Spec.Namespace,
		JobID: run.JobID, Attempt: run.Attempt, User: run.Spec.User,
	})
	if err != nil {
		return schema.Text{}, err
	}
	return schema.Secret(text).Seal(c.Sealer)
}

// leaderPace is how often it is looked up who leads: every call that is refused asks.
const leaderPace = time.Second

// leaderNames tells who leads, for those who ask one that does not.
func leaderNames(ctx context.Context, s store.Store) func() string {
	var mu sync.Mutex
	var name string
	var looked time.Time
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(looked) < leaderPace {
			return name
		}
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		lease, err := store.ReadLease(ctx, s)
		name, looked = "", time.Now()
		if err == nil && lease.Live(looked) {
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

// byReach are the interfaces that are up, in their order, the loopback ones last:
// what others reach an address of those by is somebody's routes, if anything.
func byReach(interfaces []net.Interface) []net.Interface {
	up := slices.DeleteFunc(slices.Clone(interfaces), func(i net.Interface) bool { return i.Flags&net.FlagUp == 0 })
	slices.SortStableFunc(up, func(a, b net.Interface) int { return int(a.Flags&net.FlagLoopback) - int(b.Flags&net.FlagLoopback) })
	return up
}
