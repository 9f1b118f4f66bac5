package render_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/render"
	"github.com/fray-ml/fray/schema"
)

const benchChanges = 100_000

// largePlan creates many instances of one job; every other is of another shape
// when they shall not fold.
func largePlan(alike bool) *plan.Plan {
	p := &plan.Plan{Changes: make([]plan.Change, benchChanges)}
	for i := range p.Changes {
		tpu, path := "v5litepod-16", "resources.tpu"
		if !alike && i%2 == 1 {
			path = "resources.machine_type"
		}
		attrs := []*plan.AttrChange{
			{Path: "command", After: jsonOf([]string{"python", "-m", "math_rl.rollout", fmt.Sprintf("--worker=%d", i)})},
			{Path: "namespace", After: jsonOf("rl")},
			{Path: "resources.provider", After: jsonOf("local")},
			{Path: path, After: jsonOf(tpu)},
			{Path: "resources.slices", After: jsonOf(1)},
			{Path: "resources.preemptible", After: jsonOf(true)},
			{Path: "environment.project", After: jsonOf("/home/ada/rl")},
			{Path: "environment.env.HF_TOKEN", Sensitive: true},
			{Path: "environment.env.WANDB_PROJECT", After: jsonOf("marin")},
			{Path: "retries.failure", After: jsonOf(0)},
			{Path: "retries.preemption", After: jsonOf(100)},
			{Path: "stop_grace", After: jsonOf("30s")},
		}
		for k := range attrs {
			attrs[k].Verb = plan.VerbCreate
		}
		addr := schema.Address{Kind: schema.KindJob, Name: "rollout", Key: schema.IntKey(i)}
		p.Changes[i] = plan.Change{Addr: addr, Verb: plan.VerbCreate, Attrs: attrs}
	}
	return p
}

// BenchmarkRender measures 100,000 changes. "x-marshal" is the time beside that
// of json.Marshal of the same changes, the best of three in the same run.
func BenchmarkRender(b *testing.B) {
	alike, different := largePlan(true), largePlan(false)
	marshal := time.Duration(math.MaxInt64)
	for range 3 {
		start := time.Now()
		if _, err := json.Marshal(alike.Changes); err != nil {
			b.Fatal(err)
		}
		marshal = min(marshal, time.Since(start))
	}
	for _, bench := range []struct {
		name   string
		render func() error
	}{
		{"text-folded", func() error { return render.Text(io.Discard, alike, render.Options{}) }},
		{"text-different", func() error { return render.Text(io.Discard, different, render.Options{}) }},
		{"text-verbose", func() error { return render.Text(io.Discard, alike, render.Options{Verbose: true}) }},
		{"json", func() error { return render.JSON(io.Discard, alike, meta()) }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.render(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(marshal), "x-marshal")
		})
	}
}
