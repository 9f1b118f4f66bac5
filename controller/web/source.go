package web

import (
	"context"
	"errors"

	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/state/store"
)

// Snapshot is the stack as one step left it. Nothing in it may be changed.
type Snapshot struct {
	// View has what the step observed and planned. Without Wanted, what the state
	// asks for is shown; without inventories, what the state records of slices.
	access.View
	Leads bool // this process holds the lease
}

// Source is where snapshots come from. Its methods may be called concurrently.
type Source interface {
	// Snapshot is what the last step left, nil before the first.
	Snapshot() *Snapshot
	// Changed is closed when there is another one.
	Changed() <-chan struct{}
}

// Stack is the source of the stack that this process accesses.
type Stack struct {
	State interface {
		access.Views
		Leading() bool
	}
}

var _ Source = Stack{}

// Snapshot is what the last step left, nil before the first.
func (s Stack) Snapshot() *Snapshot {
	v := s.State.View()
	if v.At.IsZero() {
		return nil
	}
	return &Snapshot{View: *v, Leads: s.State.Leading()}
}

// Changed is closed when there is another snapshot.
func (s Stack) Changed() <-chan struct{} { return s.State.Changed() }

// Leading reports whether this process leads.
func (s Stack) Leading() bool { return s.State.Leading() }

// StoredLogs reads from the store what tasks have written.
type StoredLogs struct{ Store store.Store }

var _ Logs = StoredLogs{}

// maxLogRead is the most that one read returns, in bytes.
const maxLogRead = 256 << 10

var errReadEnough = errors.New("enough was read")

// Read is [Logs.Read].
func (s StoredLogs) Read(ctx context.Context, task LogStream, from int64) (store.LogPart, error) {
	name := store.LogName{Job: task.Job, Attempt: task.Attempt, Task: task.Task}
	if from < 0 {
		size, err := store.LogSize(ctx, s.Store, name)
		if err != nil {
			return store.LogPart{}, err
		}
		from = max(0, size+from)
	}
	out := store.LogPart{Offset: from}
	_, err := store.ReadDatedLog(ctx, s.Store, name, from, func(part store.LogPart) error {
		out.Data = append(out.Data, part.Data[:min(len(part.Data), maxLogRead-len(out.Data))]...)
		out.Times = append(out.Times, part.Times...)
		if len(out.Data) == maxLogRead {
			return errReadEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errReadEnough) {
		return store.LogPart{}, err
	}
	return out, nil
}
