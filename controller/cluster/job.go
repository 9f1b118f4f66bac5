package cluster

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/badrequest"
	"github.com/fray-ml/fray/controller/caller"
	"github.com/fray-ml/fray/controller/describe"
	"github.com/fray-ml/fray/controller/joblogs"
	"github.com/fray-ml/fray/controller/jobs"
	langrequest "github.com/fray-ml/fray/lang/request"
	"github.com/fray-ml/fray/plan/launch"
	"github.com/fray-ml/fray/state"
)

// Poll tells how a job stands.
func (c *Server) Poll(ctx context.Context, req *clusterapi.PollRequest) (*clusterapi.JobInfo, error) {
	who, err := caller.Known(ctx)
	if err != nil {
		return nil, err
	}
	v, err := access.Present(ctx, c.State)
	if err != nil {
		return nil, err
	}
	j, err := c.jobs.Of(v.Doc).Find(who, req.GetJobId())
	if err != nil {
		return nil, err
	}
	return describe.Job(v, j), nil
}

// Wait answers when jobs have ended: all of them, or one if any will do.
func (c *Server) Wait(ctx context.Context, req *clusterapi.WaitRequest) (*clusterapi.WaitResponse, error) {
	who, err := caller.Known(ctx)
	if err != nil {
		return nil, err
	}
	if len(req.GetJobIds()) == 0 {
		return nil, badrequest.Of(langrequest.Mistake{Path: "job_ids", Summary: "Missing attribute", Detail: "Name the jobs to wait for."})
	}
	v, err := access.Present(ctx, c.State)
	if err != nil {
		return nil, err
	}
	last := make([]*state.Job, len(req.GetJobIds()))
	x := c.jobs.Of(v.Doc)
	for i, id := range req.GetJobIds() {
		if last[i], err = x.Find(who, id); err != nil {
			return nil, err
		}
	}
	waiting := ctx
	if req.GetTimeout() != nil {
		limited, cancel := context.WithTimeout(ctx, max(req.GetTimeout().AsDuration(), 0))
		defer cancel()
		waiting = limited
	}
	var seen *access.View
	err = access.Await(waiting, c.State, func(v *access.View) bool {
		seen = v
		return c.ended(v, last, req.GetAny())
	})
	over := status.Code(err) == codes.DeadlineExceeded && ctx.Err() == nil
	if err != nil && (seen == nil || !over) {
		return nil, err
	}
	answer := &clusterapi.WaitResponse{}
	for _, j := range last {
		answer.Jobs = append(answer.Jobs, describe.Job(seen, j))
	}
	return answer, nil
}

// ended brings jobs up to date and reports whether all, or any, have ended. One
// that is on record no more was taken away: it has.
func (c *Server) ended(v *access.View, waited []*state.Job, any bool) bool {
	x, n := c.jobs.Of(v.Doc), 0
	for i, j := range waited {
		now := x.ByID(j.ID)
		if now == nil {
			now = jobs.Removed(j)
		}
		waited[i] = now
		if now.Status.Ended() {
			n++
		}
	}
	return n == len(waited) || any && n > 0
}

// by is who ends a job, for people.
func by(who caller.Caller) string {
	if who.Kind == caller.Job {
		return "job " + who.JobID
	}
	return who.String()
}

// Terminate ends a job and all that it launched.
func (c *Server) Terminate(ctx context.Context, req *clusterapi.TerminateRequest) (*clusterapi.TerminateResponse, error) {
	who, err := caller.Known(ctx)
	if err != nil {
		return nil, err
	}
	err = c.do(ctx, func(doc *state.Document, _ time.Time) (*state.Document, error) {
		x := jobs.NewTable(doc)
		j, err := x.Find(who, req.GetJobId())
		if err != nil {
			return nil, err
		}
		if err := x.MayEnd(who, j); err != nil {
			return nil, err
		}
		if doc.Jobs[j.Spec.Addr] != j {
			return doc, nil // it is past
		}
		return launch.Terminated(doc, j.Spec.Addr, by(who)), nil
	})
	if err != nil {
		return nil, err
	}
	return &clusterapi.TerminateResponse{}, nil
}

// ListJobs lists the jobs of a namespace, by name.
func (c *Server) ListJobs(ctx context.Context, req *clusterapi.ListJobsRequest) (*clusterapi.ListJobsResponse, error) {
	who, err := caller.Known(ctx)
	if err != nil {
		return nil, err
	}
	namespace, err := jobs.Namespace(who, req.GetNamespace(), "namespace")
	if err != nil {
		return nil, err
	}
	v, err := access.Present(ctx, c.State)
	if err != nil {
		return nil, err
	}
	var parent string
	if req.GetParentJobId() != "" {
		j, err := c.jobs.Of(v.Doc).Find(who, req.GetParentJobId())
		if err != nil {
			return nil, err
		}
		parent = j.ID
	}
	var found []*state.Job
	for j := range c.jobs.Of(v.Doc).All() {
		switch {
		case namespace != "" && j.Spec.Namespace != namespace,
			!strings.HasPrefix(jobs.NameOf(j), req.GetPrefix()),
			j.Status.Ended() && !req.GetEnded(),
			parent != "" && (j.Launch == nil || j.Launch.Parent != parent):
		default:
			found = append(found, j)
		}
	}
	slices.SortFunc(found, func(a, b *state.Job) int {
		return cmp.Or(cmp.Compare(jobs.NameOf(a), jobs.NameOf(b)), cmp.Compare(a.Spec.Namespace, b.Spec.Namespace), cmp.Compare(a.ID, b.ID))
	})
	answer := &clusterapi.ListJobsResponse{}
	for _, j := range found {
		answer.Jobs = append(answer.Jobs, describe.Job(v, j))
	}
	return answer, nil
}

// runningAttempt is the attempt of a job that runs, an error if none does.
func runningAttempt(j *state.Job) (*state.Attempt, error) {
	last := j.Last()
	if last == nil || last.Outcome != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "no attempt of job %s runs: it is %s", j.ID, j.Status)
	}
	return last, nil
}

// Monitor streams a job's logs until it has ended and all was sent.
func (c *Server) Monitor(req *clusterapi.MonitorRequest, stream grpc.ServerStreamingServer[clusterapi.MonitorResponse]) error {
	who, err := caller.Known(stream.Context())
	if err != nil {
		return err
	}
	v, err := access.Present(stream.Context(), c.State)
	if err != nil {
		return err
	}
	j, err := c.jobs.Of(v.Doc).Find(who, req.GetJobId())
	if err != nil {
		return err
	}
	logs := joblogs.Source{Views: c.State, Store: c.Store, Hosts: c.Hosts, Log: c.Log, Jobs: &c.jobs}
	return logs.Stream(j, req, stream)
}
