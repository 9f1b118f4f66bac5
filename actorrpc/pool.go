package actorrpc

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// Pool is a number of actors of which any will do. It only picks; calls are made
// with the handles. It may be used by many goroutines at once.
type Pool struct {
	client *Client
	name   string
	stop   func()
	turn   atomic.Uint64

	mu      sync.Mutex
	handles []Handle
	stale   bool
}

// PoolOf is a pool of these actors.
func PoolOf(handles ...Handle) *Pool { return &Pool{handles: handles} }

// Pool is the pool of all actors that share a name, as they come and go. Close
// ends its following of that.
func (c *Client) Pool(name string) *Pool {
	p := &Pool{client: c, name: name, stale: true}
	p.stop = c.resolver.Watch(func(changed string) {
		if changed == name {
			p.mu.Lock()
			p.stale = true
			p.mu.Unlock()
		}
	})
	return p
}

// Close ends the following of changes.
func (p *Pool) Close() error {
	if p.stop != nil {
		p.stop()
	}
	return nil
}

// Handles are the actors of the pool. Where there are none the error is of [CodeUnknownActor].
func (p *Pool) Handles(ctx context.Context) ([]Handle, error) {
	p.mu.Lock()
	if !p.stale && len(p.handles) > 0 {
		defer p.mu.Unlock()
		return p.handles, nil
	}
	p.stale = false // before the lookup: what changes meanwhile is another change
	p.mu.Unlock()
	if p.client == nil {
		return nil, rpcerror.UnknownActorOf(p.name, nil)
	}
	handles, err := p.client.LookupAll(ctx, p.name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.stale = true
		return nil, err
	}
	p.handles = handles
	return handles, nil
}

// RoundRobin picks one after the other.
func (p *Pool) RoundRobin(ctx context.Context) (Handle, error) {
	handles, err := p.Handles(ctx)
	if err != nil {
		return Handle{}, err
	}
	return handles[(p.turn.Add(1)-1)%uint64(len(handles))], nil
}

// LeastLoaded picks one with the fewest calls of this process that it has not
// answered, in turn among equals.
func (p *Pool) LeastLoaded(ctx context.Context) (Handle, error) {
	handles, err := p.Handles(ctx)
	if err != nil {
		return Handle{}, err
	}
	first := int((p.turn.Add(1) - 1) % uint64(len(handles)))
	best := handles[first]
	for i := 1; i < len(handles); i++ {
		if h := handles[(first+i)%len(handles)]; h.Pending() < best.Pending() {
			best = h
		}
	}
	return best, nil
}

// Answer is what one actor of many returned.
type Answer[R any] struct {
	Handle Handle
	Result R
	Err    error
}

// Broadcast calls a method of all of the actors at once, and waits for all answers,
// which are in the order of the handles.
func Broadcast[R any](ctx context.Context, handles []Handle, method string, args ...any) []Answer[R] {
	futures := make([]*Future[R], len(handles))
	for i, h := range handles {
		c, err := h.encode(method, args)
		if err != nil {
			futures[i] = unmade[R](err)
			continue
		}
		c.waiters = h.client.waiters(ctx)
		futures[i] = begin[R](ctx, h.client, c)
	}
	answers := make([]Answer[R], len(handles))
	for i, f := range futures {
		<-f.Done() // ends with ctx
		answers[i].Handle = handles[i]
		answers[i].Result, answers[i].Err = f.Result(context.WithoutCancel(ctx))
	}
	return answers
}
