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

// BenchmarkSave saves a state of 100,000 jobs of which ten have changed, as entries of its
// journal; and, as the baseline, the same state whole. What it reports is the processor time of
// the saving thread and the bytes that the save writes; and both with the snapshots that are written in the background.
func BenchmarkSave(b *testing.B) {
	const n = 100_000
	w := &swift{fast: true}
	s, err := apply.New(b.Context(), apply.Config{Store: w, Epoch: 1, Valid: func() error { return nil }})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Accept(b.Context(), runningDocument(s.Document(), shapes()["one for_each"](n))); err != nil {
		b.Fatal(err)
	}
	addrs := make([]schema.Address, 0, n)
	for addr := range s.Document().Jobs {
		addrs = append(addrs, addr)
	}
	changed := func(i int) *state.Document {
		next := s.Document().Clone()
		for k := range 10 {
			addr := addrs[(10*i+k)%n]
			j := *next.Jobs[addr]
			j.Reason = "changed"
			next.Jobs[addr] = &j
		}
		return next
	}
	b.Run("whole", func(b *testing.B) {
		before, spent, size := processorTime(b), time.Duration(0), 0
		for i := 0; b.Loop(); i++ {
			next := changed(i)
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
	})
	b.Run("journal", func(b *testing.B) {
		before, spent, most := processorTime(b), time.Duration(0), time.Duration(0)
		w.written, w.snapshots = 0, 0
		for i := 0; b.Loop(); i++ {
			next := changed(i)
			runtime.LockOSThread()
			began := threadtime.Used()
			err := s.Accept(b.Context(), next)
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
		b.ReportMetric(float64(w.written)/float64(b.N), "bytes/save")
		b.ReportMetric(float64(w.snapshots)/float64(b.N), "snapshot-bytes/save")
	})
	b.Run("load", func(b *testing.B) {
		for i := range 20 { // entries of the tail
			if err := s.Accept(b.Context(), changed(i)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportAllocs()
		before := processorTime(b)
		for b.Loop() {
			if _, _, err := apply.LoadState(b.Context(), w); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "ms-process/load")
	})
	b.Run("load of the snapshot", func(b *testing.B) {
		before := processorTime(b)
		for b.Loop() {
			if _, err := state.Decode(w.objects.values[store.StateKey].Data); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "ms-process/load")
	})
}
