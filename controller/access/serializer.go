package access

import (
	"context"
	"slices"
	"sync"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Serializer is the state access of one process, whether or not it leads: it has
// the last view and the queue of changes that wait for the loop.
type Serializer struct {
	mu      sync.Mutex
	view    *View
	changed chan struct{} // closed when there is another view
	queue   []*Request
	wake    chan struct{} // holds one token while the queue is not empty
	leading bool
}

var _ State = (*Serializer)(nil)

// Request is a change that waits for the loop, which answers it once.
type Request struct {
	Change Change
	done   chan error // buffered
}

// Answer is what [State.Do] returns.
func (r *Request) Answer(err error) { r.done <- err }

// NewSerializer returns one whose loop does not lead yet.
func NewSerializer() *Serializer {
	return &Serializer{view: noView(), changed: make(chan struct{}), wake: make(chan struct{}, 1)}
}

func noView() *View {
	return &View{Doc: &state.Document{}, Wanted: &schema.Desired{}, Plan: &plan.Plan{}}
}

// View is what the last step left; it is empty until the loop has led.
func (s *Serializer) View() *View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view
}

// Changed is closed when there is another View.
func (s *Serializer) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Leading reports whether the loop steps under a lease.
func (s *Serializer) Leading() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leading
}

// Do is [State.Do]. Where ctx ends first, the change may still be made.
func (s *Serializer) Do(ctx context.Context, change Change) error {
	r := &Request{Change: change, done: make(chan error, 1)}
	s.mu.Lock()
	if !s.leading {
		s.mu.Unlock()
		return ErrNotLeading
	}
	s.queue = append(s.queue, r)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Wake has a token while changes wait.
func (s *Serializer) Wake() chan struct{} { return s.wake }

// Begin forgets the view of an earlier lease: services learn nothing of the stack
// before the loop has stepped under the new one.
func (s *Serializer) Begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = noView()
}

// Publish makes a view the one that services see, and lets them hand in changes.
func (s *Serializer) Publish(v *View) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.view
	s.view, s.leading = v, true
	if old.Doc != v.Doc || old.Lease.Epoch != v.Lease.Epoch || !slices.EqualFunc(old.Plan.Pending, v.Plan.Pending, samePending) {
		s.notify()
	}
}

func (s *Serializer) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func samePending(a, b plan.Pending) bool {
	return a.Addr == b.Addr && slices.Equal(a.Reasons, b.Reasons)
}

// Take takes the changes that wait out of the queue.
func (s *Serializer) Take() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	queue := s.queue
	s.queue = nil
	return queue
}

// Stop ends leading: it answers the changes that wait with [ErrNotLeading].
func (s *Serializer) Stop() {
	s.mu.Lock()
	s.leading = false
	queue := s.queue
	s.queue = nil
	s.notify()
	s.mu.Unlock()
	for _, r := range queue {
		r.Answer(ErrNotLeading)
	}
}
