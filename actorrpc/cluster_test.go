package actorrpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/clusterapi"
)

// register is a cluster's Metadata.
type register struct {
	clusterapi.UnimplementedMetadataServer
	mu       sync.Mutex
	all      []*clusterapi.ActorEndpoint
	changed  chan struct{}
	ended    map[string]bool // jobs
	lookups  int
	death    string     // of all that is missing
	late     codes.Code // of all lookups but the first; 0: they are answered
	watches  int
	tokens   []string
	noWatch  bool
	watchers int
}

func (r *register) set(endpoints ...*clusterapi.ActorEndpoint) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = endpoints
	r.tell()
}

func (r *register) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *register) named(name string) []*clusterapi.ActorEndpoint {
	var found []*clusterapi.ActorEndpoint
	for _, e := range r.all {
		if e.GetName() == name {
			found = append(found, e)
		}
	}
	return found
}

func (r *register) Lookup(_ context.Context, q *clusterapi.LookupRequest) (*clusterapi.ActorEndpoint, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.named(q.GetName()); len(found) > 0 {
		return found[len(found)-1], nil
	}
	missing := status.New(codes.NotFound, "a text for people; near it are none that count")
	detailed, err := missing.WithDetails(&clusterapi.ActorNotFound{Name: q.GetName(), Namespace: q.GetNamespace(), Near: []string{"counter", "counters"}, Death: r.death})
	if err != nil {
		return nil, err
	}
	return nil, detailed.Err()
}

func (r *register) LookupAll(ctx context.Context, q *clusterapi.LookupRequest) (*clusterapi.ListActorsResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lookups++; r.late != codes.OK && r.lookups > 1 {
		return nil, status.Error(r.late, "no time is left")
	}
	if m, ok := metadata.FromIncomingContext(ctx); ok {
		r.tokens = m.Get("authorization")
	}
	return &clusterapi.ListActorsResponse{Actors: r.named(q.GetName())}, nil
}

func (r *register) ListActors(_ context.Context, q *clusterapi.ListActorsRequest) (*clusterapi.ListActorsResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*clusterapi.ActorEndpoint
	for _, e := range r.all {
		if strings.HasPrefix(e.GetName(), q.GetPrefix()) {
			found = append(found, e)
		}
	}
	return &clusterapi.ListActorsResponse{Actors: found}, nil
}

func (r *register) Watch(q *clusterapi.WatchRequest, stream grpc.ServerStreamingServer[clusterapi.WatchResponse]) error {
	r.mu.Lock()
	if r.noWatch {
		defer r.mu.Unlock()
		return status.Error(codes.Unavailable, "not now")
	}
	r.watches++
	r.watchers++
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.watchers--
	}()
	sent := map[string]*clusterapi.ActorEndpoint{}
	for first := true; ; first = false {
		r.mu.Lock()
		out := &clusterapi.WatchResponse{Reset_: first}
		now := map[string]*clusterapi.ActorEndpoint{}
		for _, e := range r.named(q.GetName()) {
			now[e.GetActorId()] = e
			if sent[e.GetActorId()] == nil {
				out.Added = append(out.Added, e)
			}
		}
		for id := range sent {
			if now[id] == nil {
				out.Removed = append(out.Removed, id)
			}
		}
		sent = now
		changed, ended, noWatch := r.changed, r.ended[q.GetJobId()], r.noWatch
		r.mu.Unlock()
		if ended {
			return status.Errorf(codes.FailedPrecondition, "job %q has ended", q.GetJobId())
		}
		if noWatch {
			return status.Error(codes.Unavailable, "not now")
		}
		if first || len(out.Added)+len(out.Removed) > 0 {
			if err := stream.Send(out); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// serveRegister serves it, and is where.
func serveRegister(t *testing.T) (*register, string) {
	t.Helper()
	r := &register{changed: make(chan struct{}), ended: map[string]bool{}}
	server := grpc.NewServer()
	clusterapi.RegisterMetadataServer(server, r)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		server.Stop()
		done.Wait()
	})
	return r, l.Addr().String()
}

func clusterResolver(t *testing.T) (*register, *resolver.Cluster) {
	t.Helper()
	r, address := serveRegister(t)
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	cluster := resolver.NewCluster(clusterapi.NewMetadataClient(conn), "rl")
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
		conn.Close()
	})
	return r, cluster
}

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	end := time.After(5 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("never: %s", what)
		}
	}
}

func endpoint(n int, name string) *clusterapi.ActorEndpoint {
	return &clusterapi.ActorEndpoint{
		ActorId: fmt.Sprintf("actor-%d", n), Name: name, Address: fmt.Sprintf("10.0.0.%d:7000", n), JobId: "job-1", Task: int32(n), Namespace: "rl",
	}
}

func TestCluster(t *testing.T) {
	r, names := clusterResolver(t)
	r.set(endpoint(1, "counter"), endpoint(2, "counter"), endpoint(3, "counters"))
	var told sync.Map
	defer names.Watch(func(name string) { told.Store(name, true) })()
	found, err := names.Resolve(t.Context(), "counter")
	if err != nil || len(found) != 2 {
		t.Fatalf("got %v, %v; want 2 endpoints", found, err)
	}
	if e := found[1]; e.Address != "10.0.0.2:7000" || e.Incarnation != "actor-2" || e.Member != "job-1/2" || e.Namespace != "rl" || e.Name != "counter" {
		t.Errorf("the newest is %+v, want the second, by job and task", e)
	}
	eventually(t, "the name is watched", func() bool { _, ok := told.Load("counter"); return ok })

	t.Run("remembers", func(t *testing.T) {
		before := r.lookups
		for range 10 {
			if found, err := names.Resolve(t.Context(), "counter"); err != nil || len(found) != 2 {
				t.Fatalf("got %v, %v; want 2 endpoints", found, err)
			}
		}
		if r.lookups != before || r.watches != 1 {
			t.Errorf("the cluster was asked %d times more and watched by %d streams, want 0 and 1", r.lookups-before, r.watches)
		}
	})
	t.Run("forgets", func(t *testing.T) {
		before := r.lookups
		names.Forget("counter")
		if _, err := names.Resolve(t.Context(), "counter"); err != nil || r.lookups != before+1 {
			t.Errorf("%d lookups, %v; want one", r.lookups-before, err)
		}
	})
	t.Run("hears of changes", func(t *testing.T) {
		told.Clear()
		r.set(endpoint(2, "counter"), endpoint(4, "counter"))
		eventually(t, "it is told", func() bool { _, ok := told.Load("counter"); return ok })
		found, err := names.Resolve(t.Context(), "counter")
		if err != nil || len(found) != 2 || found[0].Incarnation != "actor-2" || found[1].Incarnation != "actor-4" {
			t.Errorf("got %v, %v; want actors 2 and 4", found, err)
		}
	})
	t.Run("near names", func(t *testing.T) {
		for range 2 {
			_, err := names.Resolve(t.Context(), "conter")
			e, ok := errors.AsType[*rpcerror.Error](err)
			if !ok || e.Code != rpcerror.CodeUnknownActor || !slices.Equal(e.Suggestions, []string{"counter", "counters"}) ||
				e.Message != `no actor "conter" is registered in namespace "rl"` {
				t.Errorf("error is %v, want an unknown actor near counter and counters", err)
			}
		}
	})
	t.Run("lists", func(t *testing.T) {
		found, err := names.List(t.Context(), "count")
		if err != nil || len(found) != 2 {
			t.Errorf("got %v, %v; want 2", found, err)
		}
	})
	t.Run("the stream breaks", func(t *testing.T) {
		r.mu.Lock()
		r.noWatch = true
		r.tell()
		r.mu.Unlock()
		eventually(t, "the streams end", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.watchers == 0
		})
		r.set(endpoint(5, "counter"))
		eventually(t, "it asks again", func() bool {
			found, err := names.Resolve(t.Context(), "counter")
			return err == nil && len(found) == 1 && found[0].Incarnation == "actor-5"
		})
		r.mu.Lock()
		r.noWatch = false
		r.mu.Unlock()
		told.Clear()
		eventually(t, "it watches again", func() bool { _, ok := told.Load("counter"); return ok })
	})
}

// A cluster without the time to answer does not hide what it said before.
func TestClusterWithoutTime(t *testing.T) {
	for _, code := range []codes.Code{codes.DeadlineExceeded, codes.Canceled} {
		t.Run(code.String(), func(t *testing.T) {
			r, names := clusterResolver(t)
			r.noWatch = true
			r.set(&clusterapi.ActorEndpoint{ActorId: "actor-1", Name: "countr", Address: "127.0.0.1:1"})
			client := NewClient(names, Config{ResolveTimeout: 2 * time.Second})
			defer func() { _ = client.Close() }()
			h := mustLookup(t, client, "countr")
			r.set() // it has gone
			r.mu.Lock()
			r.lookups, r.late = 0, code
			r.mu.Unlock()
			_, err := Call[int](t.Context(), h, "add", 1)
			if rpcerror.CodeOf(err) != rpcerror.CodeUnknownActor || ran(err) || !strings.Contains(err.Error(), "counters") {
				t.Errorf("got %v, want that it is unknown, and what is near", err)
			}
		})
	}
}

func TestClusterWatchesSoManyNames(t *testing.T) {
	const most, names = 256, 306
	r, cluster := clusterResolver(t)
	lookups := func(name string) int {
		t.Helper()
		r.mu.Lock()
		before := r.lookups
		r.mu.Unlock()
		if _, err := cluster.Resolve(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.lookups - before
	}
	all := make([]*clusterapi.ActorEndpoint, names)
	for n := range all {
		all[n] = endpoint(1, fmt.Sprintf("a%d", n))
	}
	r.set(all...)
	for n := range names {
		lookups(fmt.Sprintf("a%d", n))
	}
	eventually(t, "the first names are not watched any more", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.watchers == most
	})
	eventually(t, "the last name is known by its stream", func() bool { return lookups(fmt.Sprintf("a%d", names-1)) == 0 })
	if lookups("a0") == 0 {
		t.Errorf("the first of %d names is still known, want the last %d", names, most)
	}
}

// Fact 33: waiting for a group fails at once when its job has ended.
func TestFact33JobEnds(t *testing.T) {
	r, cluster := clusterResolver(t)
	client := NewClient(cluster, Config{})
	t.Cleanup(func() { _ = client.Close() })
	r.set(endpoint(1, "pool"), endpoint(2, "pool"))
	handles, err := client.WaitForGroup(t.Context(), resolver.Group{Name: "pool", Count: 2, JobID: "job-1"})
	if err != nil || len(handles) != 2 || handles[0] == handles[1] {
		t.Fatalf("got %v, %v; want two handles", handles, err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := client.WaitForGroup(t.Context(), resolver.Group{Name: "pool", Count: 3, JobID: "job-1"})
		failed <- err
	}()
	eventually(t, "it waits", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.watchers > 0
	})
	r.mu.Lock()
	r.ended["job-1"] = true
	r.tell()
	r.mu.Unlock()
	if err := <-failed; rpcerror.CodeOf(err) != rpcerror.CodeUnavailable || !strings.Contains(err.Error(), `job "job-1" has ended`) {
		t.Errorf("error is %v, want that the job has ended", err)
	}
}

func TestFromEnvironment(t *testing.T) {
	r, address := serveRegister(t)
	r.set(endpoint(1, "counter"))
	t.Setenv(envCluster, "")
	if _, err := FromEnvironment(t.Context()); err == nil || !strings.Contains(err.Error(), "FRAY_CLUSTER_ADDRESS is not set") {
		t.Errorf("without a cluster: error is %v, want one that names the variable", err)
	}
	t.Setenv(envCluster, address)
	t.Setenv(envToken, "of-the-job")
	t.Setenv(envNamespace, "rl")
	t.Setenv(envIdentity, filepath.Join(t.TempDir(), "none.pem"))
	if _, err := FromEnvironment(t.Context()); err == nil || !strings.Contains(err.Error(), "none.pem") {
		t.Errorf("without its identity: error is %v, want one that names the file", err)
	}
	if err := os.Unsetenv(envIdentity); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	client, err := FromEnvironment(ctx)
	if err != nil {
		t.Fatal(err)
	}
	h, err := client.Lookup(t.Context(), "counter")
	if err != nil {
		t.Fatal(err)
	}
	if ref := h.ActorRef(); ref.Name != "counter" || ref.Namespace != "rl" || ref.URL != "" {
		t.Errorf("the handle is sent as %+v, want counter of rl by name", ref)
	}
	if want := []string{"Bearer of-the-job"}; !slices.Equal(r.tokens, want) {
		t.Errorf("the cluster saw the tokens %q, want %q", r.tokens, want)
	}
	cancel()
	eventually(t, "the client is closed", func() bool {
		client.transports.mu.Lock()
		defer client.transports.mu.Unlock()
		return client.transports.closed
	})
	if err := client.Close(); err != nil { // again, and waits for the first
		t.Error(err)
	}
}
