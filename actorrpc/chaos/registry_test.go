package chaos

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
)

// registry is the register of names as a controller serves it: endpoints live as
// long as the attempt that registered them, and survive a restart. Instead of the
// servers' own addresses it tells those of the proxies before them.
type registry struct {
	clusterapi.UnimplementedMetadataServer

	address string
	busy    sync.Mutex // held while it is down

	mu      sync.Mutex
	server  *grpc.Server // nil: down
	all     []*clusterapi.ActorEndpoint
	owners  map[string]string   // the attempt, by actor id
	ended   map[string]struct{} // attempts
	fronts  map[string]string   // by the servers' addresses
	changed chan struct{}       // closed at the next change
}

func newRegistry() (*registry, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &registry{
		address: l.Addr().String(), owners: map[string]string{}, ended: map[string]struct{}{}, fronts: map[string]string{}, changed: make(chan struct{}),
	}
	r.serve(l)
	return r, nil
}

func (r *registry) serve(l net.Listener) {
	server := grpc.NewServer()
	clusterapi.RegisterMetadataServer(server, r)
	r.mu.Lock()
	r.server = server
	r.mu.Unlock()
	go func() { _ = server.Serve(l) }()
}

// restart comes back at the address that it had, which somebody may use for a moment.
func (r *registry) restart() error {
	for tries := 1; ; tries++ {
		l, err := net.Listen("tcp", r.address)
		if err == nil {
			r.serve(l)
			return nil
		}
		if tries == 100 {
			return err
		}
		<-time.After(50 * time.Millisecond)
	}
}

// stop ends all streams and calls, and refuses connections.
func (r *registry) stop() {
	r.mu.Lock()
	server := r.server
	r.server = nil
	r.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}

// proxied says by which address others reach a server.
func (r *registry) proxied(server, front string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fronts[server] = front
}

// end forgets what an attempt registered, and refuses it from then on.
func (r *registry) end(attempt string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[attempt] = struct{}{}
	r.remove(func(e *clusterapi.ActorEndpoint) bool { return r.owners[e.GetActorId()] == attempt })
}

// remove needs the lock.
func (r *registry) remove(which func(*clusterapi.ActorEndpoint) bool) {
	before := len(r.all)
	r.all = slices.DeleteFunc(slices.Clone(r.all), which)
	if len(r.all) != before {
		r.tell()
	}
}

// tell wakes the watchers. It needs the lock.
func (r *registry) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// attemptOf is what the caller's token says.
func attemptOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	if v := md.Get("authorization"); len(v) == 1 {
		return strings.TrimPrefix(v[0], "Bearer ")
	}
	return ""
}

func (r *registry) Register(ctx context.Context, in *clusterapi.RegisterRequest) (*clusterapi.RegisterResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	attempt := attemptOf(ctx)
	if _, over := r.ended[attempt]; over {
		return nil, status.Errorf(codes.FailedPrecondition, "%s has ended", attempt)
	}
	if in.GetActorId() == "" {
		return nil, status.Error(codes.InvalidArgument, "actor_id: an actor's server says which")
	}
	if owner, known := r.owners[in.GetActorId()]; known && owner != attempt {
		return nil, status.Error(codes.PermissionDenied, "actor_id: it is another's")
	}
	address := in.GetAddress()
	if front, ok := r.fronts[address]; ok {
		address = front
	}
	e := &clusterapi.ActorEndpoint{
		Name: in.GetName(), Address: address, ActorId: in.GetActorId(), Namespace: namespace, JobId: in.GetJobId(), Task: in.GetTask(), Metadata: in.GetMetadata(),
	}
	if !slices.ContainsFunc(r.all, func(o *clusterapi.ActorEndpoint) bool { return o.GetActorId() == e.GetActorId() }) {
		r.owners[e.GetActorId()] = attempt
		r.all = append(slices.Clone(r.all), e)
		r.tell()
	}
	return &clusterapi.RegisterResponse{ActorId: e.GetActorId()}, nil
}

func (r *registry) Unregister(_ context.Context, in *clusterapi.UnregisterRequest) (*clusterapi.UnregisterResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(func(e *clusterapi.ActorEndpoint) bool { return e.GetActorId() == in.GetActorId() })
	return &clusterapi.UnregisterResponse{}, nil
}

// of are the endpoints of a name, the oldest first, and what closes when that may change.
func (r *registry) of(which func(name string) bool) ([]*clusterapi.ActorEndpoint, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*clusterapi.ActorEndpoint
	for _, e := range r.all {
		if which(e.GetName()) {
			found = append(found, e)
		}
	}
	return found, r.changed
}

func named(name string) func(string) bool { return func(n string) bool { return n == name } }

func (r *registry) Lookup(_ context.Context, in *clusterapi.LookupRequest) (*clusterapi.ActorEndpoint, error) {
	found, _ := r.of(named(in.GetName()))
	if len(found) == 0 {
		return nil, status.Errorf(codes.NotFound, "no actor %q is registered in namespace %q", in.GetName(), namespace)
	}
	return found[len(found)-1], nil
}

func (r *registry) LookupAll(_ context.Context, in *clusterapi.LookupRequest) (*clusterapi.ListActorsResponse, error) {
	found, _ := r.of(named(in.GetName()))
	return &clusterapi.ListActorsResponse{Actors: found}, nil
}

func (r *registry) Watch(in *clusterapi.WatchRequest, stream grpc.ServerStreamingServer[clusterapi.WatchResponse]) error {
	which := func(name string) bool {
		return (in.GetName() == "" || name == in.GetName()) && strings.HasPrefix(name, in.GetPrefix())
	}
	known := map[string]bool{}
	for first := true; ; first = false {
		now, changed := r.of(which)
		out := &clusterapi.WatchResponse{Reset_: first}
		gone := maps.Clone(known)
		for _, e := range now {
			delete(gone, e.GetActorId())
			if !known[e.GetActorId()] {
				known[e.GetActorId()] = true
				out.Added = append(out.Added, e)
			}
		}
		for id := range gone {
			delete(known, id)
			out.Removed = append(out.Removed, id)
		}
		if first || len(out.Added)+len(out.Removed) > 0 {
			if err := stream.Send(out); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}
