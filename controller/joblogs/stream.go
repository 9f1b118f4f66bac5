// Package joblogs streams what the tasks of a job write, attempt by attempt: from the
// task's host while it runs, if that serves logs, and else from the store. A cursor
// in each message resumes a stream that broke off. Who may read which job's logs is
// decided by its callers.
//
// Start with [Source.Stream]; reader.go reads one task, cursor.go has the positions.
package joblogs

import (
	"context"
	"io"
	"log/slog"
	"slices"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/badrequest"
	"github.com/fray-ml/fray/controller/describe"
	"github.com/fray-ml/fray/controller/jobs"
	langrequest "github.com/fray-ml/fray/lang/request"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Source is where the logs of tasks come from.
type Source struct {
	Views access.Views
	Store store.Store
	// Hosts connects to the agent that serves a report's API; nil: logs come from
	// the store alone. Closing the connection is the caller's.
	Hosts func(ctx context.Context, report *state.HostReport) (HostConn, error)
	Log   *slog.Logger
	Jobs  *jobs.Cache
}

// HostConn is a connection to a host's agent.
type HostConn interface {
	grpc.ClientConnInterface
	io.Closer
}

// monitor streams what the tasks of a job write, attempt by attempt.
type monitor struct {
	*Source

	req    *clusterapi.MonitorRequest
	stream grpc.ServerStreamingServer[clusterapi.MonitorResponse]
	follow bool
	id     string     // of the job
	last   *state.Job // as last seen
	at     cursor     // behind what was sent
}

// Stream sends a job's logs until it has ended and all was sent.
func (s *Source) Stream(j *state.Job, req *clusterapi.MonitorRequest, stream grpc.ServerStreamingServer[clusterapi.MonitorResponse]) error {
	at, err := parseCursor(req.GetAfter())
	if err != nil {
		return badrequest.Of(langrequest.Mistake{Path: "after", Summary: "Invalid value for after", Detail: "Want the cursor of an earlier response, as it was."})
	}
	m := &monitor{
		Source: s, req: req, stream: stream, id: j.ID, last: j, at: at,
		follow: req.Follow == nil || req.GetFollow(),
	}
	if wrong := m.missingParts(j); wrong != nil {
		return wrong
	}
	return m.run(stream.Context())
}

// missingParts rejects an attempt or a task that is not there.
func (m *monitor) missingParts(j *state.Job) error {
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
			return m.stream.Send(&clusterapi.MonitorResponse{Attempt: int32(m.last.Attempt), Cursor: m.at.bytes(), Job: describe.Job(m.Views.View(), m.last)})
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
	err := access.Await(ctx, m.Views, func(v *access.View) bool {
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
func (m *monitor) see(v *access.View) {
	if j := m.Jobs.Of(v.Doc).ByID(m.id); j != nil {
		m.last = j
	} else {
		m.last = jobs.Removed(m.last)
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
			Source: m.Source, id: m.id, attempt: a.Number, task: i, host: a.Tasks[i],
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
