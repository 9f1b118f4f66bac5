package joblogs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/clusterapi"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

const (
	// logPace is how often the store is looked at for more of a log, which it
	// has no way to tell of.
	logPace = 500 * time.Millisecond
	// hostPace is when a host that failed is asked again, at first: its task may
	// have just been assigned. It doubles up to slowHostPace.
	hostPace     = 50 * time.Millisecond
	slowHostPace = 2 * time.Second
	// maxLine is the longest line that is kept together, in bytes.
	maxLine = 1 << 20
)

// logReader reads what one task of an attempt writes: from its host while it
// runs, if that serves, and else from the store.
type logReader struct {
	*Source

	id      string
	attempt int
	task    int
	host    state.Task // where it runs
	follow  bool
	tail    int64
	to      chan<- piece

	next    int64 // offset behind what was handed on
	partial []byte
	skip    bool          // until the end of a line that was begun before
	pace    time.Duration // of asking the host, 0 before the first failure
	retry   time.Time     // when to ask it again
}

func (r *logReader) run(ctx context.Context) error {
	if err := r.seek(ctx); err != nil {
		return err
	}
	for {
		changed := r.Views.Changed()
		over := r.over()
		complete := false
		if !over {
			complete = r.fromHost(ctx)
		}
		if !complete {
			if err := r.fromStore(ctx); err != nil {
				return err
			}
		}
		if over || complete || !r.follow {
			return r.flush(ctx)
		}
		if err := r.pause(ctx, changed); err != nil {
			return err
		}
	}
}

// pause waits for a View or for time to look again.
func (r *logReader) pause(ctx context.Context, changed <-chan struct{}) error {
	wait := logPace
	if r.pace > 0 {
		wait = min(wait, r.pace)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	case <-changed:
	case <-timer.C:
	}
	return nil
}

func (r *logReader) name() store.LogName {
	return store.LogName{Job: r.id, Attempt: r.attempt, Task: r.task}
}

// seek goes to the last bytes, if no more is asked for.
func (r *logReader) seek(ctx context.Context) error {
	if r.tail <= 0 || r.next > 0 {
		return nil
	}
	size, err := store.LogSize(ctx, r.Store, r.name())
	if err != nil {
		return status.Errorf(codes.Unavailable, "%v", err)
	}
	r.next = max(0, size-r.tail)
	r.skip = r.next > 0
	return nil
}

// over reports whether the task writes nothing more.
func (r *logReader) over() bool {
	j := r.Jobs.Of(r.Views.View().Doc).ByID(r.id)
	if j == nil {
		return true
	}
	a := attemptOf(j, r.attempt)
	return a == nil || a.Outcome != "" || r.task < len(a.Tasks) && a.Tasks[r.task].State.Ended()
}

// fromHost streams from the task's host, and reports whether that was all.
// Whatever goes wrong there, the store has it too, a little later.
func (r *logReader) fromHost(ctx context.Context) bool {
	report := r.Views.View().Agent(&r.host)
	if r.Hosts == nil || report == nil || time.Now().Before(r.retry) {
		return false
	}
	err := r.stream(ctx, report)
	if err == nil {
		return true
	}
	r.pace = min(max(2*r.pace, hostPace), slowHostPace)
	r.retry = time.Now().Add(r.pace)
	if ctx.Err() == nil && status.Code(err) != codes.NotFound {
		r.Log.Debug("logs come from the store", "job", r.id, "task", r.task, "host", report.API, "error", err.Error())
	}
	return false
}

func (r *logReader) stream(ctx context.Context, report *state.HostReport) error {
	conn, err := r.Hosts(ctx, report)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	at := r.next + int64(len(r.partial))
	logs, err := clusterapi.NewHostClient(conn).Logs(ctx, &clusterapi.LogsRequest{
		JobId: r.id, Attempt: int32(r.attempt), Task: int32(r.task), Offset: at, Follow: r.follow,
	})
	if err != nil {
		return err
	}
	for {
		response, err := logs.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case response.GetOffset() != at:
			return fmt.Errorf("the host sent byte %d, want %d", response.GetOffset(), at)
		}
		at += int64(len(response.GetData()))
		if err := r.take(ctx, response.GetData()); err != nil {
			return err
		}
	}
}

func (r *logReader) fromStore(ctx context.Context) error {
	_, err := store.ReadLog(ctx, r.Store, r.name(), r.next+int64(len(r.partial)), func(data []byte) error {
		return r.take(ctx, data)
	})
	switch {
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case err != nil:
		return status.Errorf(codes.Unavailable, "%v", err)
	}
	return nil
}

// take hands whole lines on and keeps the rest.
func (r *logReader) take(ctx context.Context, data []byte) error {
	if r.skip {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			r.next += int64(len(data))
			return nil
		}
		r.next += int64(i + 1)
		data, r.skip = data[i+1:], false
	}
	if len(r.partial) > 0 {
		data = slices.Concat(r.partial, data)
	}
	end := bytes.LastIndexByte(data, '\n') + 1
	if len(data)-end > maxLine {
		end = len(data)
	}
	r.partial = bytes.Clone(data[end:])
	return r.hand(ctx, data[:end])
}

// flush hands on the last line, which has no end.
func (r *logReader) flush(ctx context.Context) error {
	rest := r.partial
	r.partial = nil
	return r.hand(ctx, rest)
}

func (r *logReader) hand(ctx context.Context, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	r.next += int64(len(data))
	select {
	case r.to <- piece{task: r.task, data: data, next: r.next}:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}
