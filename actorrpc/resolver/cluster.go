package resolver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/actorrpc/internal/backoff"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/sleep"
)

// maxWatched is how many names are watched at a time; the one that was asked for
// longest ago makes room. The agent takes 1024 streams of one connection.
const maxWatched = 256

// Cluster finds the actors that a cluster knows. It remembers the
// answers, and receives changes by a stream for each name. Close ends those.
type Cluster struct {
	api       clusterapi.MetadataClient
	namespace string
	listeners listeners

	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	clock uint64
	names map[string]*watched
}

// watched is what is known of one name.
type watched struct {
	cancel    context.CancelFunc
	used      uint64
	known     bool // endpoints are as the stream has them
	endpoints []Endpoint
	seen      bool            // there was an endpoint: that it is dead may become known without a change of it
	missing   *rpcerror.Error // the error of the name when there were no endpoints
}

var (
	_ Resolver = (*Cluster)(nil)
	_ Lister   = (*Cluster)(nil)
	_ Awaiter  = (*Cluster)(nil)
	_ Coroner  = (*Cluster)(nil)
)

// NewCluster makes a resolver of a namespace's names; "" is the one that
// the connection's token is of.
func NewCluster(api clusterapi.MetadataClient, namespace string) *Cluster {
	r := &Cluster{api: api, namespace: namespace, names: map[string]*watched{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Close ends the streams. Resolve then asks each time.
func (r *Cluster) Close() error {
	r.mu.Lock()
	r.cancel()
	r.names = map[string]*watched{}
	r.mu.Unlock()
	r.running.Wait()
	return nil
}

// Resolve finds the endpoints of a name, the oldest first.
func (r *Cluster) Resolve(ctx context.Context, name string) ([]Endpoint, error) {
	r.mu.Lock()
	w := r.watch(name)
	if w.known && (len(w.endpoints) > 0 || w.missing != nil) {
		defer r.mu.Unlock()
		if len(w.endpoints) > 0 {
			return slices.Clone(w.endpoints), nil
		}
		return nil, w.missing
	}
	r.mu.Unlock()
	listed, err := r.api.LookupAll(ctx, &clusterapi.LookupRequest{Name: name, Namespace: r.namespace})
	if err != nil {
		return nil, clusterError(name, err)
	}
	if found := endpointsOf(listed.GetActors()); len(found) > 0 {
		return found, nil
	}
	missing := r.missing(ctx, name, "", "")
	r.mu.Lock()
	undecided := missing.Cause != nil && missing.Cause.Code == rpcerror.CodeStopping
	if missing.Code == rpcerror.CodeUnknownActor && !w.seen && !undecided {
		w.missing = missing
	}
	r.mu.Unlock()
	return nil, missing
}

// Missing is why the actor of a name that was that member is not there.
func (r *Cluster) Missing(ctx context.Context, name, member string) *rpcerror.Error {
	job, _, ofJob := strings.Cut(member, "/")
	if !ofJob {
		job = ""
	}
	return r.missing(ctx, name, job, member)
}

// missing is the cluster's error of a name that is not registered, or not by a job, with suggestions
// of names; or of a member of the name, "" for any.
func (r *Cluster) missing(ctx context.Context, name, job, member string) *rpcerror.Error {
	e, err := r.api.Lookup(ctx, &clusterapi.LookupRequest{Name: name, Namespace: r.namespace, JobId: job})
	if err == nil && member != "" && endpointOf(e).Member != member { // another task of the job
		return rpcerror.UnknownActorOf(name, nil)
	}
	if err == nil { // it has come this moment
		return &rpcerror.Error{Code: rpcerror.CodeUnavailable, Message: fmt.Sprintf("actor %q has just come to %s", name, e.GetAddress())}
	}
	return clusterError(name, err)
}

// clusterError is an error of the cluster's about a name.
func clusterError(name string, err error) *rpcerror.Error {
	answer := status.Convert(err)
	if answer.Code() != codes.NotFound {
		e := &rpcerror.Error{Code: rpcerror.CodeUnavailable, Message: "the cluster does not say where it is: " + answer.Message(), Actor: name}
		if answer.Code() == codes.DeadlineExceeded || answer.Code() == codes.Canceled { // by its clock, which may be ahead
			e.Cause = &rpcerror.Error{Code: rpcerror.CodeDeadline, Message: "the time to find it was over"}
		}
		return e
	}
	for _, detail := range answer.Details() {
		if missing, ok := detail.(*clusterapi.ActorNotFound); ok {
			text := fmt.Sprintf("no actor %q is registered in namespace %q", missing.GetName(), missing.GetNamespace())
			e := &rpcerror.Error{Code: rpcerror.CodeUnknownActor, Message: text, Actor: name, Suggestions: missing.GetNear()}
			switch death := missing.GetDeath(); {
			case death != "":
				e.Message += ": " + death
				e.Cause = &rpcerror.Error{Code: rpcerror.CodeActorDead, Message: death, Actor: name}
			case missing.GetUndecided():
				e.Cause = &rpcerror.Error{Code: rpcerror.CodeStopping, Message: "its run is ending; whether another follows is not decided", Actor: name}
			}
			return e
		}
	}
	return &rpcerror.Error{Code: rpcerror.CodeUnknownActor, Message: answer.Message(), Actor: name} // of a former controller
}

func endpointsOf(actors []*clusterapi.ActorEndpoint) []Endpoint {
	found := make([]Endpoint, len(actors))
	for i, a := range actors {
		found[i] = endpointOf(a)
	}
	return found
}

func endpointOf(a *clusterapi.ActorEndpoint) Endpoint {
	e := Endpoint{
		Name: a.GetName(), Address: a.GetAddress(), Incarnation: a.GetActorId(), Member: a.GetAddress(), Namespace: a.GetNamespace(),
		JobID: a.GetJobId(), Task: int(a.GetTask()), Metadata: a.GetMetadata(),
	}
	if e.JobID != "" {
		e.Member = e.JobID + "/" + strconv.Itoa(e.Task)
	}
	return e
}

// Forget has the next Resolve of a name ask the cluster.
func (r *Cluster) Forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w, ok := r.names[name]; ok {
		w.known, w.missing = false, nil
	}
}

// Watch reports names that were resolved once and are elsewhere now.
func (r *Cluster) Watch(changed func(name string)) func() { return r.listeners.add(changed) }

// List finds all endpoints whose names begin with a prefix.
func (r *Cluster) List(ctx context.Context, prefix string) ([]Endpoint, error) {
	listed, err := r.api.ListActors(ctx, &clusterapi.ListActorsRequest{Prefix: prefix, Namespace: r.namespace})
	if err != nil {
		return nil, fmt.Errorf("list actors: %w", err)
	}
	return endpointsOf(listed.GetActors()), nil
}

// Await waits until a group is there, and fails at once when its job has ended.
func (r *Cluster) Await(ctx context.Context, g Group) ([]Endpoint, error) {
	var found []Endpoint
	for failures := 1; ; failures++ {
		err := r.follow(ctx, &clusterapi.WatchRequest{Name: g.Name, Namespace: r.namespace, JobId: g.JobID}, func(now []Endpoint) bool {
			found, failures = now, 0
			return len(now) < g.Count
		})
		switch {
		case err == nil:
			return found, nil
		case ctx.Err() != nil && len(found) == 0:
			return nil, &rpcerror.Error{Code: rpcerror.CodeDeadline, Message: fmt.Sprintf("no actor %q has come", g.Name), Actor: g.Name}
		case ctx.Err() != nil:
			return nil, MissingError(nil, len(found), g.Count)
		case status.Code(err) == codes.FailedPrecondition:
			return nil, &rpcerror.Error{Code: rpcerror.CodeUnavailable, Message: status.Convert(err).Message(), Actor: g.Name}
		}
		sleep.For(ctx, backoff.After(failures))
	}
}

// follow reads one stream. It reports all endpoints after each change, until that
// is enough: then the error is nil.
func (r *Cluster) follow(ctx context.Context, q *clusterapi.WatchRequest, more func([]Endpoint) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := r.api.Watch(ctx, q)
	if err != nil {
		return err
	}
	var now []Endpoint
	for {
		change, err := stream.Recv()
		if err != nil {
			return err
		}
		if change.GetReset_() {
			now = nil
		}
		now = slices.DeleteFunc(slices.Clone(now), func(e Endpoint) bool {
			again := slices.ContainsFunc(change.GetAdded(), func(a *clusterapi.ActorEndpoint) bool { return a.GetActorId() == e.Incarnation })
			return again || slices.Contains(change.GetRemoved(), e.Incarnation)
		})
		now = append(now, endpointsOf(change.GetAdded())...)
		if !more(now) {
			return nil
		}
	}
}

// watch is what is known of a name, which is watched from now on. It needs the lock.
func (r *Cluster) watch(name string) *watched {
	r.clock++
	w, ok := r.names[name]
	if ok {
		w.used = r.clock
		return w
	}
	w = &watched{used: r.clock}
	if r.ctx.Err() != nil {
		return w
	}
	if len(r.names) >= maxWatched {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(r.names)), func(a, b string) int {
			return int(int64(r.names[a].used) - int64(r.names[b].used))
		})
		r.names[oldest].cancel()
		delete(r.names, oldest)
	}
	r.names[name] = w
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(r.ctx)
	r.running.Go(func() { r.listen(ctx, name, w) })
	return w
}

// listen keeps what is known of a name true.
func (r *Cluster) listen(ctx context.Context, name string, w *watched) {
	for failures := 1; ctx.Err() == nil; failures++ {
		err := r.follow(ctx, &clusterapi.WatchRequest{Name: name, Namespace: r.namespace}, func(now []Endpoint) bool {
			failures = 0
			r.mu.Lock()
			w.known, w.endpoints, w.missing = true, now, nil
			w.seen = w.seen || len(now) > 0
			r.mu.Unlock()
			r.listeners.notify(name)
			return true
		})
		r.mu.Lock()
		w.known, w.missing = false, nil
		r.mu.Unlock()
		if code := status.Code(err); code == codes.Unimplemented || errors.Is(err, context.Canceled) {
			<-ctx.Done()
		}
		sleep.For(ctx, backoff.After(failures))
	}
}
