package roles

import (
	"context"
	"log/slog"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/run"
	"github.com/fray-ml/fray/sleep"
)

// The waits of a process that watches for the end of its run.
const (
	endPoll    = 30 * time.Second // of one call
	endRetry   = time.Second      // after a controller that does not answer
	lingerTime = 5 * endRetry     // of a controller whose run has ended, so that each process hears of it
)

// WaitEnded returns true as soon as the run has ended, and false after so many seconds.
func (c *Controller) WaitEnded(ctx context.Context, seconds float64) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second)))
	defer cancel()
	for {
		c.mu.Lock()
		ended, changed := c.machine.State().Phase == run.Ended, c.changed.changed
		c.mu.Unlock()
		if ended {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// untilEnded returns once the controller says that the run has ended, or ctx ends. A controller that does not answer, as
// one that was killed, is no end.
func untilEnded(ctx context.Context, peers Peers, log *slog.Logger) {
	for ctx.Err() == nil {
		short, cancel := context.WithTimeout(ctx, endPoll+observeTimeout)
		ended, err := ask[bool](short, peers, string(rl.Controller), "wait_ended", endPoll.Seconds())
		cancel()
		switch {
		case err != nil:
			sleep.For(ctx, endRetry)
		case ended:
			log.Info("the run has ended, and so does this process")
			return
		}
	}
}
