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

// memory is the stack's store. Reports of hosts are not written into it: they are
// made when they are read, so that the heartbeats of thousands of hosts cost nothing
// without a reader.
type memory struct {
	now func() time.Time
	// assigned sees every assignment that was written.
	assigned func(a state.Assignment)

	mu      sync.Mutex
	objects map[string]store.Object
	hosts   map[string]*reporting // by key
	keys    []string              // of both, in order
	last    store.Generation
	lists   int64 // lists so far
	version int64 // of the last report of any host that changed
}

// reporting is one host's report as it stands in the store.
type reporting struct {
	report  state.HostReport
	version int64 // of the report's content
	beats   int64 // heartbeats so far
	beaten  int64 // the look of the last one
	lives   bool
}

// How many looks pass between two heartbeats: an observer counts at most 5 s of
// silence for each look, and a host that is silent for 45 s for lost. Where there
// are few hosts each is heard at every look.
const (
	beatEvery = 8
	fewHosts  = 256
)

// beatBits of a generation count heartbeats, those above them versions.
const beatBits = 32

func newMemory(now func() time.Time) *memory {
	return &memory{
		now: now, assigned: func(state.Assignment) {},
		objects: map[string]store.Object{}, hosts: map[string]*reporting{},
	}
}

var _ store.Store = (*memory)(nil)

func (r *reporting) generation() store.Generation {
	return store.Generation(r.version<<beatBits + r.beats)
}

// beat lets a living host be heard of at a look.
func (m *memory) beat(r *reporting) {
	every := int64(beatEvery)
	if len(m.hosts) <= fewHosts {
		every = 1
	}
	if r.lives && m.lists-r.beaten >= every {
		r.beats++
		r.beaten = m.lists
	}
}

// report replaces a host's report.
func (m *memory) report(r state.HostReport) {
	key := store.HostKey(r.Slice, r.Host)
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.hosts[key]
	if was == nil {
		was = &reporting{}
		m.hosts[key] = was
		m.insert(key)
	}
	was.report, was.lives = r, true
	m.version++ // no generation comes again, also where a report was removed
	was.version, was.beaten = m.version, m.lists
}

// silence ends a host's heartbeats; what it last said stays.
func (m *memory) silence(slice string, host int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.hosts[store.HostKey(slice, host)]; r != nil {
		r.lives = false
	}
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

func (m *memory) insert(key string) {
	if i, there := slices.BinarySearch(m.keys, key); !there {
		m.keys = slices.Insert(m.keys, i, key)
	}
}

// Get returns an object whole.
func (m *memory) Get(ctx context.Context, key string) (store.Object, error) {
	if err := ctx.Err(); err != nil {
		return store.Object{}, fmt.Errorf("get %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if object, ok := m.objects[key]; ok {
		return object, nil
	}
	r := m.hosts[key]
	if r == nil {
		return store.Object{}, fmt.Errorf("get %s: %w", key, store.ErrNotFound)
	}
	report := r.report
	report.Seq, report.At = uint64(r.generation()), m.now()
	data, err := json.Marshal(report)
	if err != nil {
		return store.Object{}, fmt.Errorf("get %s: %w", key, err)
	}
	return store.Object{Attrs: store.Attrs{Key: key, Generation: r.generation(), Size: int64(len(data)), Updated: report.At}, Data: data}, nil
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
	if was := m.objects[key].Generation; want != store.Any && want != was {
		return 0, fmt.Errorf("put %s: %w", key, store.ErrConflict)
	}
	m.last++
	m.objects[key] = store.Object{
		Attrs: store.Attrs{Key: key, Generation: m.last, Size: int64(len(data)), Updated: m.now()}, Data: bytes.Clone(data),
	}
	m.insert(key)
	return m.last, nil
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
	if slices.Contains(prefixes, store.HostsPrefix) {
		m.lists++
	}
	found := make([]store.Attrs, 0, len(m.keys))
	for _, prefix := range prefixes {
		i, _ := slices.BinarySearch(m.keys, prefix)
		for ; i < len(m.keys) && strings.HasPrefix(m.keys[i], prefix); i++ {
			found = append(found, m.attrs(m.keys[i]))
		}
	}
	return found, nil
}

func (m *memory) attrs(key string) store.Attrs {
	r := m.hosts[key]
	if r == nil {
		return m.objects[key].Attrs
	}
	m.beat(r)
	return store.Attrs{Key: key, Generation: r.generation()}
}

// Delete removes an object. That of a host whose agent lives comes again at its
// next report, which is at once.
func (m *memory) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.hosts[key]; r != nil && r.lives {
		m.version++
		r.version, r.beaten = m.version, m.lists
		return nil
	}
	delete(m.objects, key)
	delete(m.hosts, key)
	if i, there := slices.BinarySearch(m.keys, key); there {
		m.keys = slices.Delete(m.keys, i, i+1)
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
