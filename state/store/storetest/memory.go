package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// Memory is a Store for tests within one process. Inside a synctest bubble its
// clock is the bubble's.
type Memory struct {
	mu      sync.Mutex
	objects map[string]store.Object
	last    store.Generation
}

var _ store.Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory { return &Memory{objects: map[string]store.Object{}} }

// WriteInterval is 0.
func (m *Memory) WriteInterval() time.Duration { return 0 }

// Location is "memory".
func (m *Memory) Location() string { return "memory" }

// Get returns an object whole.
func (m *Memory) Get(ctx context.Context, key string) (store.Object, error) {
	if err := check(ctx, "get", key); err != nil {
		return store.Object{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	object, ok := m.objects[key]
	if !ok {
		return store.Object{}, fmt.Errorf("get %s: %w", key, store.ErrNotFound)
	}
	object.Data = bytes.Clone(object.Data)
	return object, nil
}

// Put writes an object whole if its present generation is want.
func (m *Memory) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	if err := check(ctx, "put", key); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if want != store.Any && want != m.objects[key].Generation {
		return 0, fmt.Errorf("put %s: %w", key, store.ErrConflict)
	}
	m.last++
	attrs := store.Attrs{Key: key, Generation: m.last, Size: int64(len(data)), Updated: time.Now()}
	m.objects[key] = store.Object{Attrs: attrs, Data: bytes.Clone(data)}
	return m.last, nil
}

// List returns the attributes of every object below prefix, by key.
func (m *Memory) List(ctx context.Context, prefix string) ([]store.Attrs, error) {
	if err := store.CheckPrefix(prefix); err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list %s: %w", prefix, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []store.Attrs
	for key, object := range m.objects {
		if strings.HasPrefix(key, prefix) {
			found = append(found, object.Attrs)
		}
	}
	slices.SortFunc(found, func(a, b store.Attrs) int { return strings.Compare(a.Key, b.Key) })
	return found, nil
}

// Delete removes an object.
func (m *Memory) Delete(ctx context.Context, key string) error {
	if err := check(ctx, "delete", key); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
	return nil
}

// Upload writes a blob if there is none under the key.
func (m *Memory) Upload(ctx context.Context, key string, content io.Reader) error {
	if err := check(ctx, "upload", key); err != nil {
		return err
	}
	data, err := io.ReadAll(content)
	if err != nil {
		return fmt.Errorf("upload %s: %w", key, err)
	}
	sum := sha256.Sum256(data)
	if strings.HasPrefix(key, store.BundlesPrefix) && hex.EncodeToString(sum[:]) != path.Base(key) {
		return fmt.Errorf("upload %s: the content's SHA-256 is %x", key, sum)
	}
	m.mu.Lock()
	_, there := m.objects[key]
	m.mu.Unlock()
	if there {
		return nil
	}
	_, err = m.Put(ctx, key, data, store.Any)
	return err
}

// Open streams a blob.
func (m *Memory) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	object, err := m.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(object.Data)), nil
}

func check(ctx context.Context, verb, key string) error {
	err := store.CheckKey(key)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, key, err)
	}
	return nil
}
