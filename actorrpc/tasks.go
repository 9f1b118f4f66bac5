package actorrpc

import (
	"context"
	"sync"

	"github.com/fray-ml/fray/actorrpc/wire"
)

// tasks are the goroutines of a client, which end with it.
type tasks struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex // guards closed: no task begins once it is true
	closed bool
}

func newTasks() *tasks {
	t := &tasks{}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// run has a goroutine do something that ends with the client, unless that is closed.
func (t *tasks) run(f func(ctx context.Context)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.running.Go(func() { f(t.ctx) })
	return true
}

// close cancels the tasks, and lets no other begin.
func (t *tasks) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
}

// shared is what all transports of a client have in common.
type shared struct {
	config Config // complete
	tasks  *tasks
	dial   dialFunc
	room   *wire.Memory // for results that come in parts
}
