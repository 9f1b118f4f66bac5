package notice

import (
	"context"
	"sync"
)

// Status shows a value to many who wait for it to change; safe for concurrent use.
type Status[T comparable] struct {
	mu      sync.Mutex
	value   T
	changed chan struct{}
}

var _ Source = (*Status[string])(nil)

// NewStatus returns a status with its first value.
func NewStatus[T comparable](value T) *Status[T] {
	return &Status[T]{value: value, changed: make(chan struct{})}
}

// Set changes the value, for all that wait.
func (s *Status[T]) Set(value T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if value != s.value {
		s.value = value
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

// Next waits until the value differs from last and returns it.
func (s *Status[T]) Next(ctx context.Context, last T) (T, error) {
	for {
		s.mu.Lock()
		value, changed := s.value, s.changed
		s.mu.Unlock()
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
