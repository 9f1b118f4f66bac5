package roles

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/rl"
	"github.com/fray-ml/fray/rl/peer"
	"github.com/fray-ml/fray/rl/run"
)

// againAfter is how long a controller waits until it asks a rollout worker again that did not answer.
const againAfter = 5 * time.Second

// answerTime is how long a rollout worker may take to answer. To stop it finishes what it does.
func answerTime(method string) time.Duration {
	if method == "stop" {
		return 30 * time.Second
	}
	return 3 * time.Second
}

// callRollouts calls a method of rollout workers. The run goes on without those that are away, if others do what is asked of them:
// each is led to where the run is then once it answers, as one that was restarted.
func callRollouts(ctx context.Context, c *Controller, workers []string, methods ...string) error {
	failed, last := map[string]error{}, ""
	for _, method := range methods {
		here := slices.DeleteFunc(slices.Clone(workers), func(name string) bool { return failed[name] != nil })
		last = method
		limited, cancel := context.WithTimeout(ctx, answerTime(method))
		maps.Copy(failed, peer.CallAll(limited, c.cfg.Peers, here, method))
		cancel()
	}
	if len(failed) == 0 || ctx.Err() != nil {
		return peer.ErrorOf(last, failed)
	}
	for _, err := range failed {
		if !away(err) && rpcerror.CodeOf(err) != rpcerror.CodeDeadline && !errors.Is(err, context.DeadlineExceeded) {
			return peer.ErrorOf(last, failed)
		}
	}
	if len(failed) == len(c.cfg.Cast.RolloutWorkers) {
		return peer.ErrorOf(last, failed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range failed {
		c.late[name] = c.cfg.Now().Add(againAfter)
	}
	c.cfg.Log.Warn("rollout workers do not answer: the run goes on without them", "method", last, "workers", slices.Sorted(maps.Keys(failed)))
	return nil
}

// isLate reports whether a rollout worker is to be asked later, since it did not answer; c.mu is held.
func isLate(c *Controller, name string) bool { return c.cfg.Now().Before(c.late[name]) }

// noteLate has rollout workers that did not answer be led to where the run is once they do.
func noteLate(c *Controller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.late {
		if isLate(c, name) {
			c.record.Known[name] = ""
		}
	}
}

// forgetLate notes processes of modules that were started, but not of those that did not answer: they are restarted once they do.
func forgetLate(c *Controller, now map[string]string, names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range names {
		if run.RoleOf(name) == rl.RolloutWorker && isLate(c, name) {
			c.record.Known[name] = ""
			continue
		}
		delete(c.late, name)
		c.record.Known[name] = now[name]
	}
}
