package status

import (
	"fmt"
	"testing"

	"github.com/fray-ml/fray/state"
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
