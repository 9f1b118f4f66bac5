package apply_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/lang"
	"github.com/fray-ml/fray/lang/eval"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// readers are configurations in which n jobs read the address of job.a.
func readers(n int) map[string]string {
	const head = `
		job "a" {
			command = ["true"]
			resources { cpu = 1 }
			retries { failure = -1 }
		}
	`
	var blocks strings.Builder
	for i := range n {
		fmt.Fprintf(&blocks, `
			job "r%d" {
				command = ["true", "--of=${job.a.address}"]
				resources { cpu = 1 }
			}`, i)
	}
	return map[string]string{
		"one count": head + fmt.Sprintf(`
			job "r" {
				count   = %d
				command = ["true", "--of=${job.a.address}", "--index=${count.index}"]
				resources { cpu = 1 }
			}`, n),
		"blocks": head + blocks.String(),
	}
}

// BenchmarkMoveOfManyReaders moves an address that 10,000 running jobs read, and
// reports what the evaluation of it costs, the longest step, and all steps until
// nothing is left to do, in time of the processor.
func BenchmarkMoveOfManyReaders(b *testing.B) {
	for name, source := range readers(10_000) {
		b.Run(name, func(b *testing.B) {
			m := newMoving(b, source)
			var total moveCost
			for b.Loop() {
				total = total.plus(m.move(b))
			}
			b.ReportMetric(float64(total.refine.Milliseconds())/float64(b.N), "ms-refine")
			b.ReportMetric(float64(total.longest.Milliseconds())/float64(b.N), "ms-longest-step")
			b.ReportMetric(float64(total.all.Milliseconds())/float64(b.N), "ms-all")
			b.ReportMetric(float64(total.steps)/float64(b.N), "steps")
		})
	}
}

// moveCost is what a move costs.
type moveCost struct {
	refine, longest, all time.Duration
	steps                int
}

func (c moveCost) plus(other moveCost) moveCost {
	return moveCost{c.refine + other.refine, c.longest + other.longest, c.all + other.all, c.steps + other.steps}
}

// moving is a stack whose readers run, and job.a may be moved.
type moving struct {
	world   *swift
	stepper *apply.Stepper
	slice   string    // of job.a
	now     time.Time // by the stepper's clock: slow machines are not silent hosts
	refine  time.Duration
	moves   int
}

func newMoving(b *testing.B, source string) *moving {
	b.Helper()
	file := filepath.Join(b.TempDir(), "main.hcl")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		b.Fatal(err)
	}
	src, diags := lang.Parse([]string{file})
	if diags.HasErrors() {
		b.Fatal(diags)
	}
	cfg, diags := src.Evaluate(eval.Options{})
	if diags.HasErrors() {
		b.Fatal(diags)
	}
	m := &moving{world: &swift{}, now: time.Now()}
	late := &apply.Late{Source: src}
	s, err := apply.New(b.Context(), apply.Config{
		Store: m.world, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderLocal: swiftProvider{m.world}},
		Epoch: 1, Valid: func() error { return nil }, Scope: apply.Scope{All: true},
		Now: func() time.Time { return m.now }, Refine: timed(b, &m.refine, late.Refine),
	})
	if err != nil {
		b.Fatal(err)
	}
	m.stepper = s
	if err := s.Accept(b.Context(), apply.Accept(s.Document(), apply.Request{Desired: cfg.Desired})); err != nil {
		b.Fatal(err)
	}
	m.settle(b, "10.0.0.1")
	m.slice = s.Document().Jobs[schema.Address{Kind: schema.KindJob, Name: "a"}].Last().Slices[0]
	return m
}

// move has job.a fail and begin again elsewhere.
func (m *moving) move(b *testing.B) moveCost {
	b.Helper()
	m.moves++
	m.refine = 0
	at := fmt.Sprintf("10.0.1.%d", m.moves)
	m.fail(b, at)
	return m.settle(b, at)
}

// fail reports the end of job.a's task, and has whatever starts there next be at
// an address.
func (m *moving) fail(b *testing.B, at string) {
	b.Helper()
	o, err := m.world.Get(b.Context(), store.HostKey(m.slice, 0))
	if err != nil {
		b.Fatal(err)
	}
	var r state.HostReport
	if err := json.Unmarshal(o.Data, &r); err != nil {
		b.Fatal(err)
	}
	r.Seq++
	r.Task.State = schema.TaskFailed
	m.world.mu.Lock()
	defer m.world.mu.Unlock()
	m.world.moved = map[string]string{m.slice: at}
	if err := m.world.report(r); err != nil {
		b.Fatal(err)
	}
}

// settle steps until readers read an address and nothing is left to do.
func (m *moving) settle(b *testing.B, at string) (c moveCost) {
	b.Helper()
	for range 200 {
		began := processorTime(b)
		next, err := m.stepper.Step(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		took := processorTime(b) - began
		c.longest, c.all = max(c.longest, took), c.all+took
		c.steps++
		p := m.stepper.Last()
		if m.reads("--of="+at) && m.stepper.Idle() && len(p.Actions) == 0 && len(p.Pending) == 0 {
			c.refine = m.refine
			return c
		}
		if m.stepper.Idle() {
			m.now = m.now.Add(next)
			continue
		}
		m.stepper.Wait(b.Context(), next)
	}
	b.Fatal("not settled")
	return c
}

// reads reports whether the last reader runs with a word.
func (m *moving) reads(word string) bool {
	desired := m.stepper.Document().Desired.Jobs
	return slices.Contains(desired[len(desired)-1].Command, schema.Plain(word))
}

// timed adds to a sum what the calls of a Refine cost.
func timed(b *testing.B, sum *time.Duration, refine func(*state.Document) (*schema.Desired, error)) func(*state.Document) (*schema.Desired, error) {
	b.Helper()
	return func(doc *state.Document) (*schema.Desired, error) {
		began := processorTime(b)
		defer func() { *sum += processorTime(b) - began }()
		return refine(doc)
	}
}
