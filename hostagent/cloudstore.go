package hostagent

import (
	"context"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// reportedFailures is how many reports in a row have to fail before that is reported: one
// in between is no news, and a machine may write few guest attributes.
const reportedFailures = 3

// cloudStore is the store of a host in the cloud, which watches whether the reports of this
// host get there. Only the agent's reporter writes these, one at a time.
type cloudStore struct {
	store.Store
	key string // of the reports
	// notify reports that they get there (nil), first and after failures, or why they do not. It
	// returns whether that was done; if not it is called again after the next one.
	notify func(ctx context.Context, err error) bool

	failures int // in a row
	notified bool
}

// Unwrap returns the store of which it watches the reports, which may offer conditional reads.
func (c *cloudStore) Unwrap() store.Store { return c.Store }

// Put implements [store.Store].
func (c *cloudStore) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	generation, err := c.Store.Put(ctx, key, data, want)
	if key != c.key || ctx.Err() != nil {
		return generation, err
	}
	switch {
	case err == nil && (!c.notified || c.failures >= reportedFailures):
		c.notified = c.notify(ctx, nil)
	case err != nil && c.failures == reportedFailures-1:
		c.notify(ctx, err)
	}
	if err != nil {
		c.failures++
	} else {
		c.failures = 0
	}
	return generation, err
}

// statusPatience bounds the report of a status that only people read.
const statusPatience = 3 * time.Second
