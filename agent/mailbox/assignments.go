package mailbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// The time between two reads of the assignment: short after it has changed.
const (
	pollFast    = 50 * time.Millisecond
	pollSlow    = 100 * time.Millisecond
	pollFastFor = 10 * time.Second
)

// Poller watches one slice's assignment.
type Poller struct {
	Store store.Store
	Slice string
	Log   *slog.Logger

	known  store.Generation // of the object as last read
	failed bool             // the last read went wrong and was logged
}

// Run sends every assignment it comes across until ctx ends, older ones too:
// what to make of them is the receiver's.
func (p *Poller) Run(ctx context.Context, out chan<- state.Assignment) {
	changed := time.Now()
	for {
		a, err := p.poll(ctx)
		switch {
		case err != nil && ctx.Err() == nil && !p.failed:
			p.Log.Warn("assignment not read", "error", err)
		case a != nil:
			changed = time.Now()
			select {
			case out <- *a:
			case <-ctx.Done():
				return
			}
		}
		p.failed = err != nil
		wait := pollSlow
		if time.Since(changed) < pollFastFor {
			wait = pollFast
		}
		if !sleep.For(ctx, max(wait, p.Store.WriteInterval())) {
			return
		}
	}
}

// poll returns the assignment if it changed since the last read. One that is
// not there is no change: absence never ends a task.
func (p *Poller) poll(ctx context.Context) (*state.Assignment, error) {
	object, err := store.GetUnless(ctx, p.Store, store.AssignKey(p.Slice), p.known)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnchanged) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read assignment: %w", err)
	}
	a, err := store.DecodeAssignment(object.Data)
	if err != nil {
		return nil, fmt.Errorf("read assignment: %s in %s was left as it is, and what runs goes on; the controller writes it anew: %w",
			object.Key, p.Store.Location(), err)
	}
	if a.Slice != p.Slice {
		return nil, fmt.Errorf("read assignment: it is for slice %q, not %q", a.Slice, p.Slice)
	}
	if a.MovedTo == "" { // else it is tried until it works
		p.known = object.Generation
	}
	return &a, nil
}
