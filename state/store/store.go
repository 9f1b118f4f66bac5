// Package store holds a stack's durable objects: a small compare-and-swap
// interface, the directory that implements it on one machine, the lease that
// names who may act, the keys of the mailbox through which controller and
// agents talk, and how logs and events are read. What more a store may offer is [Versioned], the state's history,
// and [Witness], which proves that holders are dead.
//
// It does not know what a plan is, and acts on no object but the lease.
// Start with [Store]; storetest holds the suite that every Store passes.
package store

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/fray-ml/fray/state"
)

// Generation identifies one version of one object.
type Generation = state.Generation

// Preconditions of a write.
const (
	Absent Generation = 0  // only if there is no such object
	Any    Generation = -1 // whatever is there; for objects with a single writer
)

// Attrs describe an object without its content.
type Attrs struct {
	Key        string
	Generation Generation
	Size       int64     // bytes
	Updated    time.Time // by the store's clock
}

// Object is an object with its content.
type Object struct {
	Attrs
	Data []byte
}

// Errors of a Store, to be tested with errors.Is. After any other error a write
// may have happened.
var (
	// ErrNotFound: there is no object of that key.
	ErrNotFound = errors.New("object not found")
	// ErrConflict: the precondition did not hold; nothing was written.
	ErrConflict = errors.New("object changed meanwhile")
)

// Store keeps objects under slash-separated keys ("hosts/a/0.json").
// All methods may be called concurrently, from many processes.
type Store interface {
	// Get returns an object whole.
	Get(ctx context.Context, key string) (Object, error)
	// Put writes an object whole if its present generation is want (or
	// Absent, or Any) and returns the new one.
	Put(ctx context.Context, key string, data []byte, want Generation) (Generation, error)
	// List returns the attributes of every object whose key starts with one
	// of prefixes, by key, each once. It is one listing: a store behind a network
	// asks once for every thousand objects, not once for each prefix. An error
	// means that nothing may be concluded.
	List(ctx context.Context, prefixes ...string) ([]Attrs, error)
	// Delete removes an object whatever its generation; an absent one is no
	// error. Only for objects whose writer is known to be gone.
	Delete(ctx context.Context, key string) error
	// Upload writes a blob if there is none under the key, streaming. The
	// key must be derived from the content: an existing blob is success.
	Upload(ctx context.Context, key string, content io.Reader) error
	// Open streams a blob.
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// WriteInterval is the time to leave between two writes of one object.
	WriteInterval() time.Duration
	// Location names the store for people and for an agent's --store flag.
	Location() string
}
