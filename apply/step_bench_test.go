package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// documents is a world whose store keeps documents as they are: what is left of a save is
// what a step does for it.
type documents struct{ *swift }

func (d documents) PutDocument(_ context.Context, _ *state.Document, want store.Generation) (store.Generation, error) {
	defer d.lock()()
	if want != store.Any && d.objects.values[store.StateKey].Generation != want {
		return 0, store.ErrConflict
	}
	d.saves++
	return d.write(store.StateKey, nil), nil
}

// beatSome has every share-th host report that nothing has changed.
func (w *swift) beatSome(tb testing.TB, first, share int) {
	tb.Helper()
	defer w.lock()()
	names := w.slices.keys()
	for i := first; i < len(names); i += share {
		w.rewrite(tb, names[i], func(r *state.HostReport) {
			r.Seq++
			r.At = r.At.Add(2 * time.Second)
		})
	}
}

// failSome has the tasks of n slices fail, from the first on.
func (w *swift) failSome(tb testing.TB, first, n int) {
	tb.Helper()
	defer w.lock()()
	names := w.slices.keys()
	for i := range n {
		w.rewrite(tb, names[(first+i)%len(names)], func(r *state.HostReport) {
			r.Seq++
			if r.Task != nil {
				task := *r.Task
				task.State, r.Task = schema.TaskFailed, &task
			}
		})
	}
}

func (w *swift) rewrite(tb testing.TB, slice string, change func(r *state.HostReport)) {
	tb.Helper()
	var r state.HostReport
	if err := json.Unmarshal(w.objects.values[store.HostKey(slice, 0)].Data, &r); err != nil {
		tb.Fatal(err)
	}
	change(&r)
	if err := w.report(r); err != nil {
		tb.Fatal(err)
	}
}

// running steps a stack of n tasks that run.
func running(tb testing.TB, n int) (*swift, *apply.Stepper) {
	tb.Helper()
	w := &swift{fast: true}
	desired := shapes()["one for_each"](n)
	for i := range desired.Jobs {
		desired.Jobs[i].Retries.Failure = -1
	}
	ctx := tb.Context()
	s, err := apply.New(ctx, apply.Config{
		Store: documents{w}, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderLocal: swiftProvider{w}},
		Epoch: 1, Valid: func() error { return nil }, Scope: apply.Scope{All: true}, Events: true,
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := s.Accept(ctx, apply.Accept(s.Document(), apply.Request{Desired: desired})); err != nil {
		tb.Fatal(err)
	}
	for {
		next, err := s.Step(ctx)
		if err != nil {
			tb.Fatal(err)
		}
		if p := s.Last(); s.Idle() && len(p.Actions)+len(p.Pending) == 0 {
			if err := s.Save(ctx); err != nil {
				tb.Fatal(err)
			}
			return w, s
		}
		s.Wait(ctx, next)
	}
}

// BenchmarkStep is the processor time of a step, without what the world spends, over tasks
// that run: with nothing new; with heartbeats of an eighth of the hosts, as agents report
// every two seconds and the loop steps four times a second; with 25 failed tasks in each
// step beside them, which are started again; and with these alone, as where heartbeats come by
// streams. Garbage, the world's too, is collected between
// steps, once there is as much of it as lives, and its cost is told apart.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 25_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkSteps(b, n) })
	}
}

func benchmarkSteps(b *testing.B, n int) {
	b.Helper()
	w, s := running(b, n)
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	b.Logf("%d tasks: %d bytes a task in the heap, with the world's", n, mem.HeapAlloc/uint64(n))
	for _, situation := range []struct {
		name string
		stir func(round int)
	}{
		{"quiet", func(int) {}},
		{"heartbeats", func(round int) { w.beatSome(b, round%8, 8) }},
		{"100 changes a second", func(round int) {
			w.beatSome(b, round%8, 8)
			w.failSome(b, 25*round, 25)
		}},
		{"changes alone", func(round int) { w.failSome(b, 25*round, 25) }},
	} {
		b.Run(situation.name, func(b *testing.B) {
			const rounds = 120
			spent := make([]time.Duration, 0, rounds)
			var sum time.Duration
			collections := collectBetween(b)
			for round := range rounds {
				situation.stir(round)
				collections.collect()
				before, began := w.spent, processorTime(b)
				next, err := s.Step(b.Context())
				if err != nil {
					b.Fatal(err)
				}
				took := processorTime(b) - began - (w.spent - before)
				spent, sum = append(spent, took), sum+took
				if len(s.Last().Actions) > 0 || !s.Idle() {
					s.Wait(b.Context(), min(next, time.Millisecond))
				}
			}
			slices.Sort(spent)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(sum.Microseconds())/1000/rounds, "ms-cpu/step")
			b.ReportMetric(float64(spent[len(spent)*99/100].Microseconds())/1000, "ms-cpu-p99")
			b.ReportMetric(float64(collections.spent.Microseconds())/1000/rounds, "ms-cpu-gc/step")
			b.ReportMetric(float64(collections.garbage>>20)/rounds, "MB-garbage/step")
		})
	}
}

// collections are of garbage, at times that a benchmark chooses.
type collections struct {
	b       *testing.B
	lives   uint64
	began   uint64 // bytes that were allocated by then
	spent   time.Duration
	garbage uint64
}

func collectBetween(b *testing.B) *collections {
	b.Helper()
	usual := debug.SetGCPercent(-1)
	b.Cleanup(func() { debug.SetGCPercent(usual) })
	c := &collections{b: b}
	c.now()
	c.spent = 0
	return c
}

// collect collects garbage once there is as much of it as lives.
func (c *collections) collect() {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	c.garbage = mem.TotalAlloc - c.began
	if mem.HeapAlloc >= 2*c.lives {
		c.now()
	}
}

func (c *collections) now() {
	began := processorTime(c.b)
	runtime.GC()
	c.spent += processorTime(c.b) - began
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	c.lives = mem.HeapAlloc
	if c.began == 0 {
		c.began = mem.TotalAlloc
	}
}
