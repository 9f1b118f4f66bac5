package store

import (
	"context"
	"errors"
	"fmt"
)

// ErrUnchanged reports that an object still has the generation that the reader knows.
var ErrUnchanged = errors.New("object unchanged")

// Conditional is what a Store may offer besides: a read that transfers content only if it
// changed. A bucket charges and sends less for it.
type Conditional interface {
	// GetUnless returns an object whole unless its generation is known; then the error is
	// ErrUnchanged.
	GetUnless(ctx context.Context, key string, known Generation) (Object, error)
}

// GetUnless reads an object whole, or returns ErrUnchanged if its generation is known. It asks the
// store for the comparison where the store offers it.
func GetUnless(ctx context.Context, s Store, key string, known Generation) (Object, error) {
	if conditional, ok := behind[Conditional](s); ok && known != Absent {
		return conditional.GetUnless(ctx, key, known)
	}
	object, err := s.Get(ctx, key)
	if err == nil && object.Generation == known {
		return Object{}, fmt.Errorf("get %s: %w", key, ErrUnchanged)
	}
	return object, err
}
