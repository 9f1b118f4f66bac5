package scale

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// memory is a store in which a stack is seeded.
type memory struct {
	mu      sync.Mutex
	objects map[string]store.Object
	last    store.Generation
}

var _ store.Store = (*memory)(nil)

// Get returns an object.
func (m *memory) Get(_ context.Context, key string) (store.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	object, there := m.objects[key]
	if !there {
		return object, store.ErrNotFound
	}
	return object, nil
}

// Put writes an object.
func (m *memory) Put(_ context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if want != store.Any && m.objects[key].Generation != want {
		return 0, store.ErrConflict
	}
	m.last++
	m.objects[key] = store.Object{Attrs: store.Attrs{Key: key, Generation: m.last, Size: int64(len(data)), Updated: time.Now()}, Data: data}
	return m.last, nil
}

// List lists objects.
func (m *memory) List(_ context.Context, prefixes ...string) (found []store.Attrs, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, object := range m.objects {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
			found = append(found, object.Attrs)
		}
	}
	slices.SortFunc(found, func(a, b store.Attrs) int { return cmp.Compare(a.Key, b.Key) })
	return found, nil
}

// Delete removes an object.
func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}

// Upload is not needed.
func (*memory) Upload(context.Context, string, io.Reader) error { return errors.ErrUnsupported }

// Open is not needed.
func (*memory) Open(context.Context, string) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}

// WriteInterval is 0.
func (*memory) WriteInterval() time.Duration { return 0 }

// Location is "memory".
func (*memory) Location() string { return "memory" }
