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

// The time between two reads of the assignment: short after it has changed. One that is
// expected is read at pollExpected at first, and then ever later, so that many hosts
// which wait together leave the machine to what they wait for.
const (
	pollExpected = 5 * time.Millisecond
	pollFast     = 50 * time.Millisecond
	pollSlow     = 100 * time.Millisecond
	pollFastFor  = 10 * time.Second
	pollShare    = 8 // of the time that has passed since it was expected
)

// Poller watches one slice's assignment.
type Poller struct {
	Store store.Store
	Slice string
	Log   *slog.Logger

	known  store.Generation // of the object as last read
	failed bool             // the last read went wrong and was logged

	expected chan struct{} // has an element after Expect
}

// NewPoller completes a poller, which has the fields that are exported.
func NewPoller(p *Poller) *Poller {
	p.expected = make(chan struct{}, 1)
	return p
}

// Expect has the assignment read more often for a moment: another one is likely.
func (p *Poller) Expect() {
	select {
	case p.expected <- struct{}{}:
	default:
	}
}

// Run sends every assignment it comes across until ctx ends, older ones too:
// what to make of them is the receiver's.
func (p *Poller) Run(ctx context.Context, out chan<- state.Assignment) {
	changed, expected := time.Now(), time.Now()
	for {
		read := time.Now()
		a, err := p.poll(ctx)
		switch {
		case err != nil && ctx.Err() == nil && !p.failed:
			p.Log.Warn("assignment not read", "error", err)
		case a != nil:
			changed, expected = time.Now(), time.Time{}
			select {
			case out <- *a:
			case <-ctx.Done():
				return
			}
		}
		p.failed = err != nil
		timer := time.NewTimer(max(pollWait(time.Since(changed), time.Since(expected)), p.Store.WriteInterval()))
		select {
		case <-timer.C:
		case <-p.expected:
			expected = time.Now()
			// One that is there already is read at once, but not more often than the store takes.
			if !sleep.For(ctx, p.Store.WriteInterval()-time.Since(read)) {
				return
			}
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// pollWait is the time until the next read, so long after the last change and after
// one was expected.
func pollWait(changed, expected time.Duration) time.Duration {
	wait := pollSlow
	if changed < pollFastFor {
		wait = pollFast
	}
	return min(wait, max(pollExpected, expected/pollShare))
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
