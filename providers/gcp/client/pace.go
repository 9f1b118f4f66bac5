package client

import (
	"context"
	"time"

	"github.com/fray-ml/fray/sleep"
)

// Pace is how much at a time, how fast and how long a Bucket tries.
type Pace struct {
	Interval time.Duration // between two writes of one object
	Stall    time.Duration // a request that moves no byte for this long is given up and tried again
	Backoff  time.Duration // before the first retry; doubles up to maxBackoff
	Patience time.Duration // an operation that keeps failing for this long fails
	// chunk is how many bytes of a blob are sent, and kept in memory to be sent
	// again, at a time; a multiple of 256 KiB.
	Chunk int
}

// ServicePace is the pace that the services take.
func ServicePace() Pace {
	return Pace{
		Interval: time.Second, Stall: 20 * time.Second, Backoff: 250 * time.Millisecond, Patience: time.Minute, Chunk: 8 << 20,
	}
}

// Pause waits for d, or until ctx ends, whose cause it returns then.
func Pause(ctx context.Context, d time.Duration) error {
	if !sleep.For(ctx, d) {
		return context.Cause(ctx)
	}
	return nil
}
