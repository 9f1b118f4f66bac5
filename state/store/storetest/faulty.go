package storetest

import (
	"context"
	"io"
	"strings"

	"github.com/fray-ml/fray/state/store"
)

// Op names a method of a Store.
type Op string

// The operations that can be made to fail.
const (
	OpGet    Op = "get"
	OpPut    Op = "put"
	OpList   Op = "list"
	OpDelete Op = "delete"
	OpUpload Op = "upload"
	OpOpen   Op = "open"
)

// Faulty is a Store whose operations fail in chosen ways. Both functions may
// also delay, or observe; both are called from many goroutines. For a list,
// key is its prefixes with spaces between.
type Faulty struct {
	store.Store
	// Before runs first; when it returns an error, that is the result and
	// nothing else happens. nil: nothing fails before.
	Before func(op Op, key string) error
	// After runs once the operation has succeeded; when it returns an error,
	// that is the result although the operation happened: its reply is lost.
	After func(op Op, key string) error
}

var (
	_ store.Store       = (*Faulty)(nil)
	_ store.Conditional = (*Faulty)(nil)
)

// Unwrap returns the store behind the faults.
func (f *Faulty) Unwrap() store.Store { return f.Store }

// Get is the wrapped store's, with faults.
func (f *Faulty) Get(ctx context.Context, key string) (store.Object, error) {
	return with(f, OpGet, key, func() (store.Object, error) { return f.Store.Get(ctx, key) })
}

// GetUnless is the wrapped store's, with faults.
func (f *Faulty) GetUnless(ctx context.Context, key string, known store.Generation) (store.Object, error) {
	return with(f, OpGet, key, func() (store.Object, error) { return store.GetUnless(ctx, f.Store, key, known) })
}

// Put is the wrapped store's, with faults.
func (f *Faulty) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	return with(f, OpPut, key, func() (store.Generation, error) { return f.Store.Put(ctx, key, data, want) })
}

// List is the wrapped store's, with faults.
func (f *Faulty) List(ctx context.Context, prefixes ...string) ([]store.Attrs, error) {
	return with(f, OpList, strings.Join(prefixes, " "), func() ([]store.Attrs, error) { return f.Store.List(ctx, prefixes...) })
}

// Delete is the wrapped store's, with faults.
func (f *Faulty) Delete(ctx context.Context, key string) error {
	_, err := with(f, OpDelete, key, func() (struct{}, error) { return struct{}{}, f.Store.Delete(ctx, key) })
	return err
}

// Upload is the wrapped store's, with faults.
func (f *Faulty) Upload(ctx context.Context, key string, content io.Reader) error {
	_, err := with(f, OpUpload, key, func() (struct{}, error) { return struct{}{}, f.Store.Upload(ctx, key, content) })
	return err
}

// Open is the wrapped store's, with faults.
func (f *Faulty) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	return with(f, OpOpen, key, func() (io.ReadCloser, error) {
		r, err := f.Store.Open(ctx, key)
		if err != nil {
			return nil, err // not a nil pointer in an interface
		}
		return r, nil
	})
}

func with[T any](f *Faulty, op Op, key string, do func() (T, error)) (T, error) {
	var zero T
	if f.Before != nil {
		if err := f.Before(op, key); err != nil {
			return zero, err
		}
	}
	result, err := do()
	if err != nil {
		return zero, err
	}
	if f.After != nil {
		if err := f.After(op, key); err != nil {
			if c, ok := any(result).(io.Closer); ok {
				c.Close()
			}
			return zero, err
		}
	}
	return result, nil
}
