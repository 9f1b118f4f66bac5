package main

import (
	"fmt"
	"testing"

	"github.com/fray-ml/fray/state/store"
)

func measureInDir(tb testing.TB, load metadataLoad) metadataSpeed {
	tb.Helper()
	s, err := store.OpenDir(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	speed, err := measureMetadata(tb.Context(), s, load)
	if err != nil {
		tb.Fatal(err)
	}
	return speed
}

// The measurement itself, small.
func TestMetadataIsMeasured(t *testing.T) {
	got := measureInDir(t, metadataLoad{Actors: 20, Callers: 4, Lookups: 200, Watchers: 10, Changes: 3})
	if got.LookupsPerSecond <= 0 || got.LookupP99 <= 0 || got.Change <= 0 {
		t.Errorf("got %+v, want all of it measured", got)
	}
}

// BenchmarkLookups is how many lookups a second 64 callers get; the aim is 10,000.
func BenchmarkLookups(b *testing.B) {
	for _, actors := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("actors=%d", actors), func(b *testing.B) {
			speed := measureInDir(b, metadataLoad{Actors: actors, Callers: 64, Lookups: max(b.N, 1)})
			b.ReportMetric(speed.LookupsPerSecond, "lookups/s")
			b.ReportMetric(float64(speed.LookupP99.Microseconds()), "p99-µs")
		})
	}
}

// BenchmarkWatchers is how long 1,000 watchers take to be notified of one change.
func BenchmarkWatchers(b *testing.B) {
	speed := measureInDir(b, metadataLoad{Actors: 100, Watchers: 1000, Changes: max(b.N, 1)})
	b.ReportMetric(float64(speed.Change.Microseconds()), "µs/change")
}
