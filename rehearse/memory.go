package rehearse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// memory is the stack's store. Nothing is encoded before a reader needs it: the state is
// kept as it is, and reports of hosts are made when they are read. Hosts write no
// heartbeats: the store knows which of them live.
type memory struct {
	now func() time.Time
	// assigned sees every assignment that was written.
	assigned func(a state.Assignment)

	mu       sync.Mutex
	objects  map[string]store.Object
	document *state.Document       // of the object StateKey, nil where that is encoded
	hosts    map[string]*reporting // by key
	attrs    []store.Attrs         // of all objects and reports, by key
	last     store.Generation
	news     int64 // reports of hosts that changed, and hosts that became silent
}

// reporting is one host's report as it stands in the store.
type reporting struct {
	report     state.HostReport
	generation store.Generation
	silent     time.Time // since when; zero: it lives
}

func newMemory(now func() time.Time) *memory {
	return &memory{
		now: now, assigned: func(state.Assignment) {},
		objects: map[string]store.Object{}, hosts: map[string]*reporting{},
	}
}

var _ store.Store = (*memory)(nil)

// report replaces a host's report.
func (m *memory) report(r state.HostReport) {
	key := store.HostKey(r.Slice, r.Host)
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.hosts[key]
	if was == nil {
		was = &reporting{}
		m.hosts[key] = was
	}
	was.report, was.silent = r, time.Time{}
	m.wrote(key, was)
}

// wrote notes that a host's object was written.
func (m *memory) wrote(key string, r *reporting) {
	m.news++
	m.last++
	r.generation = m.last
	m.list(store.Attrs{Key: key, Generation: r.generation})
}

// silence ends a host's heartbeats; what it reported last stays.
func (m *memory) silence(slice string, host int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := store.HostKey(slice, host)
	if r := m.hosts[key]; r != nil && r.silent.IsZero() {
		r.silent = m.now()
		m.wrote(key, r)
	}
}

// SilentSince is since when a host is silent, zero while it lives.
func (m *memory) SilentSince(slice string, host int) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.hosts[store.HostKey(slice, host)]; r != nil {
		return r.silent
	}
	return time.Time{}
}

// written counts what hosts have written, and the hosts that became silent.
func (m *memory) written() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.news
}

// assignment is what a slice's hosts are to run, nil where nothing is said.
func (m *memory) assignment(slice string) *state.Assignment {
	m.mu.Lock()
	defer m.mu.Unlock()
	object, ok := m.objects[store.AssignKey(slice)]
	var a state.Assignment
	if !ok || json.Unmarshal(object.Data, &a) != nil {
		return nil
	}
	return &a
}

// list puts an object into the list of all.
func (m *memory) list(attrs store.Attrs) {
	i, there := m.find(attrs.Key)
	if !there {
		m.attrs = slices.Insert(m.attrs, i, store.Attrs{})
	}
	m.attrs[i] = attrs
}

func (m *memory) find(key string) (int, bool) {
	return slices.BinarySearchFunc(m.attrs, key, func(a store.Attrs, key string) int { return strings.Compare(a.Key, key) })
}

// Get returns an object whole.
func (m *memory) Get(ctx context.Context, key string) (store.Object, error) {
	if err := ctx.Err(); err != nil {
		return store.Object{}, fmt.Errorf("get %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if key == store.StateKey && m.document != nil {
		if err := m.encode(); err != nil {
			return store.Object{}, err
		}
	}
	if object, ok := m.objects[key]; ok {
		return object, nil
	}
	r := m.hosts[key]
	if r == nil {
		return store.Object{}, fmt.Errorf("get %s: %w", key, store.ErrNotFound)
	}
	report := r.report
	report.Seq, report.At = uint64(r.generation), m.now()
	data, err := json.Marshal(report)
	if err != nil {
		return store.Object{}, fmt.Errorf("get %s: %w", key, err)
	}
	return store.Object{Attrs: store.Attrs{Key: key, Generation: r.generation, Size: int64(len(data)), Updated: report.At}, Data: data}, nil
}

// Put writes an object whole if its present generation is want.
func (m *memory) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("put %s: %w", key, err)
	}
	g, err := m.put(key, data, want)
	if err != nil || !strings.HasPrefix(key, store.AssignPrefix) {
		return g, err
	}
	var a state.Assignment
	if err := json.Unmarshal(data, &a); err != nil {
		return g, fmt.Errorf("put %s: %w", key, err)
	}
	m.assigned(a)
	return g, nil
}

func (m *memory) put(key string, data []byte, want store.Generation) (store.Generation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.replace(store.Object{Attrs: store.Attrs{Key: key, Size: int64(len(data))}, Data: bytes.Clone(data)}, want)
}

func (m *memory) replace(object store.Object, want store.Generation) (store.Generation, error) {
	key := object.Key
	if was := m.objects[key].Generation; want != store.Any && want != was {
		return 0, fmt.Errorf("put %s: %w", key, store.ErrConflict)
	}
	m.last++
	object.Generation, object.Updated = m.last, m.now()
	m.objects[key] = object
	if key == store.StateKey {
		m.document = nil
	}
	m.list(object.Attrs)
	return m.last, nil
}

// PutDocument is Put of the state, which is encoded when a reader needs it.
func (m *memory) PutDocument(ctx context.Context, doc *state.Document, want store.Generation) (store.Generation, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("put %s: %w", store.StateKey, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g, err := m.replace(store.Object{Attrs: store.Attrs{Key: store.StateKey}}, want)
	if err == nil {
		m.document = doc
	}
	return g, err
}

// encode makes the object of the state.
func (m *memory) encode() error {
	data, err := state.Encode(*m.document)
	if err != nil {
		return fmt.Errorf("get %s: %w", store.StateKey, err)
	}
	object := m.objects[store.StateKey]
	object.Data, object.Size, m.document = data, int64(len(data)), nil
	m.objects[store.StateKey] = object
	m.list(object.Attrs)
	return nil
}

// List returns the attributes of every object below one of prefixes, by key.
func (m *memory) List(ctx context.Context, prefixes ...string) ([]store.Attrs, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("list %s: %w", strings.Join(prefixes, ", "), err)
	}
	prefixes, err := store.DisjointPrefixes(prefixes)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found := make([]store.Attrs, 0, len(m.attrs))
	for _, prefix := range prefixes {
		from, _ := m.find(prefix)
		to := from
		for to < len(m.attrs) && strings.HasPrefix(m.attrs[to].Key, prefix) {
			to++
		}
		found = append(found, m.attrs[from:to]...)
	}
	return found, nil
}

// Delete removes an object. That of a host whose agent lives comes again at its
// next report, which is at once.
func (m *memory) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.hosts[key]; r != nil && r.silent.IsZero() {
		m.wrote(key, r)
		return nil
	}
	delete(m.objects, key)
	delete(m.hosts, key)
	if i, there := m.find(key); there {
		m.attrs = slices.Delete(m.attrs, i, i+1)
	}
	return nil
}

// Upload takes no blobs: nothing of a rehearsal runs.
func (m *memory) Upload(context.Context, string, io.Reader) error { return errors.ErrUnsupported }

// Open has no blobs.
func (m *memory) Open(context.Context, string) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}

// WriteInterval is 0.
func (m *memory) WriteInterval() time.Duration { return 0 }

// Location names the store for people.
func (m *memory) Location() string { return "a rehearsal" }
