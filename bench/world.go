package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/threadtime"
)

// mailboxLocation is where assignments and host reports are.
type mailboxLocation string

// The mailbox locations.
const (
	mailboxInMemory mailboxLocation = "memory" // kept in one file from process to process
	mailboxInDir    mailboxLocation = "dir"    // a file for each, as for real agents
)

// worldFile keeps a world between processes, in its directory.
const worldFile = "world"

// world is a provider of slices and the agents on them, all simulated: slices
// are there as soon as they are asked for, and agents do at once what they are
// told. What is left to measure is fray's own cost.
//
// It is also the stack's store: what is not about agents is in the store
// beneath, a directory or nothing but memory.
type world struct {
	store.Store // beneath
	mail        mailboxLocation
	dir         string // "": nothing is kept
	interval    time.Duration

	mu     sync.Mutex
	taken  time.Duration // by simulated calls
	kept   kept
	keys   []string // of kept.Objects, in order
	slices map[string]schema.SliceSpec
	listed []schema.SliceStatus // slices in the order of names, nil: some came or went
	saves  []time.Time          // of the state
}

// kept is what is written down of a world.
type kept struct {
	Last    store.Generation
	Objects map[string]store.Object
}

// newWorld is one that nothing is kept of, all of it in memory; writes of one
// object are to be an interval apart.
func newWorld(interval time.Duration) *world {
	return &world{
		mail: mailboxInMemory, interval: interval,
		kept: kept{Objects: map[string]store.Object{}}, slices: map[string]schema.SliceSpec{},
	}
}

// openWorld goes on with the world of a directory, over the store beneath.
func openWorld(dir string, mail mailboxLocation, beneath store.Store) (*world, error) {
	w := newWorld(0)
	defer w.enter()()
	w.Store, w.mail, w.dir = beneath, mail, dir
	f, err := os.Open(filepath.Join(dir, worldFile))
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := gob.NewDecoder(f).Decode(&w.kept); err != nil {
		return nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	for key := range w.kept.Objects {
		w.keys = append(w.keys, key)
	}
	slices.Sort(w.keys)
	return w, nil
}

// recall makes the slices that a state has. Like terraform_data, they exist because
// the state has them.
func (w *world) recall(doc *state.Document) {
	defer w.enter()()
	for name, s := range doc.Slices {
		w.slices[name] = s.Spec
	}
}

// keep writes the world down for the next process.
func (w *world) keep() error {
	defer w.enter()()
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(w.kept); err != nil {
		return fmt.Errorf("keep the world: %w", err)
	}
	return os.WriteFile(filepath.Join(w.dir, worldFile), b.Bytes(), 0o600)
}

// enter begins a simulated call; what it returns ends it. It counts the processor time of
// its thread: by the clock, a call would seem to take longer on a busy machine, and what is
// measured around it less.
func (w *world) enter() (leave func()) {
	w.mu.Lock()
	runtime.LockOSThread()
	began := threadtime.Used()
	return func() {
		w.taken += threadtime.Used() - began
		runtime.UnlockOSThread()
		w.mu.Unlock()
	}
}

// spent is the processor time in simulated calls.
func (w *world) spent() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taken
}

// simulates reports whether an object is in memory.
func (w *world) simulates(key string) bool {
	return w.Store == nil || w.mail == mailboxInMemory && isMail(key)
}

func isMail(key string) bool {
	return strings.HasPrefix(key, store.AssignPrefix) || strings.HasPrefix(key, store.BootPrefix) || strings.HasPrefix(key, store.HostsPrefix)
}

// Get returns an object.
func (w *world) Get(ctx context.Context, key string) (store.Object, error) {
	if !w.simulates(key) {
		return w.Store.Get(ctx, key)
	}
	defer w.enter()()
	o, ok := w.kept.Objects[key]
	if !ok {
		return o, store.ErrNotFound
	}
	return o, nil
}

// Put writes an object; agents obey an assignment before it returns.
func (w *world) Put(ctx context.Context, key string, data []byte, want store.Generation) (g store.Generation, err error) {
	simulated := w.simulates(key)
	if !simulated {
		if g, err = w.Store.Put(ctx, key, data, want); err != nil {
			return g, err
		}
	}
	defer w.enter()()
	if simulated {
		if g, err = w.put(key, data, want); err != nil {
			return g, err
		}
	}
	switch {
	case key == store.StateKey:
		w.saves = append(w.saves, time.Now())
	case strings.HasPrefix(key, store.AssignPrefix):
		err = w.obey(data)
	}
	return g, err
}

func (w *world) put(key string, data []byte, want store.Generation) (store.Generation, error) {
	old, there := w.kept.Objects[key]
	if want != store.Any && old.Generation != want {
		return 0, store.ErrConflict
	}
	if !there {
		i, _ := slices.BinarySearch(w.keys, key)
		w.keys = slices.Insert(w.keys, i, key)
	}
	w.kept.Last++
	w.kept.Objects[key] = store.Object{
		Attrs: store.Attrs{Key: key, Generation: w.kept.Last, Size: int64(len(data))}, Data: bytes.Clone(data),
	}
	return w.kept.Last, nil
}

// obey is the agents: they report at once that the assignment runs.
func (w *world) obey(data []byte) error {
	var a state.Assignment
	if err := json.Unmarshal(data, &a); err != nil {
		return err
	}
	r := freshReport(a.Slice)
	r.Seq, r.Generation, r.Epoch = 1+uint64(a.Generation), a.Generation, a.Epoch
	if a.Run != nil {
		r.Task = &state.TaskReport{
			Job: a.Run.Job, Attempt: a.Run.Attempt, Generation: a.Generation, State: schema.TaskRunning, Started: true,
			Health: state.HealthHealthy,
		}
	}
	return w.report(r)
}

// freshReport is the report of the only host of a slice that has come up.
func freshReport(slice string) state.HostReport {
	return state.HostReport{Slice: slice, Boot: "b", Seq: 1, Address: "127.0.0.1", CoordinatorPort: 1, MegascalePort: 2}
}

// report writes like an agent on another machine: not at this one's cost, so
// nothing is synced.
func (w *world) report(r state.HostReport) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	key := store.HostKey(r.Slice, r.Host)
	if w.simulates(key) {
		_, err = w.put(key, data, store.Any)
		return err
	}
	path := filepath.Join(w.Location(), filepath.FromSlash(key))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// List returns what is beneath and what is simulated; no prefix names both.
func (w *world) List(ctx context.Context, prefixes ...string) ([]store.Attrs, error) {
	for _, p := range prefixes {
		if !w.simulates(p) {
			return w.Store.List(ctx, prefixes...)
		}
	}
	defer w.enter()()
	out := make([]store.Attrs, 0, len(w.keys))
	for _, prefix := range slices.Sorted(slices.Values(prefixes)) {
		i, _ := slices.BinarySearch(w.keys, prefix)
		for ; i < len(w.keys) && strings.HasPrefix(w.keys[i], prefix); i++ {
			out = append(out, w.kept.Objects[w.keys[i]].Attrs)
		}
	}
	return out, nil
}

// Delete removes an object.
func (w *world) Delete(ctx context.Context, key string) error {
	if !w.simulates(key) {
		return w.Store.Delete(ctx, key)
	}
	defer w.enter()()
	if i, there := slices.BinarySearch(w.keys, key); there {
		w.keys = slices.Delete(w.keys, i, i+1)
		delete(w.kept.Objects, key)
	}
	return nil
}

var errNoBlobs = errors.New("the simulated store keeps no blobs")

// Upload is not simulated.
func (w *world) Upload(context.Context, string, io.Reader) error { return errNoBlobs }

// Open is not simulated.
func (w *world) Open(context.Context, string) (io.ReadCloser, error) { return nil, errNoBlobs }

// WriteInterval is that of the store beneath, if there is one.
func (w *world) WriteInterval() time.Duration {
	if w.Store != nil {
		return w.Store.WriteInterval()
	}
	return w.interval
}

// Location is that of the store beneath, if there is one.
func (w *world) Location() string {
	if w.Store != nil {
		return w.Store.Location()
	}
	return "memory"
}

// Unwrap is the store beneath.
func (w *world) Unwrap() store.Store { return w.Store }

// capacity is the provider's side of a world: both have a Delete.
type capacity struct{ *world }

// Inventory lists all slices.
func (c capacity) Inventory(context.Context, string) (schema.Inventory, error) {
	defer c.enter()()
	if c.listed == nil {
		c.listed = make([]schema.SliceStatus, 0, len(c.slices))
		for _, name := range slices.Sorted(maps.Keys(c.slices)) {
			c.listed = append(c.listed, schema.SliceStatus{Spec: c.slices[name], Phase: schema.SliceReady})
		}
	}
	return schema.Inventory{Slices: c.listed}, nil
}

// Get reads one slice.
func (c capacity) Get(_ context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	defer c.enter()()
	found, there := c.slices[spec.Name]
	return schema.SliceStatus{Spec: found, Phase: schema.SliceReady}, there, nil
}

// Create makes a slice whose host reports at once.
func (c capacity) Create(_ context.Context, spec schema.SliceSpec) error {
	defer c.enter()()
	c.slices[spec.Name], c.listed = spec, nil
	return c.report(freshReport(spec.Name))
}

// Delete ends a slice.
func (c capacity) Delete(_ context.Context, spec schema.SliceSpec) error {
	defer c.enter()()
	delete(c.slices, spec.Name)
	c.listed = nil
	return nil
}

var (
	_ store.Store        = (*world)(nil)
	_ providers.Provider = capacity{}
)
