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
	old     []store.Object // what the state was before, oldest first
	last    store.Generation
}

// oldStates is how many of them are kept.
const oldStates = 20

var (
	_ store.Store     = (*Memory)(nil)
	_ store.Versioned = (*Memory)(nil)
)

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
	m.keep(key)
	m.last++
	attrs := store.Attrs{Key: key, Generation: m.last, Size: int64(len(data)), Updated: time.Now()}
	m.objects[key] = store.Object{Attrs: attrs, Data: bytes.Clone(data)}
	return m.last, nil
}

// List returns the attributes of every object below one of prefixes, by key.
func (m *Memory) List(ctx context.Context, prefixes ...string) ([]store.Attrs, error) {
	prefixes, err := store.DisjointPrefixes(prefixes)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", strings.Join(prefixes, ", "), err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []store.Attrs
	for key, object := range m.objects {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(key, p) }) {
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
	m.keep(key)
	delete(m.objects, key)
	return nil
}

// keep keeps what is about to be replaced, if it is the state.
func (m *Memory) keep(key string) {
	if object, ok := m.objects[key]; ok && key == store.StateKey {
		m.old = append(m.old, object)
		m.old = m.old[max(0, len(m.old)-oldStates):]
	}
}

// Versions returns the versions that are kept, newest first: the live one, and
// old ones of the state.
func (m *Memory) Versions(ctx context.Context, key string) ([]store.Attrs, error) {
	if err := check(ctx, "list versions of", key); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []store.Attrs
	if object, ok := m.objects[key]; ok {
		found = append(found, object.Attrs)
	}
	if key == store.StateKey {
		for _, object := range slices.Backward(m.old) {
			found = append(found, object.Attrs)
		}
	}
	var err error
	switch {
	case len(found) == 0:
		err = store.ErrNotFound
	case key != store.StateKey:
		err = store.ErrNoVersions
	}
	if err != nil {
		err = fmt.Errorf("list versions of %s: %w", key, err)
	}
	return found, err
}

// GetVersion returns one version whole.
func (m *Memory) GetVersion(ctx context.Context, key string, gen store.Generation) (store.Object, error) {
	if err := check(ctx, "get", key); err != nil {
		return store.Object{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, object := range append([]store.Object{m.objects[key]}, m.old...) {
		if object.Key == key && object.Generation == gen {
			object.Data = bytes.Clone(object.Data)
			return object, nil
		}
	}
	return store.Object{}, fmt.Errorf("get generation %d of %s: %w", gen, key, store.ErrNotFound)
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
