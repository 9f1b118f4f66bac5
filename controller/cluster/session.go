package cluster

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/admission"
	"github.com/fray-ml/fray/controller/badrequest"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/controller/sessions"
	langrequest "github.com/fray-ml/fray/lang/request"
)

// HoldSession holds a client's session until the call ends.
func (c *Server) HoldSession(req *clusterapi.HoldSessionRequest, to grpc.ServerStreamingServer[clusterapi.HoldSessionResponse]) error {
	if _, err := caller.Known(to.Context()); err != nil {
		return err
	}
	if err := checkSession(req.GetSession()); err != nil {
		return err
	}
	release := c.Sessions.Hold(req.GetSession())
	defer release()
	if err := to.Send(&clusterapi.HoldSessionResponse{Lease: durationpb.New(sessions.Lease)}); err != nil {
		return err
	}
	<-to.Context().Done()
	return to.Context().Err()
}

// EndSession ends the jobs of a session now.
func (c *Server) EndSession(ctx context.Context, req *clusterapi.EndSessionRequest) (*clusterapi.EndSessionResponse, error) {
	if _, err := caller.Known(ctx); err != nil {
		return nil, err
	}
	if err := checkSession(req.GetSession()); err != nil {
		return nil, err
	}
	c.Sessions.End(req.GetSession())
	return &clusterapi.EndSessionResponse{}, nil
}

func checkSession(id string) error {
	if n := len(id); n == 0 || n > admission.MaxRequestID {
		return badrequest.Of(langrequest.Mistake{Path: "session", Summary: "Invalid value for session", Detail: fmt.Sprintf("It has %d bytes: want 1 to %d random ones.", n, admission.MaxRequestID)})
	}
	return nil
}
