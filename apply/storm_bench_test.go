package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// far is a swift world whose store is far away, once it is. What hosts report is there at once, as by their streams.
type far struct {
	*swift
	isFar bool
}

func (f *far) wait(d time.Duration) {
	if f.isFar {
		time.Sleep(d)
	}
}

func (f *far) Get(ctx context.Context, key string) (store.Object, error) {
	if !strings.HasPrefix(key, store.HostsPrefix) && !strings.HasPrefix(key, store.AssignPrefix) {
		f.wait(40 * time.Millisecond)
	}
	return f.swift.Get(ctx, key)
}

func (f *far) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	f.wait(80 * time.Millisecond)
	return f.swift.Put(ctx, key, data, want)
}

func (f *far) Delete(ctx context.Context, key string) error {
	f.wait(80 * time.Millisecond)
	return f.swift.Delete(ctx, key)
}

// loseAll has all slices be lost to others.
func (f *far) loseAll() {
	defer f.lock()()
	for _, name := range f.slices.keys() {
		st := f.slices.values[name]
		st.Phase, st.Reason, st.Cause = schema.SliceDead, "preempted", schema.ErrorPreempted
		f.slices.put(name, st)
	}
}

// BenchmarkStorm has all slices of a stack preempted at once, in a bucket: how long its steps are, and how
// long it takes until all jobs run again.
func BenchmarkStorm(b *testing.B) {
	for _, n := range []int{500, 2500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				storms(b, n)
			}
		})
	}
}

func storms(b *testing.B, n int) {
	b.Helper()
	w := &far{swift: &swift{}}
	desired := shapes()["one for_each"](n)
	for i := range desired.Jobs {
		desired.Jobs[i].Retries = schema.Retries{Failure: schema.Unlimited, Preemption: schema.Unlimited}
	}
	ctx := b.Context()
	var longest, looking, planning, save time.Duration
	s, err := apply.New(ctx, apply.Config{
		Store: w, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderLocal: swiftProvider{w.swift}},
		Epoch: 1, Valid: func() error { return nil }, Scope: apply.Scope{All: true}, Events: true, Eager: true,
		OnLook: func(t apply.Timing) {
			looking, planning, save = max(looking, t.Observe), max(planning, t.Plan), max(save, t.Save)
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Accept(ctx, apply.Accept(s.Document(), apply.Request{Desired: desired})); err != nil {
		b.Fatal(err)
	}
	steps := 0
	again := func(attempt int) (p99cpu time.Duration) {
		longest, looking, planning, save, steps = 0, 0, 0, 0, 0
		for {
			began, before, world := time.Now(), processorTime(b), w.spent
			next, err := s.Step(ctx)
			if err != nil {
				b.Fatal(err)
			}
			longest, p99cpu, steps = max(longest, time.Since(began)), max(p99cpu, processorTime(b)-before-(w.spent-world)), steps+1
			running := 0
			for _, j := range s.Document().Jobs {
				if j.Attempt == attempt && j.Status == schema.JobRunning {
					running++
				}
			}
			if running == n && s.Idle() {
				return p99cpu
			}
			s.Wait(ctx, next)
		}
	}
	again(1)
	if err := s.Save(ctx); err != nil {
		b.Fatal(err)
	}
	w.isFar = true
	w.loseAll()
	began := time.Now()
	cpu := again(2)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(time.Since(began).Seconds(), "s-all-again")
	b.ReportMetric(float64(longest.Milliseconds()), "ms-longest-step")
	b.ReportMetric(float64(looking.Milliseconds()), "ms-longest-look")
	b.ReportMetric(float64(planning.Milliseconds()), "ms-longest-plan")
	b.ReportMetric(float64(save.Milliseconds()), "ms-longest-save-awaited")
	b.ReportMetric(float64(cpu.Milliseconds()), "ms-cpu-most")
	b.ReportMetric(float64(steps), "steps")
}
