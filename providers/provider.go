// Package providers says what a source of capacity must do, and classifies the
// errors of those that do it.
//
// A provider creates, lists and deletes slices; it decides nothing. Retries,
// placement and failover are plan's. providertest holds the conformance suite.
package providers

import (
	"context"

	"github.com/fray-ml/fray/schema"
)

// Provider is a source of slices. Methods may be called concurrently; none of
// them waits for a slice to come up.
type Provider interface {
	// Inventory lists every slice that carries the stack's mark, or any
	// stack's for "". What cannot be listed whole is an error, never a
	// shorter list.
	Inventory(ctx context.Context, stack string) (schema.Inventory, error)
	// Create asks for a slice and returns once that is accepted. Creating
	// one that is there already adopts it and starts what is missing of it;
	// one of the same name that is not this stack's, or has another shape,
	// is an ErrConflict.
	Create(ctx context.Context, spec schema.SliceSpec) error
	// Delete asks for a slice to go, with all its processes; one that is
	// not there is no error. It refuses what does not carry the stack's mark.
	Delete(ctx context.Context, stack, name string) error
}

// Problem is something about a job that its provider knows cannot work.
type Problem struct {
	Addr      schema.Address
	Attribute string // what to point at: a key's part after '#' in Config.Ranges
	Warning   bool
	Summary   string
	Detail    string // what to do
}

// Checker is what a provider may implement to find mistakes before anything is
// touched. It reads the outside world but changes nothing.
type Checker interface {
	Check(ctx context.Context, desired schema.Desired) []Problem
}
