// Package access is how the services of a controller read and change the state of
// the stack. Services read [View]s, which each step of the loop leaves, and hand
// the loop pure [Change]s, which it makes between two steps in one write: they
// never write the state themselves. [Serializer] is the exchange between the two.
//
// What a change means is its service's part, and when the loop steps is package
// lead's. Start with [State], then serializer.go.
package access

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Errors of changes that are not made.
var (
	// ErrNotLeading answers changes while this controller does not hold the lease.
	// The caller may try again with the controller that does.
	ErrNotLeading = errors.New("this controller does not lead")
	// ErrObserves answers changes to a controller that makes none.
	ErrObserves = errors.New("this controller only observes (fray watch --observe) and changes nothing")
)

// Views shows the stack as the loop last saw it.
type Views interface {
	// View is what the last step left. It does not change afterwards.
	View() *View
	// Changed is closed when there is another View.
	Changed() <-chan struct{}
}

// State reads the state and changes it.
type State interface {
	Views
	// Do has the loop change the state and returns once that is saved. A change
	// returns the document that takes the place of the one it is given, which it
	// must not change, or an error, which is returned and changes nothing; the
	// same document is no change. It may be called again with a newer document.
	Do(ctx context.Context, change Change) error
}

// Change makes one document of another, see [State]. It must be pure.
type Change func(doc *state.Document, now time.Time) (*state.Document, error)

// Lease is a lease that this process holds.
type Lease interface {
	Context() context.Context
	Epoch() uint64
	// Valid is nil while the lease certainly holds: a process that was stopped
	// may run on for a moment before Context ends.
	Valid() error
}

var _ Lease = (*store.Held)(nil)

// Await waits until a view is as wanted, which the present one may be. It ignores
// the empty view of a loop that has not stepped yet. Its error is the gRPC status
// of a context that ended.
func Await(ctx context.Context, views Views, wanted func(*View) bool) error {
	for {
		changed := views.Changed()
		if v := views.View(); !v.At.IsZero() && wanted(v) {
			return nil
		}
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-changed:
		}
	}
}

// Present is the view of the last step; it waits for the first.
func Present(ctx context.Context, views Views) (*View, error) {
	var v *View
	err := Await(ctx, views, func(seen *View) bool {
		v = seen
		return true
	})
	return v, err
}

// StoreBackoff is the wait after the n-th failure of the store in a row. It is at
// most three seconds: once the store works, this controller leads within ten
// seconds, of which its own last lease may take the first.
func StoreBackoff(n int) time.Duration { return min(plan.Backoff(n), 3*time.Second) }
