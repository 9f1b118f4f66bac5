package agent

import (
	"context"
	"sync"
)

// board shows a value to many who wait for it to change; safe for concurrent use.
type board[T comparable] struct {
	mu      sync.Mutex
	value   T
	changed chan struct{}
}

var _ Notices = (*board[string])(nil)

func newBoard[T comparable](value T) *board[T] {
	return &board[T]{value: value, changed: make(chan struct{})}
}

func (b *board[T]) set(value T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if value != b.value {
		b.value = value
		close(b.changed)
		b.changed = make(chan struct{})
	}
}

// Next waits until the value differs from last and returns it.
func (b *board[T]) Next(ctx context.Context, last T) (T, error) {
	for {
		b.mu.Lock()
		value, changed := b.value, b.changed
		b.mu.Unlock()
		if value != last {
			return value, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return last, context.Cause(ctx)
		}
	}
}
