package task

import (
	"context"
	"errors"
	"os"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/sleep"
)

// outputPace is the time between two tries to open an output that is not there yet.
const outputPace = 160 * time.Millisecond

// OpenOutput opens the task's output, and with wait waits until there is one.
func (t *Task) OpenOutput(ctx context.Context, wait bool) (*os.File, error) {
	for {
		over := t.over()
		f, err := os.Open(t.outputPath())
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, os.ErrNotExist):
			return nil, status.Errorf(codes.Unavailable, "open the log: %v", err)
		case over || !wait:
			return nil, status.Errorf(codes.NotFound, "the log of task %d of attempt %d of %s is not on this host; what was written is in the store",
				t.in.Task, t.in.Attempt, t.in.Job)
		}
		if !sleep.For(ctx, outputPace) {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}
