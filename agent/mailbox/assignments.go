package mailbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
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

// checkInterval is how often the assignment is read while the controller sends it by stream.
const checkInterval = 30 * time.Minute

// Poller watches one slice's assignment.
type Poller struct {
	Store store.Store
	Slice string
	Log   *slog.Logger
	// Live reports whether the controller sends assignments by stream; nil: it does not.
	Live func() bool

	mu     sync.Mutex
	known  store.Generation // of the object as last read
	pushed *pushed          // came by stream and was not looked at yet

	failed bool      // the last read went wrong and was logged
	readAt time.Time // the last read that succeeded

	expected chan struct{} // has an element after Expect
	arrived  chan struct{} // has an element after Push
}

// pushed is a version of the assignment that came by stream.
type pushed struct {
	object store.Generation
	data   []byte // none: it is to be read
}

// NewPoller completes a poller, which has the fields that are exported.
func NewPoller(p *Poller) *Poller {
	p.expected, p.arrived = make(chan struct{}, 1), make(chan struct{}, 1)
	return p
}

// Known is the generation of the object that was read last.
func (p *Poller) Known() store.Generation {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known
}

// Push hands over a version of the assignment that is in the store, of which data is the
// content or, if there is none, is to be read. It has no effect if a newer one is known.
func (p *Poller) Push(object store.Generation, data []byte) {
	p.mu.Lock()
	if object > p.known && (p.pushed == nil || object >= p.pushed.object) {
		p.pushed = &pushed{object: object, data: data}
	}
	p.mu.Unlock()
	select {
	case p.arrived <- struct{}{}:
	default:
	}
}

// quiet reports whether the assignment need not be read: the controller sends what changes.
func (p *Poller) quiet() bool {
	return p.Live != nil && p.Live() && !p.failed && time.Since(p.readAt) < checkInterval
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
		a, err := p.next(ctx)
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
		case <-p.arrived:
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

// next returns the assignment if it changed: as it came by stream, or as it is in the store.
func (p *Poller) next(ctx context.Context) (*state.Assignment, error) {
	p.mu.Lock()
	came := p.pushed
	p.pushed = nil
	p.mu.Unlock()
	if came != nil && came.object <= p.Known() {
		came = nil
	}
	if came == nil && p.quiet() {
		return nil, nil
	}
	if came != nil && len(came.data) > 0 {
		a, err := p.decode(store.Object{Attrs: store.Attrs{Key: store.AssignKey(p.Slice), Generation: came.object}, Data: came.data})
		if err == nil {
			return a, nil
		}
		p.Log.Warn("what the controller sent is read in the store instead", "error", err)
	}
	a, err := p.poll(ctx)
	if err == nil {
		p.readAt = time.Now()
	}
	return a, err
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
	object, err := store.GetUnless(ctx, p.Store, store.AssignKey(p.Slice), p.Known())
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnchanged) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read assignment: %w", err)
	}
	return p.decode(object)
}

// decode returns the assignment of an object, which is known from then on.
func (p *Poller) decode(object store.Object) (*state.Assignment, error) {
	a, err := store.DecodeAssignment(object.Data)
	if err != nil {
		return nil, fmt.Errorf("read assignment: %s in %s was left as it is, and what runs goes on; the controller writes it anew: %w",
			object.Key, p.Store.Location(), err)
	}
	if a.Slice != p.Slice {
		return nil, fmt.Errorf("read assignment: it is for slice %q, not %q", a.Slice, p.Slice)
	}
	if a.MovedTo == "" { // else it is tried until it works
		p.mu.Lock()
		p.known = object.Generation
		p.mu.Unlock()
	}
	return &a, nil
}
