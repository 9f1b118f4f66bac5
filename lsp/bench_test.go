package lsp

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const benchBlocks = 5000

// largeStack is a configuration of some jobs in some files.
func largeStack(blocks, files int) map[string]string {
	texts := map[string]string{}
	for f := range files {
		var b strings.Builder
		if f == 0 {
			b.WriteString("variable \"corpus\" {\n  default = \"gs://corpus\"\n}\n")
		}
		for i := range blocks / files {
			n := f*blocks/files + i
			fmt.Fprintf(&b, `
job "shard%d" {
  command = ["python", "-m", "shard", "--worker=%d", "--input=${var.corpus}/part-${format("%%06d", %d)}"]
  resources {
    cpu    = 2
    memory = "4g"
    ports  = ["http"]
  }
  environment {
    env = { SHARD = "%d", CORPUS = var.corpus }
  }
  health_check {
    http = "/healthz"
  }
  labels = { team = "data" }
}
`, n, n, n, n)
		}
		texts[fmt.Sprintf("f%02d.hcl", f)] = b.String()
	}
	return texts
}

// BenchmarkKeystroke types and deletes a character in the middle of 5,000 blocks, in one file
// and in 50: from the edit to the diagnostics of its version, and from the request to the
// answer of a completion. A newline moves all blocks behind it.
func BenchmarkKeystroke(b *testing.B) {
	for _, files := range []int{1, 50} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			e := newEditorPausing(b, largeStack(benchBlocks, files), 300*time.Millisecond)
			name := fmt.Sprintf("f%02d.hcl", files/2)
			e.open(name)
			e.diagnostics(name, none)
			job := fmt.Sprintf("--worker=%d", benchBlocks/2+10)
			for _, kind := range []struct {
				name      string
				old, anew string
				again     func([]diagnostic) bool
			}{
				{"character", job + `"`, job + `x"`, none},
				{"newline", job + `",`, job + "\",\n", none},
				{"wrong", job + `", "--input=${var.corpus}`, job + `", "--input=${var.corpusx}`, saying("Reference to nothing")},
				{"broken", job + `",`, job + `,`, func(d []diagnostic) bool { return len(d) > 0 }},
			} {
				b.Run(kind.name, func(b *testing.B) {
					var edits, completions []time.Duration
					began := cpuTime(b)
					for b.Loop() {
						for i, texts := range [][2]string{{kind.old, kind.anew}, {kind.anew, kind.old}} {
							start := time.Now()
							e.replace(name, texts[0], texts[1])
							e.diagnostics(name, []func([]diagnostic) bool{kind.again, none}[i])
							edits = append(edits, time.Since(start))
							start = time.Now()
							var list completionList
							e.call("textDocument/completion", e.at(name, job), &list)
							completions = append(completions, time.Since(start))
						}
					}
					b.ReportMetric(float64((cpuTime(b)-began).Microseconds())/1000/float64(len(edits)), "cpu-ms/edit")
					report(b, "edit", edits)
					report(b, "complete", completions)
				})
			}
		})
	}
}

// cpuTime is what the process has used of all cores: it does not depend on what else runs.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func report(b *testing.B, what string, took []time.Duration) {
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), what+"-p50-ms")
	b.ReportMetric(ms(took[len(took)*95/100]), what+"-p95-ms")
	b.ReportMetric(ms(took[len(took)-1]), what+"-max-ms")
}
