package state_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/fray-ml/fray/state"
)

// BenchmarkLoad decodes documents of many tasks. What stays of one is in the heap afterwards;
// the peak of a process is about that and the text.
func BenchmarkLoad(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000} {
		data, err := state.Encode(large(b, n))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var kept state.Document
			before, began := heap(), processorTime(b)
			for b.Loop() {
				if kept, err = state.Decode(data); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-began).Microseconds())/1000/float64(b.N), "ms-cpu/op")
			b.ReportMetric(float64(heap()-before)/float64(n), "bytes-kept/task")
			b.ReportMetric(float64(len(data))/float64(n), "bytes-read/task")
			runtime.KeepAlive(kept)
		})
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

// heap is what is in use after a collection.
func heap() uint64 {
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return mem.HeapAlloc
}
