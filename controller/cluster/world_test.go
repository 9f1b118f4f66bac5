package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/controller/jobs"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store/storetest"
)

// rig is the service on a real gRPC connection over a simulation.
type rig struct {
	*accesstest.Simulation

	t      *testing.T
	store  *storetest.Memory
	server *Server
	client clusterapi.ClusterClient
}

func newRig(t *testing.T, desired schema.Desired) *rig {
	t.Helper()
	r := &rig{Simulation: accesstest.NewSimulation(desired), t: t, store: storetest.NewMemory()}
	r.server = New(Config{State: r.Simulation, Store: r.store, Log: slog.New(slog.DiscardHandler)})
	l := bufconn.Listen(1 << 20)
	conn := r.serve(l, "passthrough:///bufconn", grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	r.client = clusterapi.NewClusterClient(conn)
	return r
}

// serve serves on a listener until the test ends, and connects to it.
func (r *rig) serve(l net.Listener, target string, options ...grpc.DialOption) *grpc.ClientConn {
	r.t.Helper()
	server := grpc.NewServer(
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			return handle(r.authenticated(ctx), req)
		}),
		grpc.StreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			return handle(srv, testStream{ss, r.authenticated(ss.Context())})
		}),
	)
	clusterapi.RegisterClusterServer(server, r.server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	r.t.Cleanup(func() {
		server.Stop()
		<-done
	})
	conn, err := grpc.NewClient(target, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

type testStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s testStream) Context() context.Context { return s.ctx }

const callerHeader = "test-caller"

// authenticated is what the real server's interceptors do.
func (r *rig) authenticated(ctx context.Context) context.Context {
	given, _ := metadata.FromIncomingContext(ctx)
	kind, name, _ := strings.Cut(strings.Join(given.Get(callerHeader), ""), ":")
	switch kind {
	case "user":
		return caller.With(ctx, caller.Caller{Kind: caller.User, User: name})
	case "job":
		id, attempt, _ := strings.Cut(name, "#")
		n, err := strconv.Atoi(attempt)
		j := jobs.NewTable(r.View().Doc).ByID(id)
		if err != nil || j == nil {
			return ctx
		}
		return caller.With(ctx, caller.Caller{Kind: caller.Job, JobID: id, Attempt: n, Namespace: j.Spec.Namespace, User: j.Spec.User})
	}
	return ctx
}

// user and as make contexts of calls, of a user and of the present attempt of a job.
func (r *rig) user() context.Context {
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	r.t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, callerHeader, "user:ada")
}

func (r *rig) as(id string) context.Context {
	r.t.Helper()
	j := jobs.NewTable(r.View().Doc).ByID(id)
	if j == nil {
		r.t.Fatalf("there is no job %s", id)
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	r.t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, callerHeader, fmt.Sprintf("job:%s#%d", id, j.Attempt))
}

// launch launches and fails the test where that is refused.
func (r *rig) launch(ctx context.Context, request *clusterapi.JobRequest) string {
	r.t.Helper()
	answer, err := r.client.Launch(ctx, &clusterapi.LaunchRequest{Request: request})
	if err != nil {
		r.t.Fatalf("launch %s: %v", request.GetName(), err)
	}
	return answer.GetJobId()
}

// until waits for a view in which something holds of a job.
func (r *rig) until(id, what string, holds func(*state.Job) bool) *state.Job {
	r.t.Helper()
	var last *state.Job
	err := access.Await(r.user(), r.server.State, func(v *access.View) bool {
		last = jobs.NewTable(v.Doc).ByID(id)
		return last != nil && holds(last)
	})
	if err != nil {
		r.t.Fatalf("job %s is not %s: %v; it is %+v", id, what, err, last)
	}
	return last
}

// eventually polls for what no view shows.
func (r *rig) eventually(what string, holds func() bool) {
	r.t.Helper()
	ctx, tick := r.user(), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			r.t.Fatalf("not so in time: %s", what)
		case <-tick.C:
		}
	}
}

func (r *rig) running(id string) *state.Job {
	r.t.Helper()
	return r.until(id, "running", func(j *state.Job) bool { return j.Status == schema.JobRunning })
}

// command is a request for a job of one core.
func command(name string) *clusterapi.JobRequest {
	return &clusterapi.JobRequest{
		Name:       name,
		Entrypoint: &clusterapi.Entrypoint{Kind: &clusterapi.Entrypoint_Command{Command: &clusterapi.Command{Words: []string{"sleep", "9"}}}},
	}
}
