package controller

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	langrequest "github.com/fray-ml/fray/lang/request"
	"github.com/fray-ml/fray/state"
)

// monitor streams what the tasks of a job write, attempt by attempt.
type monitor struct {
	*clusterServer

	req    *clusterapi.MonitorRequest
	stream grpc.ServerStreamingServer[clusterapi.MonitorResponse]
	follow bool
	id     string     // of the job
	last   *state.Job // as last seen
	at     cursor     // behind what was sent
}

// Monitor streams a job's logs until it has ended and all was sent.
func (c *clusterServer) Monitor(req *clusterapi.MonitorRequest, stream grpc.ServerStreamingServer[clusterapi.MonitorResponse]) error {
	who, err := known(stream.Context())
	if err != nil {
		return err
	}
	v, err := c.present(stream.Context())
	if err != nil {
		return err
	}
	j, err := c.jobs(v).find(who, req.GetJobId())
	if err != nil {
		return err
	}
	at, err := parseCursor(req.GetAfter())
	if err != nil {
		return refused([]langrequest.Mistake{{Path: "after", Summary: "Invalid value for after", Detail: "Want the cursor of an earlier response, as it was."}})
	}
	m := &monitor{
		clusterServer: c, req: req, stream: stream, id: j.ID, last: j, at: at,
		follow: req.Follow == nil || req.GetFollow(),
	}
	if wrong := m.unknownParts(j); wrong != nil {
		return wrong
	}
	return m.run(stream.Context())
}

// unknownParts refuses an attempt or a task that is not there.
func (m *monitor) unknownParts(j *state.Job) error {
	if m.req.Attempt != nil && int(m.req.GetAttempt()) <= j.Attempt && attemptOf(j, int(m.req.GetAttempt())) == nil {
		return status.Errorf(codes.NotFound, "attempt %d of job %s is not on record; the last ones up to %d are", m.req.GetAttempt(), j.ID, j.Attempt)
	}
	if m.req.Attempt != nil && j.Status.Ended() && int(m.req.GetAttempt()) > j.Attempt {
		return status.Errorf(codes.NotFound, "job %s has ended and had %d attempts", j.ID, j.Attempt)
	}
	if last := j.Last(); m.req.Task != nil && last != nil && (m.req.GetTask() < 0 || int(m.req.GetTask()) >= len(last.Tasks)) {
		return status.Errorf(codes.NotFound, "job %s has no task %d; its tasks are 0 to %d", j.ID, m.req.GetTask(), len(last.Tasks)-1)
	}
	return nil
}

func attemptOf(j *state.Job, number int) *state.Attempt {
	if i := slices.IndexFunc(j.Attempts, func(a state.Attempt) bool { return a.Number == number }); i >= 0 {
		return &j.Attempts[i]
	}
	return nil
}

func (m *monitor) run(ctx context.Context) error {
	for {
		attempt, err := m.next(ctx)
		if err != nil {
			return err
		}
		if attempt == nil {
			return m.stream.Send(&clusterapi.MonitorResponse{Attempt: int32(m.last.Attempt), Cursor: m.at.bytes(), Job: jobInfo(m.Desk.View(), m.last)})
		}
		m.at.begin(attempt.Number)
		if err := m.attempt(ctx, attempt); err != nil {
			return err
		}
		m.at.done = true
	}
}

// next waits for the attempt to send next; nil when there will be none.
func (m *monitor) next(ctx context.Context) (*state.Attempt, error) {
	var next *state.Attempt
	err := m.await(ctx, func(v *View) bool {
		m.see(v)
		for i := range m.last.Attempts {
			a := &m.last.Attempts[i]
			if m.at.isBefore(a.Number) && (m.req.Attempt == nil || a.Number == int(m.req.GetAttempt())) {
				next = a
				return true
			}
		}
		return !m.follow || m.last.Status.Ended() || m.req.Attempt != nil && m.last.Attempt >= int(m.req.GetAttempt())
	})
	return next, err
}

// see brings the job up to date.
func (m *monitor) see(v *View) {
	if j := m.jobs(v).byID[m.id]; j != nil {
		m.last = j
	} else {
		m.last = gone(m.last)
	}
}

// piece is some whole lines of a task.
type piece struct {
	task int
	data []byte
	next int64 // offset behind it
}

// attempt sends all that the tasks of an attempt write.
func (m *monitor) attempt(ctx context.Context, a *state.Attempt) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pieces := make(chan piece)
	readers, ctx := errgroup.WithContext(ctx)
	for i := range a.Tasks {
		if m.req.Task != nil && int(m.req.GetTask()) != i {
			continue
		}
		r := &logReader{
			clusterServer: m.clusterServer, id: m.id, attempt: a.Number, task: i, host: a.Tasks[i],
			follow: m.follow, next: m.at.offset(i), tail: m.req.GetTail(), to: pieces,
		}
		readers.Go(func() error { return r.run(ctx) })
	}
	ended := make(chan error, 1)
	go func() {
		ended <- readers.Wait()
		close(pieces)
	}()
	var failed error
	for p := range pieces {
		if failed != nil {
			continue // until the readers have noticed
		}
		m.at.set(p.task, p.next)
		failed = m.stream.Send(&clusterapi.MonitorResponse{Attempt: int32(a.Number), Task: int32(p.task), Data: p.data, Cursor: m.at.bytes()})
		if failed != nil {
			cancel()
		}
	}
	if err := <-ended; failed == nil {
		failed = err
	}
	return failed
}
