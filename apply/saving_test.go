package apply_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// storm is a world whose store is far away. What a call destroys the evidence of must be saved.
type storm struct {
	*world
	t *testing.T

	mu       sync.Mutex
	assigned []string // each task that was assigned, in order
}

func newStorm(t *testing.T) *storm {
	t.Helper()
	w := &storm{world: newWorld(), t: t}
	withJournal(t, w.world)
	return w
}

// callTakes is how long a call to the store takes.
const callTakes = 90 * time.Millisecond

// process is how one controller reaches a storm. After so many calls to the store it is dead: the last
// one took effect, or not, and nothing follows.
type process struct {
	*storm
	calls, lives int
	replies      bool // the last call takes effect
}

var errDead = errors.New("the process is dead")

// begins counts a call, and reports whether it takes effect and has a reply.
func (p *process) begins() (happens, replied bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	return p.calls < p.lives || p.calls == p.lives && p.replies, p.calls < p.lives
}

func (p *process) dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls >= p.lives
}

func (p *process) store() store.Store {
	call := func(do func() error) error {
		time.Sleep(callTakes)
		happens, replied := p.begins()
		if !happens {
			return errDead
		}
		if err := do(); err != nil || replied {
			return err
		}
		return errDead
	}
	return paced{&farStore{Store: p.storm, call: call}}
}

// farStore makes each call through a function.
type farStore struct {
	store.Store
	call func(do func() error) error
}

func (f *farStore) Get(ctx context.Context, key string) (o store.Object, err error) {
	err = f.call(func() (err error) { o, err = f.Store.Get(ctx, key); return err })
	return o, err
}

func (f *farStore) Put(ctx context.Context, key string, data []byte, want store.Generation) (g store.Generation, err error) {
	err = f.call(func() (err error) { g, err = f.Store.Put(ctx, key, data, want); return err })
	return g, err
}

func (f *farStore) List(ctx context.Context, prefixes ...string) (all []store.Attrs, err error) {
	err = f.call(func() (err error) { all, err = f.Store.List(ctx, prefixes...); return err })
	return all, err
}

func (f *farStore) Delete(ctx context.Context, key string) error {
	return f.call(func() error { return f.Store.Delete(ctx, key) })
}

// Put notes what is assigned; a task that is taken off its slice must have ended by what is saved.
func (w *storm) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	if slice, ok := strings.CutPrefix(key, store.AssignPrefix); ok {
		var a state.Assignment
		if err := json.Unmarshal(data, &a); err != nil {
			return 0, err
		}
		if a.Run == nil {
			w.wantEnded("stops what runs on", strings.TrimSuffix(slice, ".json"))
		} else {
			w.mu.Lock()
			w.assigned = append(w.assigned, fmt.Sprintf("%s attempt %d", a.Run.Job, a.Run.Attempt))
			w.mu.Unlock()
		}
	}
	return w.world.Put(ctx, key, data, want)
}

// Delete removes an object of the mailbox.
func (w *storm) Delete(ctx context.Context, key string) error {
	if slice, ok := strings.CutPrefix(key, store.AssignPrefix); ok {
		w.wantEnded("forgets", strings.TrimSuffix(slice, ".json"))
	}
	return w.world.Store.Delete(ctx, key)
}

// wantEnded has it saved of each attempt on a slice that it has ended, or why it is stopped.
func (w *storm) wantEnded(does, slice string) {
	doc := load(w.t, w.world)
	for addr, j := range doc.Jobs {
		if last := j.Last(); last != nil && last.Outcome == "" && last.StopGeneration == 0 && slices.Contains(last.Slices, slice) {
			w.t.Errorf("a call %s %s, on which attempt %d of %s runs by what is saved", does, slice, last.Number, addr)
		}
	}
}

// cloud is the provider's side of a storm.
type cloud struct {
	capacity
	*process
}

func (c cloud) Inventory(ctx context.Context, stack string) (schema.Inventory, error) {
	return c.capacity.Inventory(ctx, stack)
}

func (c cloud) Get(ctx context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	return c.capacity.Get(ctx, spec)
}

func (c cloud) Create(ctx context.Context, spec schema.SliceSpec) error {
	if c.dead() {
		return errDead
	}
	return c.capacity.Create(ctx, spec)
}

func (c cloud) Delete(ctx context.Context, spec schema.SliceSpec) error {
	if c.dead() {
		return errDead
	}
	c.wantEnded("deletes", spec.Name)
	return c.capacity.Delete(ctx, spec)
}

var _ providers.Provider = cloud{}

// begin is a controller under an epoch that dies after so many calls.
func (w *storm) begin(epoch uint64, lives int, replies bool) (*process, *apply.Stepper, error) {
	p := &process{storm: w, lives: lives, replies: replies}
	cfg := w.config()
	cfg.Store, cfg.Epoch, cfg.Eager, cfg.Events = p.store(), epoch, true, true
	cfg.Providers = map[schema.ProviderName]providers.Provider{schema.ProviderLocal: cloud{capacity{w.world}, p}}
	s, err := apply.New(w.t.Context(), cfg)
	return p, s, err
}

// settle steps until nothing is left to do or the process is dead.
func (w *storm) settle(p *process, s *apply.Stepper) {
	for range 10_000 {
		next, err := s.Step(w.t.Context())
		if err != nil {
			next = time.Second
		}
		if last := s.Last(); p.dead() || err == nil && s.Idle() && len(last.Actions)+len(last.Doubts) == 0 && !slices.ContainsFunc(last.Next.Desired.Jobs, func(j schema.Job) bool {
			return last.Next.Jobs[j.Addr].Status == schema.JobPending
		}) {
			return
		}
		s.Wait(w.t.Context(), next)
	}
	w.t.Fatalf("the stack does not settle; pending: %+v", s.Last().Pending)
}

// strike ends the task of one job: it has succeeded, has failed, or was preempted.
func (w *storm) strike(addr schema.Address, j *state.Job) {
	n, name := numberOf(addr), j.Slices[0]
	ended := schema.TaskSucceeded
	switch n % 3 {
	case 0:
		w.world.mu.Lock()
		st := w.slices[name]
		st.Phase, st.Reason, st.Cause = schema.SliceDead, "preempted", schema.ErrorPreempted
		w.slices[name] = st
		w.world.mu.Unlock()
		return
	case 1:
		ended = schema.TaskFailed
	}
	object, err := w.Get(w.t.Context(), store.HostKey(name, 0))
	if err != nil {
		w.t.Fatal(err)
	}
	var r state.HostReport
	if err := json.Unmarshal(object.Data, &r); err != nil {
		w.t.Fatal(err)
	}
	task := *r.Task
	task.State, r.Task, r.Seq = ended, &task, r.Seq+1
	if err := w.report(w.t.Context(), r); err != nil {
		w.t.Fatal(err)
	}
}

// check has all be as it has to, however often controllers died.
func (w *storm) check(doc *state.Document) {
	for addr, j := range doc.Jobs {
		n := numberOf(addr)
		got := fmt.Sprintf("%s attempt %d, %d failures, %d preemptions", j.Status, j.Attempt, j.Failures, j.Preemptions)
		want := []string{"running attempt 2, 0 failures, 1 preemptions", "running attempt 2, 1 failures, 0 preemptions", "succeeded attempt 1, 0 failures, 0 preemptions"}[n%3]
		if got != want {
			w.t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
	for name := range w.slices {
		if doc.Slices[name] == nil {
			w.t.Errorf("slice %s is leaked", name)
		}
	}
	for _, each := range w.assigned {
		if strings.Contains(each, "attempt 3") || strings.Contains(each, "attempt 2") && strings.Contains(each, "[2]") {
			w.t.Errorf("%s was assigned", each)
		}
	}
}

// A controller dies at each of its calls to a store that is far away, in which saves go on beside
// the steps, and another one goes on: nothing is lost, leaked or counted twice.
func TestSavesBesideStepsSurviveCrashes(t *testing.T) {
	for _, replies := range []bool{true, false} {
		for lives := 1; ; lives++ {
			died := false
			synctest.Test(t, func(t *testing.T) {
				w := newStorm(t)
				first, s, err := w.begin(1, 1<<30, false)
				if err != nil {
					t.Fatal(err)
				}
				desired := jobs(6)
				for i := range desired.Jobs {
					desired.Jobs[i].Retries = schema.Retries{Failure: schema.Unlimited, Preemption: schema.Unlimited}
				}
				accept(t, s, desired)
				w.settle(first, s)
				// Some at once, and others while saves are under way.
				for addr, j := range s.Document().Jobs {
					time.AfterFunc(time.Duration(numberOf(addr)/3)*300*time.Millisecond, func() { w.strike(addr, j) })
				}
				first.lives, first.replies = first.calls+lives, replies
				for range 20 {
					if next, err := s.Step(t.Context()); err == nil {
						s.Wait(t.Context(), next)
					}
				}
				w.settle(first, s)
				s.Drain(t.Context())
				if died = first.dead(); died {
					time.Sleep(time.Minute)
					var second *process
					if second, s, err = w.begin(2, 1<<30, false); err != nil {
						t.Fatal(err)
					}
					w.settle(second, s)
					s.Drain(t.Context())
				}
				w.check(s.Document())
			})
			if t.Failed() {
				t.Fatalf("the controller died at call %d after the storm, which takes effect: %t", lives, replies)
			}
			if !died {
				t.Logf("%d calls", lives)
				break
			}
		}
	}
}

func numberOf(addr schema.Address) int {
	n, _ := addr.Key.Int()
	return n
}
