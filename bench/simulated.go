package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// simulated is a store and a provider in memory whose hosts do at once what
// they are told: what is left to measure is fray's own cost.
type simulated struct {
	mu      sync.Mutex
	next    store.Generation
	objects map[string]store.Object
	slices  map[string]schema.SliceStatus
	writes  map[string]int
}

func newSimulated() *simulated {
	return &simulated{objects: map[string]store.Object{}, slices: map[string]schema.SliceStatus{}, writes: map[string]int{}}
}

func (s *simulated) Get(_ context.Context, key string) (store.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	if !ok {
		return o, store.ErrNotFound
	}
	return o, nil
}

func (s *simulated) Put(_ context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if want != store.Any && s.objects[key].Generation != want {
		return 0, store.ErrConflict
	}
	g := s.put(key, data)
	if strings.HasPrefix(key, store.AssignPrefix) {
		return g, s.obey(data)
	}
	return g, nil
}

func (s *simulated) put(key string, data []byte) store.Generation {
	s.next++
	s.writes[key]++
	s.objects[key] = store.Object{Attrs: store.Attrs{Key: key, Generation: s.next, Size: int64(len(data))}, Data: bytes.Clone(data)}
	return s.next
}

// obey is the agents: they report at once that the assignment runs.
func (s *simulated) obey(data []byte) error {
	var a store.Assignment
	if err := json.Unmarshal(data, &a); err != nil {
		return err
	}
	r := store.HostReport{Slice: a.Slice, Boot: "b", Seq: uint64(a.Generation), Address: "127.0.0.1", CoordinatorPort: 1, MegascalePort: 2, Generation: a.Generation, Epoch: a.Epoch}
	if a.Run != nil {
		r.Task = &store.TaskReport{Job: a.Run.Job, Attempt: a.Run.Attempt, Generation: a.Generation, State: schema.TaskRunning, Started: true}
	}
	return s.report(r)
}

func (s *simulated) report(r store.HostReport) error {
	data, err := json.Marshal(r)
	if err == nil {
		s.put(store.HostKey(r.Slice, r.Host), data)
	}
	return err
}

func (s *simulated) List(_ context.Context, prefix string) ([]store.Attrs, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []store.Attrs
	for key, o := range s.objects {
		if strings.HasPrefix(key, prefix) {
			out = append(out, o.Attrs)
		}
	}
	slices.SortFunc(out, func(a, b store.Attrs) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

func (s *simulated) Delete(_ context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
	return nil
}

func (s *simulated) Upload(ctx context.Context, key string, content io.Reader) error {
	data, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	_, err = s.Put(ctx, key, data, store.Any)
	return err
}

func (s *simulated) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	o, err := s.Get(ctx, key)
	return io.NopCloser(bytes.NewReader(o.Data)), err
}

func (s *simulated) WriteInterval() time.Duration { return 0 }
func (s *simulated) Location() string             { return "memory" }

func (s *simulated) Inventory(context.Context, string) (schema.Inventory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var inv schema.Inventory
	for _, st := range s.slices {
		inv.Slices = append(inv.Slices, st)
	}
	slices.SortFunc(inv.Slices, func(a, b schema.SliceStatus) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	return inv, nil
}

func (s *simulated) Create(_ context.Context, spec schema.SliceSpec) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slices[spec.Name] = schema.SliceStatus{Spec: spec, Phase: schema.SliceReady, CreatedAt: time.Now()}
	return s.report(store.HostReport{Slice: spec.Name, Boot: "b", Seq: 1, Address: "127.0.0.1", CoordinatorPort: 1, MegascalePort: 2})
}

func (s *simulated) Delete2(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.slices, name)
}

// capacity is the provider's side of simulated: both have a Delete.
type capacity struct{ *simulated }

func (c capacity) Delete(_ context.Context, _, name string) error {
	c.Delete2(name)
	return nil
}

var (
	_ store.Store        = (*simulated)(nil)
	_ providers.Provider = capacity{}
)

// applies measures apply of N resources on the simulated provider.
func (b *bench) applies() error {
	var base time.Duration
	for i, n := range []int{250, 500, 1000, 2000} {
		took, steps, writes, err := b.applyOnce(n)
		if err != nil {
			return err
		}
		if i == 0 {
			base = took / time.Duration(n)
		}
		b.row(fmt.Sprintf("apply of %d simulated resources", n),
			fmt.Sprintf("%s, %.2f ms each", sec(took), float64(took.Microseconds())/1000/float64(n)), "linear",
			fmt.Sprintf("%.2fx the cost of each of 250; %d steps, %d state writes", float64(took/time.Duration(n))/float64(base), steps, writes))
	}
	return nil
}

func (b *bench) applyOnce(n int) (took time.Duration, steps, writes int, err error) {
	sim := newSimulated()
	desired := schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderLocal}}}
	for i := range n {
		desired.Jobs = append(desired.Jobs, schema.Job{
			Addr:      schema.Address{Kind: schema.KindJob, Name: "work", Key: schema.IntKey(i)},
			Namespace: "work", Command: []schema.Text{schema.Plain("true")},
			Resources: schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1},
		})
	}
	start := time.Now()
	s, err := apply.New(b.ctx, apply.Config{
		Store: sim, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderLocal: capacity{sim}},
		Epoch: 1, Valid: func() error { return nil }, Scope: apply.Scope{All: true},
	})
	if err != nil {
		return 0, 0, 0, err
	}
	if err := s.Accept(b.ctx, apply.Accept(s.Document(), apply.Request{Desired: desired})); err != nil {
		return 0, 0, 0, err
	}
	for {
		next, err := s.Step(b.ctx)
		if err != nil {
			return 0, 0, 0, err
		}
		steps++
		if p := s.Last(); s.Idle() && len(p.Actions) == 0 && len(p.Pending) == 0 {
			break
		}
		s.Wait(b.ctx, next)
	}
	s.Drain(b.ctx)
	if err := s.Save(b.ctx); err != nil {
		return 0, 0, 0, err
	}
	return time.Since(start), steps, sim.writes[store.StateKey], nil
}
