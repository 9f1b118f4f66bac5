package roles

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/config"
	"github.com/fray-ml/fray/rl/ended"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/run"
	"github.com/fray-ml/fray/sleep"
)

// exitOf is the exit status of the controller's process.
func exitOf(s run.State) int {
	if s.Failed {
		return 1
	}
	return 0
}

// The waits of a process that watches for the end of its run.
const (
	endPoll  = 30 * time.Second       // of one call
	endRetry = 100 * time.Millisecond // after a controller that does not answer, the first time
	endCheck = 2 * time.Second        // of the record
	// A controller whose run has ended stays for so long, so that each process hears of it: those of a cluster may have to
	// find it first.
	lingerTime        = 5 * endRetry
	lingerTimeCluster = 50 * endRetry
)

// untilEnded returns once the controller reports that the run has ended, or its end is recorded, or ctx ends. A controller that
// does not answer, as one that was killed, is no end.
func untilEnded(ctx context.Context, peers peer.Peers, cfg *config.Config, log *slog.Logger) {
	ctx, cancel := context.WithCancel(ctx)
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel()
	reasons := make(chan string, 2)
	watches.Go(func() { reasons <- reportedEnd(ctx, peers) })
	watches.Go(func() { reasons <- recordedEnd(ctx, cfg, log) })
	if reason := <-reasons; ctx.Err() == nil {
		log.Info("the run has ended, and so does this process", "reason", reason)
	}
}

// reportedEnd returns why the run has ended, once its controller reports it, or ctx ends.
func reportedEnd(ctx context.Context, peers peer.Peers) string {
	for wait := endRetry; ctx.Err() == nil; wait = min(2*wait, longestWait) {
		began := time.Now()
		short, cancel := context.WithTimeout(ctx, endPoll+observeTimeout)
		status, err := peer.Ask[ControllerStatus](short, peers, string(rl.Controller), "wait_ended", endPoll.Seconds())
		cancel()
		if err == nil && status.Ended {
			return status.Reason
		}
		if time.Since(began) >= endPoll {
			wait = endRetry
			continue
		}
		sleep.For(ctx, wait) // the controller's process is ending, or is not there
	}
	return ""
}

// recordedEnd returns why the run has ended, once that is recorded, or ctx ends.
func recordedEnd(ctx context.Context, cfg *config.Config, log *slog.Logger) string {
	problem := ""
	for sleep.For(ctx, endCheck) {
		end, err := ended.Of(cfg)
		switch {
		case end != nil:
			return end.Reason
		case err != nil && err.Error() != problem: // once, not at each attempt
			problem = err.Error()
			log.Warn("whether the run has ended is not known", "error", err)
		}
	}
	return ""
}
