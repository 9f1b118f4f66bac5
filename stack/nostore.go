package stack

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// noStore is the store of a stack that was never applied: empty, and not to be
// written.
type noStore struct{}

var errNoStore = errors.New("this stack has no state yet; run fray apply first")

func (noStore) Get(context.Context, string) (store.Object, error) {
	return store.Object{}, store.ErrNotFound
}

func (noStore) Put(context.Context, string, []byte, store.Generation) (store.Generation, error) {
	return 0, errNoStore
}

func (noStore) List(context.Context, ...string) ([]store.Attrs, error) { return nil, nil }

func (noStore) Delete(context.Context, string) error { return nil }

func (noStore) Upload(context.Context, string, io.Reader) error { return errNoStore }

func (noStore) Open(context.Context, string) (io.ReadCloser, error) { return nil, store.ErrNotFound }

func (noStore) WriteInterval() time.Duration { return 0 }

func (noStore) Location() string { return "(none)" }

var _ store.Store = noStore{}
