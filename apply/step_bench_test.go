package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
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
	if w.streams.open {
		r = *w.streams.last[slice]
	}
	change(&r)
	if err := w.report(r); err != nil {
		tb.Fatal(err)
	}
}

// hostStreams are those of the hosts of a swift world.
type hostStreams struct {
	w       *swift
	open    bool
	last    map[string]*state.HostReport // by slice
	changed []apply.LiveHost
}

// connect has all hosts report by streams from now on.
func (s *hostStreams) connect(tb testing.TB) {
	tb.Helper()
	defer s.w.lock()()
	s.open, s.last = true, map[string]*state.HostReport{}
	for _, slice := range s.w.slices.keys() {
		var r state.HostReport
		if err := json.Unmarshal(s.w.objects.values[store.HostKey(slice, 0)].Data, &r); err != nil {
			tb.Fatal(err)
		}
		r.Seq++
		if err := s.w.report(r); err != nil {
			tb.Fatal(err)
		}
	}
}

// Take implements [apply.Live].
func (s *hostStreams) Take(time.Duration) []apply.LiveHost {
	defer s.w.lock()()
	changed := s.changed
	s.changed = nil
	for i := range changed {
		s.last[changed[i].Slice] = changed[i].Report
	}
	return changed
}

// Assigned implements [apply.Live].
func (*hostStreams) Assigned(string, state.Generation, []byte) {}

// Unassigned implements [apply.Live].
func (*hostStreams) Unassigned(string) {}

var _ apply.Live = (*hostStreams)(nil)

// clock is that of the world until it stands still: then a quarter of a second passes at a time, as
// between two steps of a quiet stack.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time {
	if at := c.at.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Now()
}

func (c *clock) pass() { c.at.Store(c.now().Add(250 * time.Millisecond).UnixNano()) }

// running steps a stack of n tasks that run.
func running(tb testing.TB, n int) (*swift, *apply.Stepper, *clock) {
	tb.Helper()
	w, c := &swift{fast: true}, &clock{}
	w.streams = &hostStreams{w: w}
	desired := shapes()["one for_each"](n)
	for i := range desired.Jobs {
		desired.Jobs[i].Retries.Failure = -1
	}
	ctx := tb.Context()
	s, err := apply.New(ctx, apply.Config{
		Store: documents{w}, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderLocal: swiftProvider{w}},
		Epoch: 1, Valid: func() error { return nil }, Scope: apply.Scope{All: true}, Events: true,
		Live: w.streams, Now: c.now, Patience: -1, // reads of the store are awaited
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
			return w, s, c
		}
		s.Wait(ctx, next)
	}
}

// BenchmarkStep is the processor time of a step, without what the world spends, over tasks
// that run: with nothing new; with heartbeats of an eighth of the hosts, as agents report
// every two seconds and the loop steps four times a second; with 25 failed tasks in each
// step beside them, which are started again; and with these alone, where all hosts report by
// streams. By the stepper's clock a quarter of a second passes between two steps, so that there is a
// save in every fourth and a check of some jobs in each. Garbage, the world's too, is collected between
// steps, once there is as much of it as lives, and its cost is told apart.
func BenchmarkStep(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 25_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkSteps(b, n) })
	}
}

func benchmarkSteps(b *testing.B, n int) {
	b.Helper()
	w, s, c := running(b, n)
	step := func() {
		c.pass()
		next, err := s.Step(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if len(s.Last().Actions) > 0 || !s.Idle() {
			s.Wait(b.Context(), min(next, time.Millisecond))
		}
	}
	for range 10 { // until all have been found to be steady
		step()
	}
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	b.Logf("%d tasks: %d bytes a task in the heap, with the world's", n, mem.HeapAlloc/uint64(n))
	for _, situation := range []struct {
		name string
		stir func(round int)
	}{
		{"quiet", func(round int) {
			if round == 60 { // before the hosts have been silent for too long
				w.beatSome(b, 0, 1)
			}
		}},
		{"heartbeats", func(round int) { w.beatSome(b, round%8, 8) }},
		{"100 changes a second", func(round int) {
			w.beatSome(b, round%8, 8)
			w.failSome(b, 25*round, 25)
		}},
		{"changes alone", func(round int) {
			if !w.streams.open {
				w.streams.connect(b)
				step()
			}
			w.failSome(b, 25*round, 25)
		}},
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
				step()
				took := processorTime(b) - began - (w.spent - before)
				spent, sum = append(spent, took), sum+took
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
