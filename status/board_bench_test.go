package status

import (
	"fmt"
	"io"
	"testing"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/status/selection"
	"github.com/fray-ml/fray/terminal"
)

// BenchmarkScreen makes a board of ten thousand jobs and draws it.
func BenchmarkScreen(b *testing.B) {
	jobs := map[string]*state.Job{}
	for i := range 10000 {
		jobs[fmt.Sprint("n", i)] = up()
	}
	v := viewOf(jobs)
	s := shows(newBoard(v), 200, 60)
	b.Run("board", func(b *testing.B) {
		for b.Loop() {
			newBoard(v)
		}
	})
	b.Run("draw", func(b *testing.B) {
		for b.Loop() {
			s.draw()
		}
	})
	b.Run("filter", func(b *testing.B) {
		for b.Loop() {
			s.filter.SetValue("n77")
			s.search()
		}
	})
}

// BenchmarkMany shows 100,000 jobs, nine tenths of which run on 90,000 slices.
func BenchmarkMany(b *testing.B) {
	v := crowd(100_000)
	for _, c := range []struct {
		name  string
		flags selection.Flags
	}{
		{"folded", selection.Flags{}},
		{"page", selection.Flags{Page: 100}},
		{"filtered", selection.Flags{Filter: []string{"state=failed,zone=us-west4-a"}}},
		{"grouped", selection.Flags{GroupBy: []string{"namespace", "zone"}}},
	} {
		s, err := selection.Of(&c.flags)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				fresh := *v
				fresh.Select, fresh.found = s, selection.Match(fresh.Doc, fresh.plan.Pending, s.Terms)
				if err := fresh.Text(&terminal.Terminal{Stdout: io.Discard}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("board", func(b *testing.B) {
		for b.Loop() {
			newBoard(v)
		}
	})
}
