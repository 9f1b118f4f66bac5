// Package tasks has the goroutines of a client, which end with it. It leaves out what they do. Start with [Group].
package tasks

import (
	"context"
	"sync"
)

// Group is a group of goroutines that end together.
type Group struct {
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex // guards closed: no task begins once it is true
	closed bool
}

// New makes a group without goroutines.
func New() *Group {
	g := &Group{}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g
}

// Run has a goroutine do something that ends with the group; false once that is closed.
func (g *Group) Run(f func(ctx context.Context)) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running.Go(func() { f(g.ctx) })
	return true
}

// Close cancels the goroutines, and lets no other begin.
func (g *Group) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.cancel()
}

// Wait returns when all goroutines have returned.
func (g *Group) Wait() { g.running.Wait() }
