package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/threadtime"
)

// fleet is a cloud of slices of eight hosts, which report by streams, beside a bucket.
type fleet struct {
	*far

	mu      sync.Mutex
	next    []apply.LiveHost
	seq     uint64
	there   map[string]bool // slices whose hosts report
	created int
	ago     time.Duration // the time of the stack is behind by that
}

const (
	fleetHosts = 8
	// fleetAge is for how long slices have run that are lost: that young ones die would count against
	// their zone.
	fleetAge = time.Hour
)

func (f *fleet) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	f.wait(80 * time.Millisecond)
	defer f.lock()()
	if want != store.Any && f.objects.values[key].Generation != want {
		return 0, store.ErrConflict
	}
	return f.write(key, data), nil
}

// Take returns what hosts have reported by streams.
func (f *fleet) Take(time.Duration) []apply.LiveHost {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.next
	f.next = nil
	return next
}

// Assigned has the hosts of a slice run what they are to.
func (f *fleet) Assigned(slice string, _ state.Generation, data []byte) {
	var a state.Assignment
	if data == nil || json.Unmarshal(data, &a) != nil {
		return
	}
	var task *state.TaskReport
	if a.Run != nil {
		task = &state.TaskReport{Job: a.Run.Job, Attempt: a.Run.Attempt, Generation: a.Generation, State: schema.TaskRunning, Started: true}
		if a.Run.Job == finishedJob(0) {
			task.State = schema.TaskSucceeded
		}
	}
	f.report(slice, state.HostReport{Generation: a.Generation, Epoch: a.Epoch, Task: task})
}

// Unassigned is nothing that hosts hear of.
func (*fleet) Unassigned(string) {}

// report has all hosts of a slice report.
func (f *fleet) report(slice string, r state.HostReport) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.there[slice] {
		return
	}
	f.seq++
	for n := range fleetHosts {
		of := r
		of.Slice, of.Host, of.Boot, of.Seq = slice, n, fmt.Sprintf("b%d", f.seq), f.seq
		of.Address, of.CoordinatorPort, of.MegascalePort = fmt.Sprint("10.0.0.", n), 1, 2
		f.next = append(f.next, apply.LiveHost{Slice: slice, Host: n, Report: &of, Live: true, Seq: f.seq})
	}
}

// vanish has all slices be gone at once, and the streams of their hosts end.
func (f *fleet) vanish() {
	unlock := f.lock()
	names := slices.Clone(f.slices.keys())
	f.slices = orderedMap[schema.SliceStatus]{}
	unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.created, f.ago = 0, 0
	for _, name := range names {
		delete(f.there, name)
		for n := range fleetHosts {
			f.next = append(f.next, apply.LiveHost{Slice: name, Host: n})
		}
	}
}

// fleetProvider is the provider's side.
type fleetProvider struct{ *fleet }

func (p fleetProvider) Inventory(ctx context.Context, stack string) (schema.Inventory, error) {
	return swiftProvider{p.swift}.Inventory(ctx, stack)
}

func (p fleetProvider) Get(ctx context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	return swiftProvider{p.swift}.Get(ctx, spec)
}

func (p fleetProvider) Create(_ context.Context, spec schema.SliceSpec) error {
	unlock := p.lock()
	p.slices.put(spec.Name, schema.SliceStatus{Spec: spec, Phase: schema.SliceReady})
	unlock()
	p.fleet.mu.Lock()
	p.there[spec.Name] = true
	p.created++
	p.fleet.mu.Unlock()
	p.report(spec.Name, state.HostReport{})
	return nil
}

func (p fleetProvider) Delete(ctx context.Context, spec schema.SliceSpec) error {
	return swiftProvider{p.swift}.Delete(ctx, spec)
}

func finishedJob(n int) schema.Address {
	return schema.Address{Kind: schema.KindJob, Name: "finished", Key: schema.IntKey(n)}
}

// fleetJob is a gang of a slice.
func fleetJob(addr schema.Address) schema.Job {
	return schema.Job{
		Addr: addr, Namespace: "work", Command: []schema.Text{schema.Plain("true")},
		Resources: schema.Resources{Provider: schema.ProviderGCP, TPU: "v5litepod-32", Slices: 1, Preemptible: true},
		Retries:   schema.Retries{Preemption: schema.Unlimited, Failure: schema.Unlimited},
	}
}

// fleetOf is a stack of n gangs that run, with three times as many that have finished.
func fleetOf(tb testing.TB, n int, looked func(apply.Timing)) (*fleet, *apply.Stepper) {
	tb.Helper()
	f := &fleet{far: &far{swift: &swift{}}, there: map[string]bool{}, ago: fleetAge}
	ctx := tb.Context()
	s, err := apply.New(ctx, apply.Config{
		Store: f, Live: f, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderGCP: fleetProvider{f}},
		Epoch: 1, Valid: func() error { return nil }, Scope: apply.Scope{All: true}, Events: true, Eager: true, OnLook: looked,
		Now: func() time.Time {
			f.mu.Lock()
			defer f.mu.Unlock()
			return time.Now().Add(-f.ago)
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	desired := schema.Desired{
		Providers: []schema.Provider{{Name: schema.ProviderGCP, Project: "bench", Zones: []string{"us-west4-a"}}},
		Jobs:      []schema.Job{fleetJob(finishedJob(0))},
	}
	for i := range n {
		desired.Jobs = append(desired.Jobs, fleetJob(schema.Address{Kind: schema.KindJob, Name: "work", Key: schema.IntKey(i)}))
	}
	accept := func(doc *state.Document) {
		if err := s.Accept(ctx, doc); err != nil {
			tb.Fatal(err)
		}
		for {
			next, err := s.Step(ctx)
			if err != nil {
				tb.Fatal(err)
			}
			if p := s.Last(); s.Idle() && len(p.Actions)+len(p.Pending) == 0 {
				break
			}
			s.Wait(ctx, next)
		}
		if err := s.Save(ctx); err != nil {
			tb.Fatal(err)
		}
	}
	accept(apply.Accept(s.Document(), apply.Request{Desired: desired}))
	doc := s.Document()
	next, of := doc.Clone(), doc.Jobs[finishedJob(0)]
	for i := 1; i < 3*n; i++ {
		j, spec := *of, *of.Spec
		spec.Addr = finishedJob(i)
		j.ID, j.Spec = fmt.Sprintf("%s-%d", of.ID, i), &spec
		next.Jobs[spec.Addr] = &j
		next.Desired.Jobs = append(next.Desired.Jobs, fleetJob(spec.Addr))
	}
	slices.SortFunc(next.Desired.Jobs, func(a, b schema.Job) int { return a.Addr.Compare(b.Addr) })
	accept(next)
	return f, s
}

// firstSteps find out what is lost: they decide about all jobs.
const firstSteps = 2

// BenchmarkVanish has all slices of a stack of gangs in the cloud be gone at once, and the hosts
// with them: what the longest of the steps costs until all are asked for again, and until all run.
// A step's cost is the processor time of its thread; what goes on beside it is told apart.
func BenchmarkVanish(b *testing.B) {
	for _, n := range []int{375, 1250, 3125} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { vanishes(b, n) })
	}
}

func vanishes(b *testing.B, n int) {
	b.Helper()
	var look, longest apply.Timing
	f, s := fleetOf(b, n, func(t apply.Timing) { look = t })
	ctx := b.Context()
	f.isFar = true
	began, before := time.Now(), processorTime(b)
	f.vanish()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var most, later, all, mostWall, asked time.Duration
	steps := 0
	for running := 0; running < n; {
		wall, used := time.Now(), threadtime.Used()
		next, err := s.Step(ctx)
		if err != nil {
			b.Fatal(err)
		}
		cpu, took := threadtime.Used()-used, time.Since(wall)
		steps, all = steps+1, all+cpu
		mostWall = max(mostWall, took)
		if cpu > most {
			most, longest = cpu, look
		}
		if steps > firstSteps {
			later = max(later, cpu)
		}
		if asked == 0 && f.asked() >= n {
			asked = time.Since(began)
		}
		running = 0
		for _, j := range s.Document().Jobs {
			if j.Attempt == 2 && j.Status == schema.JobRunning {
				running++
			}
			if j.Failures > 0 || j.Preemptions > 1 {
				b.Fatalf("%s has failed %d times and was preempted %d times, want 0 and at most 1", j.Spec.Addr, j.Failures, j.Preemptions)
			}
		}
		s.Wait(ctx, next)
	}
	if got := f.asked(); got != n {
		b.Errorf("%d slices were asked for, want %d", got, n)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(most.Microseconds())/1000, "ms-cpu-most")
	b.ReportMetric(float64(later.Microseconds())/1000, "ms-cpu-most-later")
	b.ReportMetric(float64(all.Microseconds())/1000/float64(steps), "ms-cpu/step")
	b.ReportMetric(float64(mostWall.Microseconds())/1000, "ms-wall-most")
	b.ReportMetric(float64(longest.Observe.Microseconds())/1000, "ms-observe")
	b.ReportMetric(float64(longest.Plan.Microseconds())/1000, "ms-plan")
	b.ReportMetric(float64(longest.Save.Microseconds())/1000, "ms-save")
	b.ReportMetric(float64(all.Milliseconds())/1000, "s-cpu-steps")
	b.ReportMetric(float64((processorTime(b)-before).Milliseconds())/1000, "s-cpu-all")
	b.ReportMetric(asked.Seconds(), "s-all-asked")
	b.ReportMetric(time.Since(began).Seconds(), "s-all-run")
	b.ReportMetric(float64(steps), "steps")
}

func (f *fleet) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.created
}
