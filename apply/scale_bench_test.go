package apply_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/threadtime"
)

// swift is a store and a provider whose own cost is small beside what is
// measured: hosts report at once, and tasks end as soon as they start where
// ends says so.
type swift struct {
	mu                 sync.Mutex
	last               store.Generation
	objects            orderedMap[store.Object]
	slices             orderedMap[schema.SliceStatus]
	ends               bool
	moved              map[string]string // slices that are at another address than others
	fast               bool              // the store takes writes of one object at any rate, as a directory does
	saves              int
	written, snapshots int           // bytes of the state's journal and of whole states
	spent              time.Duration // in calls, of processors
	streams            *hostStreams  // that hosts report by, once they are open; nil: there are none
}

// orderedMap is a map with its keys in order, once they are asked for.
type orderedMap[V any] struct {
	ordered []string
	added   []string // since then
	values  map[string]V
}

func (s *orderedMap[V]) keys() []string {
	if len(s.added) > 0 {
		s.ordered = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.ordered, s.added))))
		s.added = nil
	}
	return s.ordered
}

func (s *orderedMap[V]) put(key string, v V) {
	if _, there := s.values[key]; !there {
		if s.values == nil {
			s.values = map[string]V{}
		}
		s.added = append(s.added, key)
	}
	s.values[key] = v
}

func (s *orderedMap[V]) remove(key string) {
	keys := s.keys()
	if i, there := slices.BinarySearch(keys, key); there {
		s.ordered = slices.Delete(keys, i, i+1)
		delete(s.values, key)
	}
}

func (w *swift) lock() func() {
	w.mu.Lock()
	runtime.LockOSThread()
	began := threadtime.Used()
	return func() {
		w.spent += threadtime.Used() - began
		runtime.UnlockOSThread()
		w.mu.Unlock()
	}
}

func (w *swift) Get(_ context.Context, key string) (store.Object, error) {
	defer w.lock()()
	o, ok := w.objects.values[key]
	if !ok {
		return o, store.ErrNotFound
	}
	return o, nil
}

func (w *swift) Put(_ context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	defer w.lock()()
	if want != store.Any && w.objects.values[key].Generation != want {
		return 0, store.ErrConflict
	}
	g := w.write(key, data)
	switch {
	case key == store.StateKey:
		w.saves++
		w.snapshots += len(data)
	case strings.HasPrefix(key, store.JournalPrefix):
		w.written += len(data)
	}
	if !strings.HasPrefix(key, store.AssignPrefix) {
		return g, nil
	}
	var a state.Assignment
	if err := json.Unmarshal(data, &a); err != nil {
		return g, err
	}
	r := state.HostReport{Slice: a.Slice, Boot: "b", Seq: uint64(a.Generation), Address: "10.0.0.1", CoordinatorPort: 1, MegascalePort: 2, Generation: a.Generation, Epoch: a.Epoch}
	if a.Run != nil {
		r.Task = &state.TaskReport{Job: a.Run.Job, Attempt: a.Run.Attempt, Generation: a.Generation, State: schema.TaskRunning, Started: true}
		if w.ends {
			r.Task.State = schema.TaskSucceeded
		}
	}
	r.Address = cmp.Or(w.moved[a.Slice], r.Address)
	return g, w.report(r)
}

func (w *swift) write(key string, data []byte) store.Generation {
	w.last++
	w.objects.put(key, store.Object{Attrs: store.Attrs{Key: key, Generation: w.last, Size: int64(len(data))}, Data: data})
	return w.last
}

func (w *swift) report(r state.HostReport) error {
	if w.streams != nil && w.streams.open {
		w.streams.changed = append(w.streams.changed, apply.LiveHost{Slice: r.Slice, Host: r.Host, Report: &r, Live: true, Seq: r.Seq})
		return nil
	}
	data, err := json.Marshal(r)
	if err == nil {
		w.write(store.HostKey(r.Slice, r.Host), data)
	}
	return err
}

func (w *swift) List(_ context.Context, prefixes ...string) ([]store.Attrs, error) {
	defer w.lock()()
	var out []store.Attrs
	for _, prefix := range slices.Sorted(slices.Values(prefixes)) {
		keys := w.objects.keys()
		i, _ := slices.BinarySearch(keys, prefix)
		for ; i < len(keys) && strings.HasPrefix(keys[i], prefix); i++ {
			out = append(out, w.objects.values[keys[i]].Attrs)
		}
	}
	return out, nil
}

func (w *swift) Delete(_ context.Context, key string) error {
	defer w.lock()()
	w.objects.remove(key)
	return nil
}

func (w *swift) Upload(context.Context, string, io.Reader) error { return nil }
func (w *swift) Open(context.Context, string) (io.ReadCloser, error) {
	return nil, store.ErrNotFound
}
func (w *swift) WriteInterval() time.Duration {
	if w.fast {
		return 0
	}
	return time.Second
}
func (w *swift) Location() string { return "memory" }

// swiftProvider is the provider's side: both have a Delete.
type swiftProvider struct{ *swift }

func (p swiftProvider) Inventory(context.Context, string) (schema.Inventory, error) {
	defer p.lock()()
	inv := schema.Inventory{Slices: make([]schema.SliceStatus, 0, len(p.slices.values))}
	for _, name := range p.slices.keys() {
		inv.Slices = append(inv.Slices, p.slices.values[name])
	}
	return inv, nil
}

func (p swiftProvider) Get(_ context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	defer p.lock()()
	st, found := p.slices.values[spec.Name]
	return st, found, nil
}

func (p swiftProvider) Create(_ context.Context, spec schema.SliceSpec) error {
	defer p.lock()()
	p.slices.put(spec.Name, schema.SliceStatus{Spec: spec, Phase: schema.SliceReady})
	return p.report(state.HostReport{Slice: spec.Name, Boot: "b", Seq: 1, Address: "10.0.0.1", CoordinatorPort: 1, MegascalePort: 2})
}

func (p swiftProvider) Delete(_ context.Context, spec schema.SliceSpec) error {
	defer p.lock()()
	p.slices.remove(spec.Name)
	return nil
}

var (
	_ store.Store        = (*swift)(nil)
	_ providers.Provider = swiftProvider{}
)

// shapes are the configurations of the scale benchmarks, of n jobs each.
func shapes() map[string]func(n int) schema.Desired {
	chained := func(name func(i int) schema.Address, on func(i int) int) func(int) schema.Desired {
		return func(n int) schema.Desired {
			d := schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderLocal}}}
			for i := range n {
				j := schema.Job{
					Addr: name(i), Namespace: "n", Command: []schema.Text{schema.Plain("true"), schema.Plain(fmt.Sprint(i))},
					Resources: schema.Resources{Provider: schema.ProviderLocal, CPU: 1, Slices: 1},
				}
				if k := on(i); k >= 0 {
					j.DependsOn = []schema.Address{name(k)}
				}
				d.Jobs = append(d.Jobs, j)
			}
			slices.SortFunc(d.Jobs, func(a, b schema.Job) int { return a.Addr.Compare(b.Addr) })
			return d
		}
	}
	block := func(i int) schema.Address {
		return schema.Address{Kind: schema.KindJob, Name: fmt.Sprintf("block%d", i)}
	}
	return map[string]func(n int) schema.Desired{
		"one for_each": chained(func(i int) schema.Address {
			return schema.Address{Kind: schema.KindJob, Name: "work", Key: schema.StringKey(fmt.Sprint("k", i))}
		}, func(int) int { return -1 }),
		"chains of ten": chained(block, func(i int) int {
			if i%10 == 0 {
				return -1
			}
			return i - 1
		}),
		"ten stages": func(n int) schema.Desired {
			return chained(func(i int) schema.Address {
				return schema.Address{Kind: schema.KindJob, Name: fmt.Sprint("stage", i*10/n), Key: schema.StringKey(fmt.Sprint("k", i%(n/10)))}
			}, func(i int) int { return max(-1, i-n/10) })(n)
		},
		"one chain": chained(block, func(i int) int { return i - 1 }),
	}
}

// BenchmarkApply carries out each shape from nothing until all jobs have
// succeeded, then plans again, as `fray apply` does with a directory. What it
// reports is fray's own cost of each resource: processor time without what the
// world spent.
func BenchmarkApply(b *testing.B) {
	all := shapes()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, n := range []int{1_000, 5_000, 20_000, 50_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				var spent time.Duration
				steps, saves, began := 0, 0, processorTime(b)
				for b.Loop() {
					w := &swift{ends: true, fast: true}
					_, took := applyAll(b, w, all[name](n))
					steps += took
					spent, saves = spent+w.spent, saves+w.saves
				}
				each := float64(b.N * n)
				b.ReportMetric(float64((processorTime(b)-began-spent).Microseconds())/each, "µs/job")
				b.ReportMetric(float64(spent.Microseconds())/each, "µs-world/job")
				b.ReportMetric(float64(steps)/each, "steps/job")
				b.ReportMetric(float64(saves)/b.Elapsed().Seconds(), "saves/s")
				var mem runtime.MemStats
				runtime.ReadMemStats(&mem)
				b.ReportMetric(float64(mem.Sys>>20), "MB")
			})
		}
	}
}

// processorTime is what this process has used; waiting costs nothing.
func processorTime(tb testing.TB) time.Duration {
	tb.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkQuietStep looks at 10,000 running tasks with nothing to do, and
// writes nothing.
func BenchmarkQuietStep(b *testing.B) {
	w := &swift{}
	s, _ := applyAll(b, w, shapes()["one for_each"](10_000))
	if err := s.Save(b.Context()); err != nil {
		b.Fatal(err)
	}
	written := w.last
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Step(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if w.last != written {
		b.Errorf("%d writes, want none", w.last-written)
	}
}

// applyAll steps until nothing is left to do and says how many steps it took.
func applyAll(tb testing.TB, w *swift, desired schema.Desired) (*apply.Stepper, int) {
	tb.Helper()
	ctx := tb.Context()
	s, err := apply.New(ctx, apply.Config{
		Store: w, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderLocal: swiftProvider{w}},
		Epoch: 1, Valid: func() error { return nil }, Scope: apply.Scope{All: true}, Eager: true,
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := s.Accept(ctx, apply.Accept(s.Document(), apply.Request{Desired: desired})); err != nil {
		tb.Fatal(err)
	}
	for steps := 1; ; steps++ {
		next, err := s.Step(ctx)
		if err != nil {
			tb.Fatal(err)
		}
		if p := s.Last(); s.Idle() && len(p.Actions) == 0 && len(p.Pending) == 0 {
			return s, steps
		}
		s.Wait(ctx, next)
	}
}
