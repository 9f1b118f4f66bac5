package schema

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclwrite"
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
			var config *Config
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

func evaluate(s *Source) (*Config, error) {
	config, diags := s.Evaluate(Options{})
	if diags.HasErrors() {
		return nil, diags
	}
	return config, nil
}

// BenchmarkFormat formats what is as it is to be, and what is not; the baseline
// is hclwrite.Format alone, without a look at whether the source parses.
func BenchmarkFormat(b *testing.B) {
	canonical := bytes.Repeat([]byte(`job "train" {
  # one for each shard
  count   = 3
  command = ["python", "-m", "train", "--worker=${count.index}", "--lr=1e-4"]
  resources {
    tpu    = "v5litepod-16" # sixteen chips
    slices = var.wide ? 2 : 1
  }
  environment {
    env = { SHARD = count.index, NAME = upper(local.name) }
  }
}

`), 400)
	unformatted := []byte(strings.NewReplacer(" = ", "=", "  ", " ").Replace(string(canonical)))
	for _, c := range []struct {
		name string
		do   func()
	}{
		{"canonical", func() { _, _ = Format(canonical, "x.hcl") }},
		{"unformatted", func() { _, _ = Format(unformatted, "x.hcl") }},
		{"baseline", func() { _ = hclwrite.Format(unformatted) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(canonical)))
			for b.Loop() {
				c.do()
			}
		})
	}
}
