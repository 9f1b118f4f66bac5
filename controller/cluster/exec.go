package cluster

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/badrequest"
	"github.com/fray-ml/fray/controller/caller"
	langrequest "github.com/fray-ml/fray/lang/request"
	"github.com/fray-ml/fray/state"
)

// execStream is a call of Exec, the server's end.
type execStream = grpc.BidiStreamingServer[clusterapi.ExecRequest, clusterapi.ExecResponse]

// Exec passes a command on to the agent of a task's host.
func (c *Server) Exec(stream execStream) error {
	ctx := stream.Context()
	who, err := caller.Known(ctx)
	if err != nil {
		return err
	}
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) || err == nil && first.GetStart() == nil {
		return badrequest.Of(langrequest.Mistake{Path: "start", Summary: "Missing attribute", Detail: "Begin with start: which job's host, and the command."})
	}
	if err != nil {
		return err
	}
	start := proto.CloneOf(first.GetStart())
	v, err := access.Present(ctx, c.State)
	if err != nil {
		return err
	}
	report, err := c.hostToRunOn(v, who, start)
	if err != nil {
		return err
	}
	conn, err := c.Hosts(ctx, report)
	if err != nil {
		return status.Errorf(codes.Unavailable, "reach the agent at %s: %v", report.API, err)
	}
	defer conn.Close()
	return relay(ctx, stream, clusterapi.NewHostClient(conn), start)
}

// hostToRunOn finds the host of a task, and names the job in start by its id.
func (c *Server) hostToRunOn(v *access.View, who caller.Caller, start *clusterapi.ExecStart) (*state.HostReport, error) {
	x := c.jobs.Of(v.Doc)
	j, err := x.Find(who, start.GetJobId())
	if err != nil {
		return nil, err
	}
	if err := x.MayEnd(who, j); err != nil {
		return nil, status.Errorf(codes.PermissionDenied, "job %s may run commands on its own hosts and on those of what it launched, and %s is neither", who.JobID, j.ID)
	}
	if len(start.GetCommand()) == 0 && start.GetProfile() == nil {
		return nil, badrequest.Of(langrequest.Mistake{Path: "start.command", Summary: "Invalid value for command", Detail: "The command has no program."})
	}
	attempt, err := runningAttempt(j)
	if err != nil {
		return nil, err
	}
	task := int(start.GetTask())
	if task < 0 || task >= len(attempt.Tasks) {
		return nil, status.Errorf(codes.NotFound, "job %s has no task %d; its tasks are 0 to %d", j.ID, task, len(attempt.Tasks)-1)
	}
	start.JobId = j.ID
	report := v.Agent(&attempt.Tasks[task])
	if report == nil || c.Hosts == nil {
		t := &attempt.Tasks[task]
		return nil, status.Errorf(codes.Unavailable, "the agent of host %d of slice %s serves no commands", t.Host, t.Slice)
	}
	return report, nil
}

// relay passes messages both ways until the host's end is over.
func relay(ctx context.Context, from execStream, to clusterapi.HostClient, start *clusterapi.ExecStart) error {
	ctx, cancel := context.WithCancel(ctx) // a caller that leaves ends the command
	defer cancel()
	host, err := to.Exec(ctx)
	if err != nil {
		return err
	}
	if err := host.Send(&clusterapi.ExecRequest{Kind: &clusterapi.ExecRequest_Start{Start: start}}); err != nil {
		return relayEnd(host)
	}
	go func() {
		for {
			message, err := from.Recv()
			if errors.Is(err, io.EOF) {
				_ = host.CloseSend() // its end is told by Recv
				return
			}
			if err != nil {
				cancel()
				return
			}
			if host.Send(message) != nil {
				return // told by Recv
			}
		}
	}()
	for {
		message, err := host.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := from.Send(message); err != nil {
			return err
		}
	}
}

// relayEnd is why the host's end of a stream is over.
func relayEnd(host grpc.BidiStreamingClient[clusterapi.ExecRequest, clusterapi.ExecResponse]) error {
	for {
		if _, err := host.Recv(); err != nil {
			return err
		}
	}
}
