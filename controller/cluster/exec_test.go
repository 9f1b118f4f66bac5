package cluster

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access/accesstest"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Exec of the test's agent says what it was asked and gives back what it reads.
func (h *testHost) Exec(stream grpc.BidiStreamingServer[clusterapi.ExecRequest, clusterapi.ExecResponse]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	start := first.GetStart()
	if start.GetCommand()[0] == "none" {
		return status.Error(codes.NotFound, "there is no program none")
	}
	said := start.GetJobId() + " " + strings.Join(start.GetCommand(), " ")
	if err := stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_Stdout{Stdout: []byte(said)}}); err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) || m.GetStdinClosed():
			return stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_ExitCode{ExitCode: 7}})
		case err != nil:
			return err
		case m.GetStdin() != nil:
			if err := stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_Stderr{Stderr: m.GetStdin()}}); err != nil {
				return err
			}
		}
	}
}

func execStart(job string, task int32, words ...string) *clusterapi.ExecRequest {
	return &clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Start{Start: &clusterapi.ExecStart{JobId: job, Task: task, Command: words}}}
}

// exec runs a command with some input, and returns what came of it.
func (r *rig) exec(ctx context.Context, first *clusterapi.ExecRequest, input ...string) (out, errOut string, code int32, err error) {
	r.t.Helper()
	stream, err := r.client.Exec(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	_ = stream.Send(first) // what is wrong is told by Recv
	for _, text := range input {
		_ = stream.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Stdin{Stdin: []byte(text)}})
	}
	_ = stream.CloseSend()
	code = -1
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out, errOut, code, nil
		}
		if err != nil {
			return out, errOut, code, err
		}
		switch kind := m.GetKind().(type) {
		case *clusterapi.ExecResponse_Stdout:
			out += string(kind.Stdout)
		case *clusterapi.ExecResponse_Stderr:
			errOut += string(kind.Stderr)
		case *clusterapi.ExecResponse_ExitCode:
			code = kind.ExitCode
		}
	}
}

func TestExec(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	r.onHosts(newTestHost())
	id := r.launch(r.user(), command("a"))
	r.running(id)
	out, errOut, code, err := r.exec(r.user(), execStart("a", 0, "cat", "-"), "in", "put")
	if err != nil || out != id+" cat -" || errOut != "input" || code != 7 {
		t.Errorf("got %q, %q, %d, %v", out, errOut, code, err)
	}
	b := command("b")
	b.Namespace = "a"
	sideID := r.launch(r.user(), b)
	r.running(sideID)
	end := r.launch(r.user(), command("ended"))
	r.running(end)
	r.End(end, schema.TaskSucceeded)
	r.until(end, "ended", func(j *state.Job) bool { return j.Status.Ended() })
	for _, tt := range []struct {
		name  string
		who   context.Context
		first *clusterapi.ExecRequest
		code  codes.Code
		says  string
	}{
		{"no start", r.user(), &clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Signal{Signal: 2}}, codes.InvalidArgument, "Begin with start"},
		{"no command", r.user(), execStart(id, 0), codes.InvalidArgument, "no program"},
		{"no such job", r.user(), execStart("aa", 0, "x"), codes.NotFound, `did you mean "a"?`},
		{"no such task", r.user(), execStart(id, 1, "x"), codes.NotFound, "its tasks are 0 to 0"},
		{"ended", r.user(), execStart(end, 0, "x"), codes.FailedPrecondition, "no attempt of job"},
		{"another job", r.as(id), execStart(sideID, 0, "x"), codes.PermissionDenied, "neither"},
		{"what the host says", r.user(), execStart(id, 0, "none"), codes.NotFound, "there is no program none"},
		{"without a token", t.Context(), execStart(id, 0, "x"), codes.Unauthenticated, "no token"},
	} {
		if _, _, _, err := r.exec(tt.who, tt.first); status.Code(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %s with %q", tt.name, err, tt.code, tt.says)
		}
	}
	if _, _, code, err := r.exec(r.as(id), execStart(id, 0, "own")); err != nil || code != 7 {
		t.Errorf("on its own host: %d, %v", code, err)
	}
	r.ServeAPI("")
	r.Settle()
	if _, _, _, err := r.exec(r.user(), execStart(id, 0, "x")); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "serves no commands") {
		t.Errorf("an agent that serves nothing: %v", err)
	}
}

// TestExecEndsWithItsCaller: a command whose caller leaves is ended.
func TestExecEndsWithItsCaller(t *testing.T) {
	r := newRig(t, accesstest.LocalStack())
	h := &endingHost{ended: make(chan struct{})}
	r.onHosts(h)
	id := r.launch(r.user(), command("a"))
	r.running(id)
	ctx, leave := context.WithCancel(r.user())
	stream, err := r.client.Exec(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(execStart(id, 0, "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil { // it runs
		t.Fatal(err)
	}
	leave()
	select {
	case <-h.ended:
	case <-r.user().Done():
		t.Error("the host's end goes on")
	}
}

// endingHost tells when its stream ends.
type endingHost struct {
	clusterapi.UnimplementedHostServer

	ended chan struct{}
}

func (h *endingHost) Exec(stream grpc.BidiStreamingServer[clusterapi.ExecRequest, clusterapi.ExecResponse]) error {
	defer close(h.ended)
	if err := stream.Send(&clusterapi.ExecResponse{Kind: &clusterapi.ExecResponse_Stdout{Stdout: []byte("x")}}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return stream.Context().Err()
}
