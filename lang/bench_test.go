package lang

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/schema"
)

// BenchmarkEvaluateCount evaluates one job of n instances whose command and
// environment differ, and reports time and live memory for each instance; the
// smaller number is the baseline of the larger.
func BenchmarkEvaluateCount(b *testing.B) {
	baseline := 0.0
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := parseText(b, fmt.Sprintf(`
				variable "corpus" { default = "gs://corpus" }
				locals { args = [for i in range(8) : "--flag-${i}"] }
				job "shard" {
					count   = %d
					command = ["python", "-m", "shard", "--worker=${count.index}", "--input=${var.corpus}/part-${format("%%06d", count.index)}"]
					args    = local.args
					resources {
						cpu    = 2
						memory = "4g"
						ports  = ["http"]
					}
					environment {
						env = { SHARD = count.index, CORPUS = var.corpus }
					}
					health_check {
						http = "/healthz"
					}
					labels = { team = "data" }
				}`, n))
			var config *schema.Config
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			for b.Loop() {
				var diags error
				config, diags = evaluate(s)
				if diags != nil {
					b.Fatal(diags)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			if len(config.Desired.Jobs) != n {
				b.Fatalf("%d jobs, want %d", len(config.Desired.Jobs), n)
			}
			each := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / float64(n)
			if baseline == 0 {
				baseline = each
			}
			b.ReportMetric(each, "ns/instance")
			b.ReportMetric(each/baseline, "x-first")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "live-B/instance")
			runtime.KeepAlive(config)
		})
	}
}

func evaluate(s *Source) (*schema.Config, error) {
	config, diags := s.Evaluate(eval.Options{})
	if diags.HasErrors() {
		return nil, diags
	}
	return config, nil
}
