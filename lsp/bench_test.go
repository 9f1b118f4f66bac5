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

// BenchmarkKeystroke types and deletes a character in 5,000 blocks, in one file and in 50: from
// the edit to the first diagnostics of its version, and from the request to the answer of a
// completion. A newline at the top moves all blocks behind it, all blocks refer to the shared
// variable, and without a pause each edit comes while the one before makes everything be checked.
func BenchmarkKeystroke(b *testing.B) {
	defer CollectLess()()
	for _, stack := range []struct {
		files int
		pause time.Duration
	}{{1, 300 * time.Millisecond}, {50, 300 * time.Millisecond}, {1, time.Millisecond}} {
		b.Run(fmt.Sprintf("files=%d/pause=%v", stack.files, stack.pause), func(b *testing.B) {
			e := newEditorPausing(b, largeStack(benchBlocks, stack.files), stack.pause)
			middle := fmt.Sprintf("f%02d.hcl", stack.files/2)
			for _, name := range slices.Compact([]string{"f00.hcl", middle}) {
				e.open(name)
				e.diagnostics(name, none)
			}
			job := fmt.Sprintf("--worker=%d", benchBlocks/2+10)
			for _, kind := range []keystroke{
				{"character", middle, job + `"`, job + `x"`, none},
				{"newline", middle, job + `",`, job + "\",\n", none},
				{"wrong", middle, job + `", "--input=${var.corpus}`, job + `", "--input=${var.corpusx}`, saying("Reference to nothing")},
				{"broken", middle, job + `",`, job + `,`, some},
				{"top", "f00.hcl", `variable "corpus" {`, "variable \"corpus\" {\n", none},
				{"shared", "f00.hcl", `gs://corpus"`, `gs://corpusx"`, none},
				{"renamed", "f00.hcl", `variable "corpus"`, `variable "corpusx"`, some},
			} {
				b.Run(kind.name, func(b *testing.B) { e.b(b).keystrokes(b, kind, job) })
			}
		})
	}
}

// keystroke is an edit of a file, which is made and undone, and what it is answered with.
type keystroke struct {
	name, file string
	old, anew  string
	again      func([]diagnostic) bool
}

func some(diags []diagnostic) bool { return len(diags) > 0 }

// b is the editor in a benchmark of the one that made it.
func (e *editor) b(b *testing.B) *editor {
	in := *e
	in.t = b
	return &in
}

func (e *editor) keystrokes(b *testing.B, kind keystroke, completed string) {
	b.Helper()
	var edits, completions []time.Duration
	began := cpuTime(b)
	for b.Loop() {
		for i, texts := range [][2]string{{kind.old, kind.anew}, {kind.anew, kind.old}} {
			start := time.Now()
			e.replace(kind.file, texts[0], texts[1])
			e.diagnostics(kind.file, []func([]diagnostic) bool{kind.again, none}[i])
			edits = append(edits, time.Since(start))
			if strings.Contains(e.texts[kind.file], completed) {
				start = time.Now()
				var list completionList
				e.call("textDocument/completion", e.at(kind.file, completed), &list)
				completions = append(completions, time.Since(start))
			}
		}
	}
	b.ReportMetric(float64((cpuTime(b)-began).Microseconds())/1000/float64(len(edits)), "cpu-ms/edit")
	report(b, "edit", edits)
	report(b, "complete", completions)
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
	b.Helper()
	if len(took) == 0 {
		return
	}
	slices.Sort(took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(ms(took[len(took)/2]), what+"-p50-ms")
	b.ReportMetric(ms(took[len(took)*95/100]), what+"-p95-ms")
	b.ReportMetric(ms(took[len(took)-1]), what+"-max-ms")
}
