package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/actorrpc/wire"
	"github.com/fray-ml/fray/profile/profileserver"
)

// Server hosts actors on one port.
type Server struct {
	cfg       Config
	peer      string // what it is called in the protocol
	log       *slog.Logger
	metrics   *metrics
	ledger    *ledger
	listener  *listener
	registrar *registrar

	calls    context.Context // of methods
	endCalls context.CancelCauseFunc

	stopping atomic.Bool
	ready    atomic.Bool
	active   atomic.Int64  // calls that are not answered
	idle     chan struct{} // receives when active may be 0
	waiting  atomic.Int64  // bytes of arguments of calls that wait
	transferMemory

	mu          sync.RWMutex // guards the rest
	names       names
	connections map[*connection]struct{}
	bound       net.Listener // nil before Start
	address     string
	closed      bool
}

// names are the actors of a server with what they have in common. The server's lock guards them.
type names struct {
	actors  map[string]*actor
	objects map[any]*object
	classes map[reflect.Type]*class
}

// New makes a server; it listens from [Server.Start] on.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, fmt.Errorf("serve actors: %w", err)
	}
	s := &Server{
		cfg: cfg, peer: strings.ToLower(rand.Text()), log: cfg.Log, ledger: newLedger(maxKept), idle: make(chan struct{}, 1),
		transferMemory: transferMemory{room: wire.NewMemory(cfg.TransferMemory), kept: wire.NewMemory(cfg.TransferMemory)},
		names:          names{actors: map[string]*actor{}, objects: map[any]*object{}, classes: map[reflect.Type]*class{}},
		connections:    map[*connection]struct{}{},
	}
	s.calls, s.endCalls = context.WithCancelCause(context.Background())
	s.registrar = newRegistrar(cfg)
	s.metrics = newMetrics(s)
	pages := http.NewServeMux()
	pages.HandleFunc("GET /readyz", s.readyz)
	pages.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	s.listener = newListener(s.calls, cfg, protocols{frames: s.serveFrames, grpc: &service{server: s}, http: pages})
	return s, nil
}

// Register serves a value under a name, and returns the incarnation that this
// is. With a cluster, and once the server has started, it returns when the
// cluster has the name; the error is a *RegisterError if it does not take it.
func (s *Server) Register(name string, value any, options Options) (incarnation string, err error) {
	a, err := s.add(name, value, options)
	if err != nil {
		return "", fmt.Errorf("register actor %q: %w", name, err)
	}
	s.mu.RLock()
	started := s.bound != nil
	s.mu.RUnlock()
	if started {
		if err := s.registrar.announce(s.registrar.life, a, s.Address()); err != nil {
			s.remove(a)
			return "", err
		}
	}
	return a.incarnation, nil
}

// add makes an actor known in this server.
func (s *Server) add(name string, value any, options Options) (*actor, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	v := reflect.ValueOf(value)
	if name == "" || !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, errors.New("want a name and a value that is not nil")
	}
	if !utf8.ValidString(name) {
		return nil, errors.New("the name is no UTF-8")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Load() || s.closed {
		return nil, errStopping
	}
	if s.names.actors[name] != nil {
		return nil, &RegisterError{Name: name, Problem: ProblemDuplicate, Message: "this server has an actor of that name"}
	}
	c, err := s.classOf(v.Type())
	if err != nil {
		return nil, err
	}
	o, shared := s.names.objects[identity(v)]
	if !shared {
		o = newObject(v, options)
	} else if err := o.fits(options); err != nil {
		return nil, err
	}
	a, err := newActor(name, o, c, options)
	if err != nil {
		return nil, err
	}
	o.names++
	if id := identity(v); id != nil {
		s.names.objects[id] = o
	}
	s.names.actors[name] = a
	return a, nil
}

// classOf prepares a type once. It needs the lock.
func (s *Server) classOf(t reflect.Type) (*class, error) {
	if c := s.names.classes[t]; c != nil {
		return c, nil
	}
	c, err := classOf(t)
	if err != nil {
		return nil, err
	}
	s.names.classes[t] = c
	return c, nil
}

// Unregister ends a name: calls that wait are rejected, one that runs ends. The
// error is that the cluster could not be notified; the name is gone here anyway.
func (s *Server) Unregister(ctx context.Context, name string) error {
	s.mu.RLock()
	a := s.names.actors[name]
	s.mu.RUnlock()
	if a == nil {
		return fmt.Errorf("unregister actor %q: there is none", name)
	}
	err := s.registrar.withdraw(ctx, a)
	s.remove(a)
	return err
}

// remove makes an actor unknown in this server.
func (s *Server) remove(a *actor) {
	s.mu.Lock()
	if s.names.actors[a.name] == a {
		delete(s.names.actors, a.name)
		if a.object.names--; a.object.names == 0 {
			delete(s.names.objects, identity(a.object.value))
		}
	}
	s.mu.Unlock()
	a.gone.Store(true)
	a.discard(unregistered)
	for _, c := range s.ledger.calls() {
		if c.is(phaseWaits) && c.actor == a { // before that another goroutine sets the actor; see late
			c.stopWaiting(unregistered())
		}
	}
	s.metrics.forget(a.name)
}

func unregistered() *rpcerror.Error {
	return &rpcerror.Error{Code: rpcerror.CodeStopping, Message: "the actor was unregistered"}
}

func (s *Server) listen(ctx context.Context) error {
	address, err := s.cfg.bind()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bound != nil || s.closed || s.stopping.Load() {
		return errors.New("a server starts only once")
	}
	bound, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	at, ok := bound.Addr().(*net.TCPAddr)
	if !ok {
		bound.Close()
		return fmt.Errorf("%s is no TCP address", bound.Addr())
	}
	s.bound, s.address = bound, s.cfg.advertised(at)
	s.listener.serve(bound)
	return nil
}

// Address is host:port by which others reach the server, "" before it has started.
func (s *Server) Address() string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.address
}

// Start listens and registers the names that were given so far at the cluster,
// as long as that takes. When it returns without an error the server is ready.
func (s *Server) Start(ctx context.Context) error {
	if err := s.listen(ctx); err != nil {
		return fmt.Errorf("serve actors: %w", err)
	}
	if err := s.registrar.announceAll(ctx, s.sorted(), s.Address()); err != nil {
		// Some names may be known already, and be called.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), cmp.Or(s.cfg.Grace, returnTime))
		defer cancel()
		return errors.Join(err, s.Shutdown(end))
	}
	if _, err := profileserver.Start(); err != nil { // it ends with the process
		s.log.Warn("fray profile cannot measure this process", "error", err)
	}
	s.listener.open()
	s.ready.Store(true)
	return nil
}

// Serve starts and serves until the context ends; then it shuts down.
func (s *Server) Serve(ctx context.Context) error {
	if err := s.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	end := context.WithoutCancel(ctx)
	if s.cfg.Grace > 0 {
		limited, cancel := context.WithTimeout(end, s.cfg.Grace)
		defer cancel()
		end = limited
	}
	return s.Shutdown(end)
}

// sorted are the actors by name.
func (s *Server) sorted() []*actor {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := slices.Collect(maps.Values(s.names.actors))
	slices.SortFunc(all, func(a, b *actor) int { return strings.Compare(a.name, b.name) })
	return all
}

func (s *Server) listActors(prefix string) []*wire.Actor {
	var out []*wire.Actor
	for _, a := range s.sorted() {
		if strings.HasPrefix(a.name, prefix) {
			out = append(out, a.describe())
		}
	}
	return out
}

func (s *Server) connectionCount() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.connections)
}

func (s *Server) keptBytes() int64 { return s.ledger.keptBytes() }

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
