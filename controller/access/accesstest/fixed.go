package accesstest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Slice is where the tasks of RunningJob run.
const Slice = "s"

// Fixed is state access whose views a test sets, and which makes no changes.
type Fixed struct {
	mu      sync.Mutex
	view    *access.View
	changed chan struct{}
}

var _ access.State = (*Fixed)(nil)

// NewFixed returns one without a view.
func NewFixed() *Fixed { return &Fixed{changed: make(chan struct{})} }

// View is what was shown last.
func (f *Fixed) View() *access.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
}

// Changed is closed by the next Show.
func (f *Fixed) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Do fails.
func (f *Fixed) Do(context.Context, access.Change) error {
	return errors.New("fixed state takes no changes")
}

// Show sets a view of jobs under an epoch.
func (f *Fixed) Show(epoch uint64, jobs ...*state.Job) {
	doc := &state.Document{Jobs: map[schema.Address]*state.Job{}}
	for _, j := range jobs {
		doc.Jobs[j.Spec.Addr] = j
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = &access.View{Doc: doc, Lease: store.Lease{Epoch: epoch}}
	close(f.changed)
	f.changed = make(chan struct{})
}

// RunningJob is one whose attempt of a number runs with two tasks.
func RunningJob(namespace, name string, attempt int) *state.Job {
	addr := schema.LaunchedAddress(schema.KindJob, namespace, "", name)
	return &state.Job{
		ID: name + "-id", Spec: &schema.Job{Addr: addr, Namespace: namespace, User: "bob"}, Status: schema.JobRunning, Attempt: attempt,
		Attempts: []state.Attempt{{Number: attempt, Tasks: []state.Task{{Slice: Slice, State: schema.TaskRunning}, {Slice: Slice, Host: 1, State: schema.TaskRunning}}}},
	}
}

// EndedJob is the same after its attempt.
func EndedJob(namespace, name string, attempt int) *state.Job {
	j := RunningJob(namespace, name, attempt)
	j.Status, j.Reason, j.Attempts[0].Outcome = schema.JobFailed, "exit 1", schema.TaskFailed
	return j
}

// Lease is a lease that a test ends.
type Lease struct {
	ctx   context.Context
	epoch uint64
	mu    sync.Mutex
	err   error
}

// NewLease returns a lease that ends with the test or by the function.
func NewLease(t *testing.T, epoch uint64) (*Lease, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	return &Lease{ctx: ctx, epoch: epoch}, cancel
}

// Context ends with the lease.
func (l *Lease) Context() context.Context { return l.ctx }

// Epoch is the epoch.
func (l *Lease) Epoch() uint64 { return l.epoch }

// Valid is nil until Invalidate.
func (l *Lease) Valid() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Invalidate has Valid fail while Context goes on.
func (l *Lease) Invalidate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = store.ErrLeaseLost
}

var _ access.Lease = (*Lease)(nil)
