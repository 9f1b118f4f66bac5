package cluster

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/sessions"
	"github.com/fray-ml/fray/schema"
)

// What a user launches with a session has it in its record; what jobs launch ends with
// their attempt.
func TestLaunchesHaveSessions(t *testing.T) {
	r := newRig(t, schema.Desired{})
	request := func(name string) *clusterapi.JobRequest {
		one := command(name)
		one.Session = "a session"
		return one
	}
	tooLong := request("long")
	tooLong.Session = strings.Repeat("x", 65)
	if _, err := r.client.Launch(r.user(), &clusterapi.LaunchRequest{Request: tooLong}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a long session: got %v", err)
	}
	parent := r.launch(r.user(), request("parent"))
	r.running(parent)
	child := r.launch(r.as(parent), request("child"))
	doc := r.View().Doc
	for id, want := range map[string]string{parent: "a session", child: ""} {
		found := ""
		for _, j := range doc.Jobs {
			if j.ID == id {
				found = j.Launch.Session
			}
		}
		if found != want {
			t.Errorf("%s has session %q, want %q", id, found, want)
		}
	}
}

func TestSessionsAreHeldByACall(t *testing.T) {
	r := newRig(t, schema.Desired{})
	ctx, cancel := context.WithCancel(r.user())
	held, err := r.client.HoldSession(ctx, &clusterapi.HoldSessionRequest{Session: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := held.Recv(); err != nil || m.GetLease().AsDuration() != sessions.Lease {
		t.Fatalf("got %v, %v, want the lease", m, err)
	}
	cancel()
	if _, err := held.Recv(); status.Code(err) != codes.Canceled {
		t.Errorf("got %v, want that the call was cancelled", err)
	}
	if _, err := r.client.EndSession(r.user(), &clusterapi.EndSessionRequest{Session: "one"}); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"", strings.Repeat("x", 65)} {
		if _, err := r.client.EndSession(r.user(), &clusterapi.EndSessionRequest{Session: id}); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q: got %v, want that it is no session", id, err)
		}
		held, err := r.client.HoldSession(r.user(), &clusterapi.HoldSessionRequest{Session: id})
		if err == nil {
			_, err = held.Recv()
		}
		if status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q: got %v, want that it is no session", id, err)
		}
	}
	if _, err := r.client.EndSession(t.Context(), &clusterapi.EndSessionRequest{Session: "one"}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a token: got %v", err)
	}
}
