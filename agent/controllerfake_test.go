package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/state/store"
)

// fakeController serves the cluster API under a certificate of its own. It
// answers with its name, and remembers what it was asked.
type fakeController struct {
	clusterapi.UnimplementedClusterServer
	clusterapi.UnimplementedMetadataServer
	name        string
	address     string
	fingerprint string
	server      *grpc.Server

	mu          sync.Mutex
	asked       []string // method and token
	unavailable int      // calls to answer with UNAVAILABLE
	changed     chan struct{}
}

func newFakeController(t *testing.T, name string) *fakeController {
	t.Helper()
	certificate, err := dial.NewCertificate()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &fakeController{name: name, address: l.Addr().String(), fingerprint: dial.Fingerprint(certificate), changed: make(chan struct{})}
	c.server = grpc.NewServer(
		grpc.Creds(dial.ServerCredentials(certificate, func(net.Addr, error) {})),
		grpc.MaxRecvMsgSize(dial.MaxMessage),
		grpc.UnaryInterceptor(func(ctx context.Context, r any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			if err := c.note(ctx, info.FullMethod); err != nil {
				return nil, err
			}
			return handle(ctx, r)
		}),
		grpc.StreamInterceptor(func(s any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			if err := c.note(stream.Context(), info.FullMethod); err != nil {
				return err
			}
			return handle(s, stream)
		}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			if err := stream.RecvMsg(&emptypb.Empty{}); err != nil {
				return err
			}
			return stream.SendMsg(&emptypb.Empty{})
		}),
	)
	clusterapi.RegisterClusterServer(c.server, c)
	clusterapi.RegisterMetadataServer(c.server, c)
	go func() { _ = c.server.Serve(l) }()
	t.Cleanup(c.server.Stop)
	return c
}

// note remembers a call, and refuses it if that was asked for.
func (c *fakeController) note(ctx context.Context, method string) error {
	given, _ := metadata.FromIncomingContext(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, strings.Join(append([]string{method}, given.Get("authorization")...), " "))
	if c.unavailable > 0 {
		c.unavailable--
		return status.Error(codes.Unavailable, "this controller does not lead")
	}
	return nil
}

func (c *fakeController) refuse(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unavailable, c.asked = n, nil
}

func (c *fakeController) calls() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.asked...)
}

func (c *fakeController) Launch(_ context.Context, r *clusterapi.LaunchRequest) (*clusterapi.LaunchResponse, error) {
	return &clusterapi.LaunchResponse{JobId: c.name + "/" + r.GetRequest().GetName()}, nil
}

func (c *fakeController) Terminate(context.Context, *clusterapi.TerminateRequest) (*clusterapi.TerminateResponse, error) {
	return &clusterapi.TerminateResponse{}, nil
}

func (c *fakeController) Poll(ctx context.Context, r *clusterapi.PollRequest) (*clusterapi.JobInfo, error) {
	if r.GetJobId() == "" {
		_ = grpc.SetTrailer(ctx, metadata.Pairs("told", "yes"))
		rejection, err := status.New(codes.InvalidArgument, "no id").WithDetails(&errdetails.BadRequest{
			FieldViolations: []*errdetails.BadRequest_FieldViolation{{Field: "job_id", Description: "it is empty"}},
		})
		if err != nil {
			return nil, err
		}
		return nil, rejection.Err()
	}
	return &clusterapi.JobInfo{JobId: r.GetJobId(), Name: c.name}, nil
}

func (c *fakeController) Exec(stream grpc.BidiStreamingServer[clusterapi.ExecRequest, clusterapi.ExecResponse]) error {
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_ExitCode{ExitCode: 9}})
		}
		if err != nil {
			return err
		}
		if err := stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_Stdout{Stdout: m.GetStdin()}}); err != nil {
			return err
		}
	}
}

func (c *fakeController) Watch(_ *clusterapi.WatchRequest, stream grpc.ServerStreamingServer[clusterapi.WatchResponse]) error {
	for {
		if err := stream.Send(&clusterapi.WatchResponse{Added: []*clusterapi.ActorEndpoint{{Name: c.name}}}); err != nil {
			return err
		}
		select {
		case <-c.changed:
		case <-stream.Context().Done():
			return status.Error(codes.Unavailable, "the controller ends")
		}
	}
}

// leads makes a controller the one that leads, as the lease says.
func (r *rig) leads(c *fakeController) {
	r.t.Helper()
	now := time.Now()
	lease := store.Lease{
		Holder: c.name, Epoch: 1, User: "ada", Host: "here", PID: 1, Command: "fray watch",
		AcquiredAt: now, RenewedAt: now, ExpiresAt: now.Add(time.Hour),
		ControllerAddress: c.address, ControllerFingerprint: c.fingerprint, Nonce: c.name,
	}
	data, err := json.Marshal(lease)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.store.Put(r.t.Context(), store.LeaseKey, data, store.Any); err != nil {
		r.t.Fatal(err)
	}
}
