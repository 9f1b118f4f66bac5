package apiserver

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/clusterapi/dial"
	"github.com/fray-ml/fray/clusterapi/token"
	"github.com/fray-ml/fray/controller/access/accesstest"
)

func TestLeading(t *testing.T) {
	o := newOutpost(t)
	user := o.as(t, userClaims(token.UserLife))
	healthy := func() healthpb.HealthCheckResponse_ServingStatus {
		got, err := healthpb.NewHealthClient(o.with(t, "")).Check(callContext(t), &healthpb.HealthCheckRequest{Service: "fray.cluster.v1.Cluster"})
		if err != nil {
			t.Fatal(err)
		}
		return got.GetStatus()
	}
	notLeading := func() {
		t.Helper()
		_, err := poll(t, user)
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "this controller does not lead; ann@elsewhere does") {
			t.Errorf("got %v, want UNAVAILABLE with who leads", err)
		}
	}
	notLeading()
	if got := healthy(); got != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health is %s before it leads", got)
	}

	lease, lose := accesstest.NewLease(t, 1)
	o.Lead(lease, o.board)
	if _, err := poll(t, user); err != nil {
		t.Errorf("leading: %v", err)
	}
	if got := healthy(); got != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health is %s while it leads", got)
	}

	t.Run("calls end with the lease", func(t *testing.T) {
		waited := make(chan error, 1)
		go func() {
			_, err := clusterapi.NewClusterClient(user).Wait(callContext(t), &clusterapi.WaitRequest{})
			waited <- err
		}()
		<-o.echo.entered
		watch, err := clusterapi.NewMetadataClient(user).Watch(callContext(t), &clusterapi.WatchRequest{})
		if err == nil {
			_, err = watch.Recv()
		}
		if err != nil {
			t.Fatal(err)
		}
		lose()
		if err := <-waited; status.Code(err) != codes.Unavailable {
			t.Errorf("the call ended with %v, want UNAVAILABLE", err)
		}
		if _, err := watch.Recv(); status.Code(err) != codes.Unavailable {
			t.Errorf("the stream ended with %v, want UNAVAILABLE", err)
		}
		notLeading()
		for deadline := time.Now().Add(time.Minute); healthy() == healthpb.HealthCheckResponse_SERVING; {
			if time.Now().After(deadline) {
				t.Fatal("health still says that it leads")
			}
		}
	})
	t.Run("a lease that has lapsed unnoticed", func(t *testing.T) {
		lease, _ := accesstest.NewLease(t, 2)
		o.Lead(lease, o.board)
		if _, err := poll(t, user); err != nil {
			t.Errorf("leading again: %v", err)
		}
		lease.Invalidate()
		notLeading()
	})
}

// An attempt's calls end with it; one that the loop has not seen yet waits.
func TestCallsFollowTheAttempt(t *testing.T) {
	o := newOutpost(t)
	lease, _ := accesstest.NewLease(t, 3)
	o.board.Show(2) // what an earlier term left says nothing
	if err := newAttempts(o.board, 3).check(o.board.View(), attemptKey{"train-id", 2}); !errors.Is(err, errUnseen) {
		t.Errorf("by an earlier term's view: %v, want %v", err, errUnseen)
	}
	o.Lead(lease, o.board)
	job := o.as(t, jobClaims("rl", "train", 2))
	polled := make(chan error, 1)
	go func() {
		_, err := clusterapi.NewClusterClient(job).Poll(callContext(t), &clusterapi.PollRequest{})
		polled <- err
	}()
	waiting := accesstest.RunningJob("rl", "train", 1)
	o.board.Show(3, waiting)
	o.board.Show(3, accesstest.RunningJob("rl", "train", 2))
	if err := <-polled; err != nil {
		t.Errorf("the call of an attempt that was seen a moment later: %v", err)
	}

	ended := make(chan error, 2)
	go func() {
		_, err := clusterapi.NewClusterClient(job).Wait(callContext(t), &clusterapi.WaitRequest{})
		ended <- err
	}()
	<-o.echo.entered
	watch, err := clusterapi.NewMetadataClient(job).Watch(callContext(t), &clusterapi.WatchRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	stopping := accesstest.RunningJob("rl", "train", 2)
	stopping.Attempts[0].StopGeneration = 9
	o.board.Show(3, stopping)
	if _, err := poll(t, job); err != nil {
		t.Errorf("an attempt that is being stopped may still call, got %v", err)
	}
	o.log.take()
	o.board.Show(3, accesstest.EndedJob("rl", "train", 2))
	if err := <-ended; status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "the job has ended") {
		t.Errorf("the call ended with %v", err)
	}
	if _, err := watch.Recv(); status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "the job has ended") {
		t.Errorf("the stream ended with %v", err)
	}
	wantLog(t, o.log, "method=/fray.cluster.v1.Cluster/Wait", "method=/fray.cluster.v1.Metadata/Watch")
}

func TestServerErrors(t *testing.T) {
	o := newOutpost(t)
	lease, _ := accesstest.NewLease(t, 1)
	o.Lead(lease, o.board)
	user := clusterapi.NewClusterClient(o.as(t, userClaims(token.UserLife)))
	t.Run("a panic", func(t *testing.T) {
		_, err := user.Poll(callContext(t), &clusterapi.PollRequest{JobId: "panic"})
		if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "luck") {
			t.Errorf("got %v, want INTERNAL without what it was", err)
		}
		wantLog(t, o.log, "out of luck", "world_test.go")
	})
	t.Run("a message over the limit", func(t *testing.T) {
		request := &clusterapi.PollRequest{JobId: strings.Repeat("x", dial.MaxMessage)}
		_, err := user.Poll(callContext(t), request, grpc.MaxCallSendMsgSize(2*dial.MaxMessage))
		o.wantRefused(t, err, codes.ResourceExhausted, "received message larger than max", "67108864")
	})
	t.Run("a method that is none", func(t *testing.T) {
		conn := o.as(t, userClaims(token.UserLife))
		err := conn.Invoke(callContext(t), "/fray.cluster.v1.Cluster/Levitate", &clusterapi.PollRequest{}, &clusterapi.JobInfo{})
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("got %v, want UNIMPLEMENTED", err)
		}
	})
	t.Run("reflection", func(t *testing.T) {
		list := func(conn *grpc.ClientConn) (*reflectionpb.ServerReflectionResponse, error) {
			s, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(callContext(t))
			if err != nil {
				return nil, err
			}
			if err := s.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil && !errors.Is(err, io.EOF) {
				return nil, err // io.EOF: it has ended, and Recv says how
			}
			return s.Recv()
		}
		got, err := list(o.as(t, userClaims(token.UserLife)))
		if err != nil || !strings.Contains(got.String(), "fray.cluster.v1.Metadata") {
			t.Errorf("got %v, %v; want the services", got, err)
		}
		if _, err := list(o.with(t, "")); status.Code(err) != codes.Unauthenticated {
			t.Errorf("without a token: %v, want UNAUTHENTICATED", err)
		}
	})
}

// Streams end at once when the process does, other calls within the grace.
func TestStop(t *testing.T) {
	o := newOutpost(t)
	lease, _ := accesstest.NewLease(t, 1)
	o.Lead(lease, o.board)
	user := o.as(t, userClaims(token.UserLife))
	watch, err := clusterapi.NewMetadataClient(user).Watch(callContext(t), &clusterapi.WatchRequest{})
	if err == nil {
		_, err = watch.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() {
		_, err := clusterapi.NewClusterClient(user).Wait(callContext(t), &clusterapi.WaitRequest{})
		waited <- err
	}()
	<-o.echo.entered
	o.Stop()
	if _, err := watch.Recv(); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "this controller is ending") {
		t.Errorf("the stream ended with %v, want UNAVAILABLE", err)
	}
	if err := <-waited; status.Code(err) != codes.Unavailable {
		t.Errorf("the call ended with %v, want UNAVAILABLE", err)
	}
}
