package actorrpc_test

import (
	"testing"

	"github.com/fray-ml/fray/actorrpc"
	"github.com/fray-ml/fray/actorrpc/host"
)

// BenchmarkStream is a stream of 10,000 small items.
func BenchmarkStream(b *testing.B) {
	const items = 10_000
	_, h := fed(b, host.Config{}, "")
	for b.Loop() {
		n := 0
		for _, err := range actorrpc.Stream[int](b.Context(), h, "count", items) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != items {
			b.Fatalf("%d items came", n)
		}
	}
	b.ReportMetric(float64(b.N)*items/b.Elapsed().Seconds(), "items/s")
}
