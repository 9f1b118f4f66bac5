package store

import (
	"context"
	"errors"

	"github.com/fray-ml/fray/state"
)

// ErrNoVersions reports that a store does not keep what an object was before. It
// comes with the live version, and names the remedy where there is one.
var ErrNoVersions = errors.New("no old versions are kept")

// Versioned is what a Store may offer besides: the versions that an object had
// before. A version has the generation that it had while it was the live one.
type Versioned interface {
	// Versions returns the attributes of the versions that are kept, newest
	// first, the live one among them. The error is ErrNotFound if there is
	// none at all, and ErrNoVersions, along with the live one, if no other is
	// and none would be.
	Versions(ctx context.Context, key string) ([]Attrs, error)
	// GetVersion returns one version whole; ErrNotFound if it is not kept.
	GetVersion(ctx context.Context, key string, gen Generation) (Object, error)
}

// Resealer is what a Store may offer besides that seals secrets on their way: a document
// of which parts were read from several objects is sealed anew once it is put together.
type Resealer interface {
	// ResealDocument returns a document as if the present key had sealed it, the same one where it has.
	ResealDocument(ctx context.Context, doc *state.Document) (*state.Document, error)
}

// AsResealer is [AsVersioned] for a Resealer.
func AsResealer(s Store) (Resealer, bool) { return behind[Resealer](s) }

// AsVersioned unwraps a store by its Unwrap methods. It reports
// false for a store that knows live objects only.
func AsVersioned(s Store) (Versioned, bool) { return behind[Versioned](s) }

// behind finds what a store offers besides, itself or behind its wrappers.
func behind[T any](s Store) (T, bool) {
	for {
		if offered, ok := s.(T); ok {
			return offered, true
		}
		wrapper, ok := s.(interface{ Unwrap() Store })
		if !ok {
			var none T
			return none, false
		}
		s = wrapper.Unwrap()
	}
}
