package lsp

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// BenchmarkKeystrokeWhileChecking types into 5,000 blocks while all of them are checked, each key at another
// moment of the check, with a server in a process of its own over its standard streams, on one core and on two.
// What the server computes until it has answered, cpu, is what an edit takes on a machine with one core that
// nothing else uses: another measure than the clock where the machine is busy.
func BenchmarkKeystrokeWhileChecking(b *testing.B) {
	for _, cores := range []int{1, 2} {
		b.Run(fmt.Sprintf("cores=%d", cores), func(b *testing.B) {
			p := startProcess(b, largeStack(benchBlocks, 1), 100*time.Millisecond, cores)
			p.open("f00.hcl")
			p.diagnostics("f00.hcl", none)
			whole := p.check()
			job := fmt.Sprintf("--worker=%d", benchBlocks/2+10)
			for _, kind := range []keystroke{
				{"character", "f00.hcl", job + `"`, job + `x"`, none},
				{"top", "f00.hcl", `variable "corpus" {`, "variable \"corpus\" {\n", none},
				{"shared", "f00.hcl", `gs://corpus"`, `gs://corpusx"`, none},
			} {
				b.Run(kind.name, func(b *testing.B) { p.b(b).duringChecks(b, p, kind, whole) })
			}
		})
	}
}

// targetMillis is what a keystroke in 5,000 blocks may take.
const targetMillis = 50

// check is how much the server computes after an edit, all in all.
func (p *process) check() time.Duration {
	before := p.cpu()
	p.replace("f00.hcl", `variable "corpus" {`, "variable \"corpus\" {\n")
	p.diagnostics("f00.hcl", none)
	p.replace("f00.hcl", "variable \"corpus\" {\n", `variable "corpus" {`)
	p.diagnostics("f00.hcl", none)
	return p.worked(time.Hour) - before
}

// worked waits until the server has computed for some time from now, or has nothing to do any more. It returns
// what the server has used.
func (p *process) worked(most time.Duration) time.Duration {
	const (
		turn  = 2 * time.Millisecond
		turns = 100 // without work, longer than the pause: it has nothing to do
	)
	last, idle := p.cpu(), 0
	for until := last + most; last < until && idle < turns; {
		time.Sleep(turn)
		now := p.cpu()
		if idle++; now != last {
			idle = 0
		}
		last = now
	}
	return last
}

func (e *editor) duringChecks(b *testing.B, p *process, kind keystroke, whole time.Duration) {
	b.Helper()
	var took, used []time.Duration
	texts := []string{kind.old, kind.anew}
	for i := range b.N {
		p.worked(whole * time.Duration(i) / time.Duration(b.N))
		start, before := time.Now(), p.cpu()
		e.replace(kind.file, texts[0], texts[1])
		e.diagnostics(kind.file, none)
		took, used = append(took, time.Since(start)), append(used, p.answered(e.versions[kind.file])-before)
		slices.Reverse(texts)
	}
	if texts[0] == kind.anew {
		e.replace(kind.file, texts[0], texts[1])
		e.diagnostics(kind.file, none)
	}
	report(b, "edit", took)
	report(b, "cpu", used)
	b.ReportMetric(targetMillis, "target-max-ms")
}
