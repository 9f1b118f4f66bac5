package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// world is a provider and its agents in memory: hosts report as soon as their
// slice is created, and do at once what they are assigned.
type world struct {
	store.Store // the mailbox, watched for assignments

	mu      sync.Mutex
	slices  map[string]schema.SliceStatus
	created []string // names, once per call
	fail    func(verb, name string) error
	busy    int // calls under way
	most    int // and the most there ever were
	slow    time.Duration
}

func newWorld() *world {
	return &world{Store: storetest.NewMemory(), slices: map[string]schema.SliceStatus{}}
}

func (w *world) Unwrap() store.Store { return w.Store }

// Put lets the agents obey what is assigned.
func (w *world) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	g, err := w.Store.Put(ctx, key, data, want)
	if err != nil || !strings.HasPrefix(key, store.AssignPrefix) {
		return g, err
	}
	var a state.Assignment
	if err := json.Unmarshal(data, &a); err != nil {
		return g, err
	}
	r := state.HostReport{Slice: a.Slice, Boot: "b", Address: "10.0.0.1", CoordinatorPort: 1, MegascalePort: 2, Epoch: a.Epoch, Generation: a.Generation}
	if a.Run != nil {
		r.Task = &state.TaskReport{Job: a.Run.Job, Attempt: a.Run.Attempt, Generation: a.Generation, State: schema.TaskRunning, Started: true}
	}
	return g, w.report(ctx, r)
}

func (w *world) report(ctx context.Context, r state.HostReport) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.Store.Put(ctx, store.HostKey(r.Slice, r.Host), data, store.Any)
	return err
}

// capacity is the provider side of the world: store and provider both delete.
type capacity struct{ *world }

func (c capacity) Inventory(context.Context, string) (schema.Inventory, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var inv schema.Inventory
	for _, st := range c.slices {
		inv.Slices = append(inv.Slices, st)
	}
	slices.SortFunc(inv.Slices, func(a, b schema.SliceStatus) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
	return inv, nil
}

func (c capacity) Get(_ context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st, found := c.slices[spec.Name]
	return st, found, nil
}

func (c capacity) Create(ctx context.Context, spec schema.SliceSpec) error {
	if err := c.call("create", spec.Name); err != nil {
		return err
	}
	c.mu.Lock()
	c.slices[spec.Name] = schema.SliceStatus{Spec: spec, Phase: schema.SliceReady}
	c.created = append(c.created, spec.Name)
	c.mu.Unlock()
	return c.report(ctx, state.HostReport{Slice: spec.Name, Boot: "b", Address: "10.0.0.1", CoordinatorPort: 1, MegascalePort: 2})
}

func (c capacity) Delete(_ context.Context, spec schema.SliceSpec) error {
	if err := c.call("delete", spec.Name); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.slices, spec.Name)
	return nil
}

func (c capacity) call(verb, name string) error {
	c.mu.Lock()
	c.busy++
	c.most = max(c.most, c.busy)
	fail := c.fail
	c.mu.Unlock()
	if c.slow > 0 {
		time.Sleep(c.slow) // only inside a synctest bubble
	}
	defer func() {
		c.mu.Lock()
		c.busy--
		c.mu.Unlock()
	}()
	if fail != nil {
		return fail(verb, name)
	}
	return nil
}

var _ providers.Provider = capacity{}

func (w *world) config() apply.Config {
	return apply.Config{
		Store:     w,
		Providers: map[schema.ProviderName]providers.Provider{schema.ProviderLocal: capacity{w}},
		Epoch:     1, Valid: func() error { return nil }, Scope: apply.Scope{All: true},
	}
}

func newStepper(t *testing.T, cfg apply.Config) *apply.Stepper {
	t.Helper()
	s, err := apply.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func accept(t *testing.T, s *apply.Stepper, desired schema.Desired) {
	t.Helper()
	if err := s.Accept(t.Context(), apply.Accept(s.Document(), apply.Request{Desired: desired})); err != nil {
		t.Fatal(err)
	}
}

// converge steps until nothing is left to do.
func converge(t *testing.T, s *apply.Stepper) {
	t.Helper()
	for range 100_000 {
		next, err := s.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p := s.Last(); s.Idle() && len(p.Actions) == 0 && len(p.Pending) == 0 {
			return
		}
		s.Wait(t.Context(), next)
	}
	t.Fatalf("did not converge; pending: %+v", s.Last().Pending)
}

func jobs(n int) schema.Desired {
	d := schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderLocal}}}
	for i := range n {
		d.Jobs = append(d.Jobs, schema.Job{
			Addr: schema.Address{Kind: schema.KindJob, Name: "j", Key: schema.IntKey(i)}, Namespace: "j",
			Command: []schema.Text{schema.Plain("true")}, Resources: schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1},
		})
	}
	return d
}

var errInjected = errors.New("injected")
