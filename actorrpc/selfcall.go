package actorrpc

import (
	"context"
	"time"

	"github.com/fray-ml/fray/actorrpc/internal/callchain"
)

// checkEvery is how often a caller that waits for a call checks whether the call waits for it.
const checkEvery = 100 * time.Millisecond

// waiters are the runs that wait for a call which is made with a context: the one that has the context,
// and those that wait for that one.
func (c *Client) waiters(ctx context.Context) []callchain.Run {
	r := callchain.Own(ctx)
	if r == nil {
		return nil
	}
	all := []callchain.Run{r}
	peer, seq := r.Caller()
	if seq == 0 {
		return all
	}
	if made := c.transports.unanswered(peer, seq); made != nil {
		return append(all, made.waiters...)
	}
	return all
}

// behind reports whether the call, which a run made, was sent to where that holds it up.
func (c *call) behind(r callchain.Run) bool {
	c.actor.mu.Lock()
	defer c.actor.mu.Unlock()
	return c.via != nil && r.HoldsUp(c.to(c.via.process()))
}

// wait waits until the call is done. The error is why it did not; the call goes on.
func (c *call) wait(ctx context.Context) error {
	select {
	case <-c.done:
		return nil
	default:
	}
	var again <-chan time.Time
	own := callchain.Own(ctx)
	if own == nil || c.made != own {
		own = nil
	} else {
		look := time.NewTicker(checkEvery)
		defer look.Stop()
		again = look.C
	}
	for {
		if own != nil && c.behind(own) {
			return c.named(selfCall([]callchain.Run{own}, true)).Typed()
		}
		select {
		case <-c.done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-again:
		}
	}
}
