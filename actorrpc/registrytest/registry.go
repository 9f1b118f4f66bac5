// Package registrytest has a register of names for tests of several processes.
//
// It answers as a controller does that keeps nothing: endpoints live as long as the
// attempt that registered them, which the test ends. Programs of either language find
// it as tasks find their cluster, by [Registry.Environment]. Start with [Start].
package registrytest

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
)

// Registry is the register of names as a controller serves it. It survives a restart.
type Registry struct {
	clusterapi.UnimplementedMetadataServer

	Address   string
	namespace string
	jobs      jobs

	mu      sync.Mutex
	server  *grpc.Server // nil: down
	all     []*clusterapi.ActorEndpoint
	unique  map[string]bool   // names
	owners  map[string]string // the attempt, by actor id
	ended   map[string]bool   // attempts, and jobs by their ids
	fronts  map[string]string // by the servers' addresses
	changed chan struct{}     // closed at the next change
}

// Start serves the names of a namespace on a port of its own. Stop ends it.
func Start(namespace string) (*Registry, error) {
	l, err := listen()
	if err != nil {
		return nil, err
	}
	r := &Registry{
		Address: l.Addr().String(), namespace: namespace, unique: map[string]bool{}, owners: map[string]string{},
		ended: map[string]bool{}, fronts: map[string]string{}, changed: make(chan struct{}),
	}
	r.jobs.registry = r
	r.serve(l)
	return r, nil
}

// Environment is what a task of an attempt, written job/number, has of the cluster.
func (r *Registry) Environment(attempt string, task int) []string {
	job, _, _ := strings.Cut(attempt, "/")
	return []string{
		"FRAY_NAMESPACE=" + r.namespace, "FRAY_CLUSTER_TOKEN=" + attempt, "FRAY_CLUSTER_ADDRESS=" + r.Address,
		"FRAY_CLUSTER_SPEC=fray://" + r.Address, "FRAY_TASK_INDEX=" + strconv.Itoa(task), "FRAY_JOB_ID=" + job,
		"FRAY_HOST_ADDRESS=127.0.0.1",
	}
}

func (r *Registry) serve(l net.Listener) {
	server := grpc.NewServer()
	clusterapi.RegisterMetadataServer(server, r)
	clusterapi.RegisterClusterServer(server, &r.jobs)
	r.mu.Lock()
	r.server = server
	r.mu.Unlock()
	go func() { _ = server.Serve(l) }()
}

// Restart comes back at the address that it had, which another process may use for a moment.
func (r *Registry) Restart() error {
	for tries := 1; ; tries++ {
		l, err := net.Listen("tcp", r.Address)
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

// Stop ends all streams and calls, and rejects connections.
func (r *Registry) Stop() {
	r.mu.Lock()
	server := r.server
	r.server = nil
	r.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}

// Proxied sets by which address others reach a server.
func (r *Registry) Proxied(server, front string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fronts[server] = front
}

// End forgets what an attempt registered, and rejects it from then on.
func (r *Registry) End(attempt string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[attempt] = true
	r.remove(func(e *clusterapi.ActorEndpoint) bool { return r.owners[e.GetActorId()] == attempt })
}

// EndJob ends a job for good: no client waits for its actors any more.
func (r *Registry) EndJob(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended[id] = true
	r.remove(func(e *clusterapi.ActorEndpoint) bool { return e.GetJobId() == id })
	r.notify()
}

// reason is that a job has ended, "" while it has not.
func (r *Registry) reason(job string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if job == "" || !r.ended[job] {
		return ""
	}
	return "failed: exit 1"
}

// jobs are those that have actors.
type jobs struct {
	clusterapi.UnimplementedClusterServer

	registry *Registry
}

// Poll reports that a job runs, or how it ended.
func (j *jobs) Poll(_ context.Context, in *clusterapi.PollRequest) (*clusterapi.JobInfo, error) {
	info := &clusterapi.JobInfo{JobId: in.GetJobId(), Namespace: j.registry.namespace, Status: clusterapi.JobStatus_JOB_STATUS_RUNNING}
	if reason := j.registry.reason(in.GetJobId()); reason != "" {
		info.Status, info.Reason = clusterapi.JobStatus_JOB_STATUS_FAILED, reason
	}
	return info, nil
}

// remove needs the lock.
func (r *Registry) remove(which func(*clusterapi.ActorEndpoint) bool) {
	before := len(r.all)
	r.all = slices.DeleteFunc(slices.Clone(r.all), which)
	if len(r.all) != before {
		r.notify()
	}
}

// notify wakes the watchers. It needs the lock.
func (r *Registry) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// attemptOf is the attempt of the caller's token.
func attemptOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	if v := md.Get("authorization"); len(v) == 1 {
		return strings.TrimPrefix(v[0], "Bearer ")
	}
	return ""
}

// Register makes an endpoint known, unless its attempt has ended or another endpoint has the name for itself.
func (r *Registry) Register(ctx context.Context, in *clusterapi.RegisterRequest) (*clusterapi.RegisterResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	attempt := attemptOf(ctx)
	if r.ended[attempt] {
		return nil, status.Errorf(codes.FailedPrecondition, "%s has ended", attempt)
	}
	if in.GetActorId() == "" {
		return nil, status.Error(codes.InvalidArgument, "actor_id: an actor's server says which")
	}
	if owner, known := r.owners[in.GetActorId()]; known && owner != attempt {
		return nil, status.Error(codes.PermissionDenied, "actor_id: it is another's")
	}
	if others, _ := r.find(func(name string) bool { return name == in.GetName() && (in.GetUnique() || r.unique[name]) }); len(others) > 0 && others[0].GetActorId() != in.GetActorId() {
		return nil, status.Errorf(codes.AlreadyExists, "actor %q is at %s already", in.GetName(), others[0].GetAddress())
	}
	r.unique[in.GetName()] = in.GetUnique()
	address := in.GetAddress()
	if front, ok := r.fronts[address]; ok {
		address = front
	}
	e := &clusterapi.ActorEndpoint{
		Name: in.GetName(), Address: address, ActorId: in.GetActorId(), Namespace: r.namespace, JobId: in.GetJobId(), Task: in.GetTask(), Metadata: in.GetMetadata(),
	}
	if !slices.ContainsFunc(r.all, func(o *clusterapi.ActorEndpoint) bool { return o.GetActorId() == e.GetActorId() }) {
		r.owners[e.GetActorId()] = attempt
		r.all = append(slices.Clone(r.all), e)
		r.notify()
	}
	return &clusterapi.RegisterResponse{ActorId: e.GetActorId()}, nil
}

// Unregister forgets an endpoint.
func (r *Registry) Unregister(_ context.Context, in *clusterapi.UnregisterRequest) (*clusterapi.UnregisterResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(func(e *clusterapi.ActorEndpoint) bool { return e.GetActorId() == in.GetActorId() })
	return &clusterapi.UnregisterResponse{}, nil
}

// of are the endpoints of a name, the oldest first, and what closes when that may change.
func (r *Registry) of(which func(name string) bool) ([]*clusterapi.ActorEndpoint, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(which)
}

// find needs the lock.
func (r *Registry) find(which func(name string) bool) ([]*clusterapi.ActorEndpoint, <-chan struct{}) {
	var found []*clusterapi.ActorEndpoint
	for _, e := range r.all {
		if which(e.GetName()) {
			found = append(found, e)
		}
	}
	return found, r.changed
}

func named(name string) func(string) bool { return func(n string) bool { return n == name } }

// Lookup is the newest endpoint of a name.
func (r *Registry) Lookup(_ context.Context, in *clusterapi.LookupRequest) (*clusterapi.ActorEndpoint, error) {
	found, _ := r.of(named(in.GetName()))
	if len(found) == 0 {
		return nil, status.Errorf(codes.NotFound, "no actor %q is registered in namespace %q", in.GetName(), r.namespace)
	}
	return found[len(found)-1], nil
}

// LookupAll are the endpoints of a name.
func (r *Registry) LookupAll(_ context.Context, in *clusterapi.LookupRequest) (*clusterapi.ListActorsResponse, error) {
	found, _ := r.of(named(in.GetName()))
	return &clusterapi.ListActorsResponse{Actors: found}, nil
}

// Watch sends all endpoints of a name, or all, and then what changes, until its job has ended.
func (r *Registry) Watch(in *clusterapi.WatchRequest, stream grpc.ServerStreamingServer[clusterapi.WatchResponse]) error {
	which := func(name string) bool {
		return (in.GetName() == "" || name == in.GetName()) && strings.HasPrefix(name, in.GetPrefix())
	}
	known := map[string]bool{}
	for first := true; ; first = false {
		now, changed := r.of(which)
		reason := r.reason(in.GetJobId())
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
		if reason != "" {
			return status.Errorf(codes.FailedPrecondition, "job %s has ended: %s", in.GetJobId(), reason)
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		}
	}
}
