package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/fray-ml/fray/agent/proxy"
	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// tells runs a task that writes its variables down, and returns these. In its
// output its token would be masked.
func (r *rig) tells() map[string]string {
	r.t.Helper()
	path := filepath.Join(r.t.TempDir(), "env")
	r.runs(job(`env | grep ^FRAY_ > ` + path + `.new; mv ` + path + `.new ` + path + `; exec sleep 1000`))
	var data []byte
	eventually(r.t, "the variables", func() bool {
		var err error
		data, err = os.ReadFile(path)
		return err == nil
	}, nothing)
	env := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[name] = value
	}
	return env
}

// dialTask connects as a task does, and returns a context with a token and a deadline.
func dialTask(t *testing.T, address string) (context.Context, *grpc.ClientConn) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(2*dial.MaxMessage), grpc.MaxCallRecvMsgSize(2*dial.MaxMessage)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer of-the-job"), conn
}

func TestTasksReachTheControllerThatLeads(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.stack = testStack
	first := newFakeController(t, "first")
	r.leads(first)
	env := r.tells()
	address := env["FRAY_CLUSTER_ADDRESS"]
	if !strings.HasPrefix(address, "127.0.0.1:") || env["FRAY_CLUSTER_SPEC"] != "fray://"+address {
		t.Fatalf("the task's variables are %v", env)
	}
	r.wantTokenOfTheHost(env["FRAY_CLUSTER_TOKEN"])
	ctx, conn := dialTask(t, address)
	cluster := clusterapi.NewClusterClient(conn)
	if got, err := cluster.Poll(ctx, &clusterapi.PollRequest{JobId: "j"}); err != nil || got.GetName() != "first" {
		t.Fatalf("poll says %v, %v", got, err)
	}
	if got := first.calls(); len(got) != 1 || got[0] != "/fray.cluster.v1.Cluster/Poll Bearer of-the-job" {
		t.Errorf("the controller was asked %q", got)
	}

	// It dies; a call made now waits for the next one.
	first.server.Stop()
	answered := make(chan string, 1)
	go func() {
		got, err := cluster.Launch(ctx, &clusterapi.LaunchRequest{Request: &clusterapi.JobRequest{Name: "child"}, RequestId: "r1"})
		answered <- fmt.Sprint(got.GetJobId(), err)
	}()
	second := newFakeController(t, "second")
	r.leads(second)
	if got := <-answered; got != "second/child<nil>" {
		t.Errorf("launch says %s", got)
	}

	// The agent dies; the next one is at the same address.
	r.killAgent()
	r.startAgent()
	var said string
	eventually(t, "the address to answer", func() bool {
		got, err := cluster.Poll(ctx, &clusterapi.PollRequest{JobId: "j"})
		said = fmt.Sprint(got.GetName(), err)
		return err == nil && got.GetName() == "second"
	}, func() string { return said })
	if h, _ := r.report(); h.Task.State != schema.TaskRunning {
		t.Errorf("the task is %s", h.Task.State)
	}
}

// Tasks know one address for as long as they run, so an agent that starts takes
// none that another one, which is away, comes back to.
func TestAgentsOfOneAddressKeepTheirPorts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.tells()["FRAY_CLUSTER_ADDRESS"]
	r.killAgent()
	other := newRig(t)
	if address := other.tells()["FRAY_CLUSTER_ADDRESS"]; address == before {
		t.Errorf("two agents told their tasks of %s", address)
	}
	r.startAgent()
	if after := r.tells()["FRAY_CLUSTER_ADDRESS"]; after != before {
		t.Errorf("a restarted agent is at %s, was at %s", after, before)
	}
}

// proxied is a proxy to a controller without an agent around it.
func proxied(t *testing.T) (context.Context, *grpc.ClientConn, *fakeController, *rig) {
	t.Helper()
	s, err := store.CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, store: s}
	controller := newFakeController(t, "only")
	r.leads(controller)
	follow := dial.Follow(dial.FollowConfig{Store: s})
	t.Cleanup(func() { follow.Close() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := proxy.NewServer(follow)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	ctx, conn := dialTask(t, l.Addr().String())
	return ctx, conn, controller, r
}

func TestProxyAsksAgainWhereThatDoesNoHarm(t *testing.T) {
	t.Parallel()
	ctx, conn, controller, _ := proxied(t)
	cluster, registry := clusterapi.NewClusterClient(conn), clusterapi.NewMetadataClient(conn)
	for _, test := range []struct {
		name string
		call func() error
		want codes.Code
	}{
		{"read", func() error {
			_, err := cluster.Poll(ctx, &clusterapi.PollRequest{JobId: "j"})
			return err
		}, codes.OK},
		{"change with an id", func() error {
			_, err := cluster.Launch(ctx, &clusterapi.LaunchRequest{RequestId: "r"})
			return err
		}, codes.OK},
		{"change without one", func() error {
			_, err := cluster.Launch(ctx, &clusterapi.LaunchRequest{Request: &clusterapi.JobRequest{Name: "a"}})
			return err
		}, codes.Unavailable},
		{"change that knows no id", func() error {
			_, err := cluster.Terminate(ctx, &clusterapi.TerminateRequest{JobId: "j"})
			return err
		}, codes.Unavailable},
		{"stream", func() error {
			watch, err := registry.Watch(ctx, &clusterapi.WatchRequest{})
			if err == nil {
				_, err = watch.Recv()
			}
			return err
		}, codes.Unavailable},
	} {
		t.Run(test.name, func(t *testing.T) {
			controller.refuse(2)
			err := test.call()
			want := 3
			if test.want != codes.OK {
				want = 1
			}
			if got := controller.calls(); status.Code(err) != test.want || len(got) != want {
				t.Errorf("it says %v after %d calls, want %s after %d", err, len(got), test.want, want)
			}
			controller.refuse(0)
			if err := test.call(); err != nil {
				t.Errorf("when the controller answers it says %v", err)
			}
		})
	}
}

func TestProxyPassesStreamsOn(t *testing.T) {
	t.Parallel()
	ctx, conn, controller, _ := proxied(t)
	stream, err := clusterapi.NewClusterClient(conn).Exec(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"one", "two", strings.Repeat("x", 1<<20)} {
		if err := stream.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Stdin{Stdin: []byte(word)}}); err != nil {
			t.Fatal(err)
		}
		if got, err := stream.Recv(); err != nil || string(got.GetStdout()) != word {
			t.Fatalf("the echo of %.10q is %.10q, %v", word, got.GetStdout(), err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if got, err := stream.Recv(); err != nil || got.GetExitCode() != 9 {
		t.Errorf("the end is %v, %v", got, err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end comes %v", err)
	}

	watch, err := clusterapi.NewMetadataClient(conn).Watch(ctx, &clusterapi.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := watch.Recv(); err != nil || got.GetAdded()[0].GetName() != "only" {
			t.Fatalf("watch says %v, %v", got, err)
		}
		select {
		case controller.changed <- struct{}{}:
		case <-ctx.Done():
			t.Fatal("the controller does not watch")
		}
	}
	controller.server.Stop()
	for err == nil {
		_, err = watch.Recv()
	}
	if status.Code(err) != codes.Unavailable {
		t.Errorf("the watch ends with %v, want UNAVAILABLE", err)
	}
}

// A caller that goes takes its call with it, and a reader that is slow holds the
// writer up instead of filling the host's memory.
func TestProxyHoldsLittle(t *testing.T) {
	t.Parallel()
	ctx, conn, _, _ := proxied(t)
	ctx, cancel := context.WithCancel(ctx)
	stream, err := clusterapi.NewClusterClient(conn).Exec(ctx)
	if err != nil {
		t.Fatal(err)
	}
	part := &clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Stdin{Stdin: make([]byte, 1<<20)}}
	sent := make(chan int)
	go func() {
		n := 0
		for ; n < 1000; n++ {
			if stream.Send(part) != nil {
				break
			}
		}
		sent <- n
	}()
	if _, err := stream.Recv(); err != nil { // and then no more
		t.Fatal(err)
	}
	select {
	case n := <-sent:
		t.Fatalf("%d MiB went through to a reader who took one", n)
	case <-time.After(500 * time.Millisecond): // more than they need on any machine, were they not held up
	}
	cancel()
	if n := <-sent; n > 200 {
		t.Errorf("%d MiB went through to a reader who took one", n)
	}
}

func TestProxyRejections(t *testing.T) {
	t.Parallel()
	ctx, conn, controller, r := proxied(t)
	cluster := clusterapi.NewClusterClient(conn)
	bare := metadata.NewOutgoingContext(ctx, nil)
	empty := metadata.NewOutgoingContext(ctx, metadata.Pairs("authorization", "Bearer "))
	for name, without := range map[string]context.Context{"no token": bare, "an empty one": empty} {
		if _, err := cluster.Poll(without, &clusterapi.PollRequest{JobId: "j"}); status.Code(err) != codes.Unauthenticated ||
			!strings.Contains(err.Error(), "FRAY_CLUSTER_TOKEN") {
			t.Errorf("%s: poll says %v", name, err)
		}
	}
	if _, err := clusterapi.NewAdminClient(conn).Pause(ctx, &clusterapi.PauseRequest{}); status.Code(err) != codes.Unimplemented ||
		!strings.Contains(err.Error(), "fray.cluster.v1.Admin") {
		t.Errorf("pause says %v", err)
	}
	huge := &clusterapi.LaunchRequest{RequestId: strings.Repeat("x", dial.MaxMessage)}
	if _, err := cluster.Launch(ctx, huge); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message over the limit says %v", err)
	}
	if got := controller.calls(); len(got) != 0 {
		t.Errorf("the controller was asked %q", got)
	}

	// What the controller refuses comes whole.
	var trailer metadata.MD
	_, err := cluster.Poll(ctx, &clusterapi.PollRequest{}, grpc.Trailer(&trailer))
	if details := status.Convert(err).Details(); status.Code(err) != codes.InvalidArgument || len(details) != 1 || len(trailer.Get("told")) != 1 {
		t.Errorf("a rejection is %v with %v and trailer %v", err, details, trailer)
	}
	// So do calls that this version does not know.
	if err := conn.Invoke(ctx, "/fray.cluster.v1.Cluster/Future", &emptypb.Empty{}, &emptypb.Empty{}); err != nil {
		t.Errorf("an unknown method says %v", err)
	}

	// No controller leads: the call fails at its deadline.
	controller.server.Stop()
	if err := r.store.Delete(t.Context(), store.LeaseKey); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := cluster.Poll(short, &clusterapi.PollRequest{JobId: "j"}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("without a controller poll says %v", err)
	}
}

// A proxy of fray run answers itself what its program shows to actors, to who shows the
// session's token; an agent's does not know the call.
func TestProxyOfAProgramHasIdentities(t *testing.T) {
	t.Parallel()
	_, agents, controller, r := proxied(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	follow := dial.Follow(dial.FollowConfig{Store: r.store, Token: func(context.Context, time.Time) (string, error) { return "of-the-user", nil }})
	t.Cleanup(func() { follow.Close() })
	identity := func(_ context.Context, namespace string) (string, error) {
		if namespace == "" {
			return "", status.Error(codes.InvalidArgument, "say which")
		}
		return "/run/" + namespace + ".pem", nil
	}
	served, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- proxy.Serve(served, l, follow, "of-the-job", identity) }()
	defer func() {
		stop()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	ctx, conn := dialTask(t, l.Addr().String())
	client := clusterapi.NewClientClient(conn)
	got, err := client.Identity(ctx, &clusterapi.IdentityRequest{Namespace: "rl"})
	if err != nil || got.GetFile() != "/run/rl.pem" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := client.Identity(ctx, &clusterapi.IdentityRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without a namespace: got %v, want %s", err, codes.InvalidArgument)
	}
	other := metadata.NewOutgoingContext(ctx, metadata.Pairs("authorization", "Bearer another"))
	if _, err := client.Identity(other, &clusterapi.IdentityRequest{Namespace: "rl"}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("with another token: got %v, want %s", err, codes.Unauthenticated)
	}
	if _, err := clusterapi.NewClientClient(agents).Identity(ctx, &clusterapi.IdentityRequest{Namespace: "rl"}); status.Code(err) != codes.Unimplemented {
		t.Errorf("by an agent: got %v, want %s", err, codes.Unimplemented)
	}
	if got, err := clusterapi.NewClusterClient(conn).Poll(ctx, &clusterapi.PollRequest{JobId: "j"}); err != nil || got.GetName() != "only" {
		t.Errorf("poll says %v, %v", got, err)
	}
	if got := controller.calls(); len(got) != 1 {
		t.Errorf("the controller was asked %q, want the poll alone", got)
	}
}
