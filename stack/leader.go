package stack

import (
	"context"

	"github.com/fray-ml/fray/state/store"
)

// WatchObserves is the command in the lease of a watch that changes nothing.
const WatchObserves = "fray watch --observe"

// WatchLease is the lease of the `fray watch` that holds it, false if none does.
func (s *Stack) WatchLease(ctx context.Context) (store.Lease, bool) {
	sight, err := s.Clock.Observe(ctx)
	return sight.Lease, err == nil && sight.Lease.Yields && Leads(sight)
}

// Leads reports whether the lease is held: it is live, and its holder's process has
// not died on this very machine.
func Leads(sight store.Sight) bool { return sight.Leads && !sight.Lease.Gone() }
