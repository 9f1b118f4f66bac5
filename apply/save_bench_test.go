package apply_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/threadtime"
)

// runningDocument is a document in which all desired jobs run, each on a slice of its own.
func runningDocument(was *state.Document, desired schema.Desired) *state.Document {
	doc := was.Clone()
	doc.Revision, doc.Desired = 1, desired
	for i := range desired.Jobs {
		spec := &desired.Jobs[i]
		slice := fmt.Sprintf("slice-%06d", i)
		at := time.Date(2026, 11, 21, 6, 30, 0, i, time.UTC)
		doc.Slices[slice] = &state.Slice{Spec: schema.SliceSpec{Name: slice, Owner: spec.Addr, Provider: schema.ProviderLocal, Hosts: 1}, PendingSince: at, Listed: true, UpAt: at}
		doc.Jobs[spec.Addr] = &state.Job{
			ID: fmt.Sprintf("job-%06d", i), Spec: spec, Status: schema.JobRunning, Ready: true, Slices: []string{slice}, Attempt: 1, AdmittedAt: at,
			Attempts: []state.Attempt{{Number: 1, Generation: int64(i), Why: "first", StartedAt: at, ReadyAt: at, Slices: []string{slice},
				Tasks: []state.Task{{Slice: slice, Address: "10.0.0.1", State: schema.TaskRunning, Started: true}}}},
		}
	}
	return doc
}

// saveBench is a stack with many jobs, of which ten change between two saves.
type saveBench struct {
	store   *swift
	stepper *apply.Stepper
	addrs   []schema.Address
}

func newSaveBench(b *testing.B, n int) *saveBench {
	b.Helper()
	w := &swift{fast: true}
	s, err := apply.New(b.Context(), apply.Config{Store: w, Epoch: 1, Valid: func() error { return nil }})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Accept(b.Context(), runningDocument(s.Document(), shapes()["one for_each"](n))); err != nil {
		b.Fatal(err)
	}
	k := &saveBench{store: w, stepper: s}
	for addr := range s.Document().Jobs {
		k.addrs = append(k.addrs, addr)
	}
	return k
}

// changed is the state with ten other jobs changed.
func (k *saveBench) changed(i int) *state.Document {
	next := k.stepper.Document().Clone()
	for n := range 10 {
		addr := k.addrs[(10*i+n)%len(k.addrs)]
		j := *next.Jobs[addr]
		j.Reason = "changed"
		next.Jobs[addr] = &j
	}
	return next
}

// BenchmarkSave saves a state of 100,000 jobs of which ten have changed, as entries of its
// journal; and, as the baseline, the same state whole. What it reports is the processor time of
// the saving thread and the bytes that the save writes; and both with the snapshots that are written in the background.
func BenchmarkSave(b *testing.B) {
	k := newSaveBench(b, 100_000)
	b.Run("whole", k.whole)
	b.Run("journal", k.journal)
	b.Run("load", k.load)
	b.Run("load of the snapshot", k.loadSnapshot)
}

func (k *saveBench) whole(b *testing.B) {
	before, spent, size := processorTime(b), time.Duration(0), 0
	for i := 0; b.Loop(); i++ {
		next := k.changed(i)
		began := processorTime(b)
		data, err := state.Encode(*next) // by several threads
		spent += processorTime(b) - began
		if err != nil {
			b.Fatal(err)
		}
		size += len(data)
	}
	b.ReportMetric(float64(spent.Microseconds())/1000/float64(b.N), "ms/save")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "ms-process/save")
	b.ReportMetric(float64(size)/float64(b.N), "bytes/save")
}

func (k *saveBench) journal(b *testing.B) {
	before, spent, most := processorTime(b), time.Duration(0), time.Duration(0)
	k.store.written, k.store.snapshots = 0, 0
	for i := 0; b.Loop(); i++ {
		next := k.changed(i)
		runtime.LockOSThread()
		began := threadtime.Used()
		err := k.stepper.Accept(b.Context(), next)
		took := threadtime.Used() - began
		runtime.UnlockOSThread()
		if err != nil {
			b.Fatal(err)
		}
		spent, most = spent+took, max(most, took)
	}
	b.ReportMetric(float64(spent.Microseconds())/1000/float64(b.N), "ms-thread/save")
	b.ReportMetric(float64(most.Microseconds())/1000, "ms-thread-most")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "ms-process/save")
	b.ReportMetric(float64(k.store.written)/float64(b.N), "bytes/save")
	b.ReportMetric(float64(k.store.snapshots)/float64(b.N), "snapshot-bytes/save")
}

func (k *saveBench) load(b *testing.B) {
	for i := range 20 { // entries of the tail
		if err := k.stepper.Accept(b.Context(), k.changed(i)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	before := processorTime(b)
	for b.Loop() {
		if _, _, err := apply.LoadState(b.Context(), k.store); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "ms-process/load")
}

func (k *saveBench) loadSnapshot(b *testing.B) {
	before := processorTime(b)
	for b.Loop() {
		if _, err := state.Decode(k.store.objects.values[store.StateKey].Data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "ms-process/load")
}
