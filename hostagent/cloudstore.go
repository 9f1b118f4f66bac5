package hostagent

import (
	"context"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// reportedFailures is how many reports in a row have to fail before people hear of it: one
// in between is no news, and a machine may write few guest attributes.
const reportedFailures = 3

// cloudStore is the store of a host in the cloud, which watches whether the reports of this
// host get there. Only the agent's reporter writes these, one at a time.
type cloudStore struct {
	store.Store
	key  string                               // of the reports
	tell func(ctx context.Context, err error) // that they get there (nil), first and after failures, or why they do not

	failures int // in a row
	told     bool
}

// Put implements [store.Store].
func (c *cloudStore) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	generation, err := c.Store.Put(ctx, key, data, want)
	if key != c.key || ctx.Err() != nil {
		return generation, err
	}
	switch {
	case err == nil && (!c.told || c.failures >= reportedFailures):
		c.tell(ctx, nil)
	case err != nil && c.failures == reportedFailures-1:
		c.tell(ctx, err)
	}
	if err != nil {
		c.failures++
	} else {
		c.failures, c.told = 0, true
	}
	return generation, err
}

// statusPatience bounds the telling of what is only for people.
const statusPatience = 3 * time.Second
