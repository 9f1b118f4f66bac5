package hostapi

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/agent/hostdir"
	"github.com/fray-ml/fray/agent/logs"
	"github.com/fray-ml/fray/clusterapi"
)

// Logs streams what a task has written, from the file on this host.
func (h *Service) Logs(request *clusterapi.LogsRequest, stream grpc.ServerStreamingServer[clusterapi.LogsResponse]) error {
	if request.GetOffset() < 0 {
		return status.Errorf(codes.InvalidArgument, "offset is %d, want 0 or more", request.GetOffset())
	}
	f, over, err := h.openLog(stream.Context(), request)
	if err != nil {
		return err
	}
	defer f.Close()
	s := logs.Stream{File: f, Over: over, Offset: request.GetOffset(), To: stream}
	// A task that an agent before this version started has no times.
	if times, err := os.Open(filepath.Join(filepath.Dir(f.Name()), hostdir.TimesFile)); err == nil {
		defer times.Close()
		s.Times = times
	}
	return s.Send(request.GetFollow())
}

// openLog finds the output of a task of this host, of any attempt that is still
// here, and a channel that is closed once nothing more is written.
func (h *Service) openLog(ctx context.Context, r *clusterapi.LogsRequest) (*os.File, <-chan struct{}, error) {
	if t, err := h.live.find(r.GetJobId(), int(r.GetTask())); err == nil && t.Name().Attempt == int(r.GetAttempt()) {
		f, err := t.OpenOutput(ctx, r.GetFollow())
		return f, t.Done(), err
	}
	past, err := h.dir.FindIntent(func(in *hostdir.Intent) bool {
		return in.JobID == r.GetJobId() && in.Attempt == int(r.GetAttempt()) && in.Task == int(r.GetTask())
	})
	if err != nil {
		return nil, nil, status.Errorf(codes.Unavailable, "find the task: %v", err)
	}
	over := make(chan struct{})
	close(over)
	if past != nil {
		f, err := os.Open(h.dir.Task(past.Key).File(hostdir.OutputFile))
		if err == nil || !errors.Is(err, os.ErrNotExist) {
			return f, over, err
		}
	}
	return nil, nil, errNoLog(r)
}

func errNoLog(r *clusterapi.LogsRequest) error {
	return status.Errorf(codes.NotFound, "this host has no log of task %d of attempt %d of job %s; what was written is in the store",
		r.GetTask(), r.GetAttempt(), r.GetJobId())
}
