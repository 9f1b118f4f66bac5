package actorrpc

import (
	"context"
	"fmt"
	"time"

	"github.com/fray-ml/fray/actorrpc/internal/callchain"
)

// Wait waits until n of the calls have ended, well or badly. It returns those that have, at most n,
// and the others, both in the order given. If ctx ends before, the error is its error, and ended has what
// had ended by then. A [SelfCallError] is as of [Future.Result].
func Wait[R any](ctx context.Context, n int, futures ...*Future[R]) (ended, others []*Future[R], err error) {
	if n < 0 || n > len(futures) {
		return nil, futures, fmt.Errorf("%d of %d calls are to end: want 0 to %d", n, len(futures), len(futures))
	}
	calls := make([]*call, len(futures))
	for i, f := range futures {
		calls[i] = f.call
	}
	err = waitFor(ctx, n, calls)
	for _, f := range futures {
		select {
		case <-f.Done():
			if len(ended) < n {
				ended = append(ended, f)
				continue
			}
		default:
		}
		others = append(others, f)
	}
	if len(ended) == n {
		err = nil
	}
	return ended, others, err
}

// waitFor waits until n of the calls are done. The error is why they are not; the calls go on.
func waitFor(ctx context.Context, n int, calls []*call) error {
	ended, over := make(chan struct{}, len(calls)), make(chan struct{})
	defer close(over)
	for _, c := range calls {
		go func() {
			select {
			case <-c.done:
				ended <- struct{}{}
			case <-over:
			}
		}()
	}
	own := callchain.Own(ctx)
	check := time.NewTicker(checkEvery)
	defer check.Stop()
	for range n {
		for waits := true; waits; {
			select {
			case <-ended:
				waits = false
			case <-ctx.Done():
				return ctx.Err()
			case <-check.C:
				if err := behindAny(own, calls); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// behindAny is the error of the first of the calls that the running one made and holds up, nil if there is none.
func behindAny(own callchain.Run, calls []*call) error {
	for _, c := range calls {
		if own != nil && c.made == own && !c.ended() && c.behind(own) {
			return c.named(selfCall([]callchain.Run{own}, true)).Typed()
		}
	}
	return nil
}
