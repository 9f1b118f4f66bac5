package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/sleep"
)

const (
	// logPart is how much of a log goes into one message, in bytes.
	logPart = 256 << 10
	// logPace is how often a log that is followed is looked at for more, at
	// first and when nothing comes.
	logPace     = 10 * time.Millisecond
	slowLogPace = 160 * time.Millisecond
)

// Logs streams what a task has written, from the file on this host.
func (h *hostService) Logs(request *clusterapi.LogsRequest, stream grpc.ServerStreamingServer[clusterapi.LogsResponse]) error {
	if request.GetOffset() < 0 {
		return status.Errorf(codes.InvalidArgument, "offset is %d, want 0 or more", request.GetOffset())
	}
	f, over, err := h.openLog(stream.Context(), request)
	if err != nil {
		return err
	}
	defer f.Close()
	return (&logStream{file: f, over: over, next: request.GetOffset(), to: stream}).send(request.GetFollow())
}

// openLog finds the output of a task of this host, of any attempt that is still
// here, and a channel that is closed once nothing more is written.
func (h *hostService) openLog(ctx context.Context, r *clusterapi.LogsRequest) (*os.File, <-chan struct{}, error) {
	if t, err := h.live.find(r.GetJobId(), int(r.GetTask())); err == nil && t.in.Attempt == int(r.GetAttempt()) {
		f, err := t.openOutput(ctx, r.GetFollow())
		return f, t.done, err
	}
	past, err := h.dir.findIntent(func(in *intent) bool {
		return in.JobID == r.GetJobId() && in.Attempt == int(r.GetAttempt()) && in.Task == int(r.GetTask())
	})
	if err != nil {
		return nil, nil, status.Errorf(codes.Unavailable, "look for the task: %v", err)
	}
	over := make(chan struct{})
	close(over)
	if past != nil {
		f, err := os.Open(h.dir.taskDir(past.Key).file(outputFile))
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

// openOutput opens the task's output, and with wait waits until there is one.
func (t *task) openOutput(ctx context.Context, wait bool) (*os.File, error) {
	for {
		over := t.over()
		f, err := os.Open(t.dir.file(outputFile))
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, os.ErrNotExist):
			return nil, status.Errorf(codes.Unavailable, "open the log: %v", err)
		case over || !wait:
			return nil, status.Errorf(codes.NotFound, "the log of task %d of attempt %d of %s is not on this host; what was written is in the store",
				t.in.Task, t.in.Attempt, t.in.Job)
		}
		if !sleep.For(ctx, slowLogPace) {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// logStream sends one file.
type logStream struct {
	file *os.File
	over <-chan struct{}
	next int64
	to   grpc.ServerStreamingServer[clusterapi.LogsResponse]
}

// send sends what there is, and with follow what is written until the task is over.
func (s *logStream) send(follow bool) error {
	buffer := make([]byte, logPart)
	for wait := logPace; ; {
		over := !follow
		select {
		case <-s.over:
			over = true
		default:
		}
		sent, err := s.rest(buffer)
		switch {
		case err != nil:
			return err
		case over: // it was, before the file was read to its end
			return nil
		case sent:
			wait = logPace
		default:
			wait = min(2*wait, slowLogPace)
		}
		timer := time.NewTimer(wait)
		select {
		case <-s.to.Context().Done():
			timer.Stop()
			return status.FromContextError(s.to.Context().Err()).Err()
		case <-s.over:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// rest sends what is there, and reports whether that was anything.
func (s *logStream) rest(buffer []byte) (sent bool, err error) {
	for {
		n, err := s.file.ReadAt(buffer, s.next)
		if n > 0 {
			if err := s.to.Send(&clusterapi.LogsResponse{Offset: s.next, Data: buffer[:n]}); err != nil {
				return sent, err
			}
			s.next += int64(n)
			sent = true
		}
		if errors.Is(err, io.EOF) {
			return sent, nil
		}
		if err != nil {
			return sent, status.Errorf(codes.Unavailable, "read the log: %v", err)
		}
	}
}
