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
	endPoll  = 30 * time.Second       // of one call
	endRetry = 100 * time.Millisecond // after a controller that does not answer
	// A controller whose run has ended stays for so long, so that each process hears of it: those of a cluster may have to
	// find it first.
	lingerTime        = 5 * endRetry
	lingerTimeCluster = 50 * endRetry
)

// untilEnded returns once the controller says that the run has ended, or ctx ends. A controller that does not answer, as
// one that was killed, is no end.
func untilEnded(ctx context.Context, peers Peers, log *slog.Logger) {
	for ctx.Err() == nil {
		began := time.Now()
		short, cancel := context.WithTimeout(ctx, endPoll+observeTimeout)
		status, err := ask[ControllerStatus](short, peers, string(rl.Controller), "wait_ended", endPoll.Seconds())
		cancel()
		if err == nil && status.Phase == run.Ended {
			log.Info("the run has ended, and so does this process")
			return
		}
		if time.Since(began) < endPoll { // the controller's process is ending, or is not there
			sleep.For(ctx, endRetry)
		}
	}
}
