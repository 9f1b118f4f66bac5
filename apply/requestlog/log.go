package requestlog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/accounting"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// pace is how often the requests to the store are recorded: twelve writes an hour.
const pace = 5 * time.Minute

// Log keeps how much the store was asked for, in one object. Processes count since they
// started, and the object has with the sums the counts that are in them: what is written twice adds
// nothing, and the next leader goes on where the former one ended.
type Log struct {
	store  store.Store
	valid  func() error
	billed store.Billed // nil: the store costs nothing
	name   string       // of this Stepper; its process may have others
	base   state.StoreRequests

	log        *state.StoreRequestLog // as last read or written
	generation store.Generation
	known      bool // log is what the store has, as far as this process knows
	dueAt      time.Time
}

// New is the log of the requests to a store by a Stepper, which may write while valid reports no error.
func New(s store.Store, valid func() error) *Log {
	l := &Log{store: s, valid: valid, name: rand.Text()}
	if billed, ok := store.AsBilled(s); ok {
		l.billed, l.base = billed, billed.Requests()
	}
	return l
}

// Due reports whether it is time to record requests.
func (l *Log) Due(now time.Time) bool { return l.billed != nil && !now.Before(l.dueAt) }

// Keep records what was asked since the last time, by this process and by the hosts of a step, at now.
func (l *Log) Keep(ctx context.Context, doc *state.Document, obs *plan.Observed, now time.Time) error {
	if l.billed == nil || obs == nil {
		return nil
	}
	l.dueAt = now.Add(pace)
	if !l.known {
		var err error
		if l.log, l.generation, err = read(ctx, l.store); err != nil {
			return err
		}
		l.known = true
	}
	next := accounting.Counted(l.log, &accounting.RequestCounts{
		Leader: state.CountedRequests{Process: l.name, StoreRequests: l.billed.Requests().Since(l.base)},
		Hosts:  hostRequests(obs),
		Known: func(host string) bool {
			slice, _, _ := strings.Cut(host, "/")
			return doc.Slices[slice] != nil
		},
	}, now)
	data, err := store.EncodeRequests(next)
	if err != nil {
		return err
	}
	if err := l.valid(); err != nil {
		return err
	}
	generation, err := l.store.Put(ctx, store.RequestsKey, data, l.generation)
	if err != nil {
		l.known = false // another one wrote, or the reply was lost
		return fmt.Errorf("record the requests to the store: %w", err)
	}
	l.log, l.generation = next, generation
	return nil
}

// hostRequests are the counts that hosts report, by slice and number.
func hostRequests(obs *plan.Observed) map[string]state.CountedRequests {
	counts := map[string]state.CountedRequests{}
	for slice, hosts := range obs.Hosts {
		for i := range hosts {
			if h := &hosts[i]; h.Requests != nil {
				counts[fmt.Sprintf("%s/%d", slice, h.Host)] = state.CountedRequests{Process: h.Boot, StoreRequests: *h.Requests}
			}
		}
	}
	return counts
}

func read(ctx context.Context, s store.Store) (*state.StoreRequestLog, store.Generation, error) {
	object, err := s.Get(ctx, store.RequestsKey)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, store.Absent, nil
	case err != nil:
		return nil, store.Absent, fmt.Errorf("read the requests to the store: %w", err)
	}
	log, err := store.DecodeRequests(object.Data)
	if err != nil {
		return nil, store.Absent, fmt.Errorf("read %s in %s: %w; remove it to count anew", store.RequestsKey, s.Location(), err)
	}
	return log, object.Generation, nil
}

// Read returns how much the store was asked for, nil where that is not recorded.
func Read(ctx context.Context, s store.Store) (*state.StoreRequestLog, error) {
	log, _, err := read(ctx, s)
	return log, err
}
