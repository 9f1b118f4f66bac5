package web

import (
	"log/slog"
	"testing"
	"time"
)

// BenchmarkLargeStack answers a page of a stack of 100,000 jobs.
func BenchmarkLargeStack(b *testing.B) {
	snap := makeUp(100_000, time.Now())
	b.Logf("%d slices", len(snap.Doc.Slices))
	b.Run("frame", func(b *testing.B) {
		for b.Loop() {
			newFrame(snap, 1).look()
		}
	})
	b.Run("next frame", func(b *testing.B) {
		f := newFrame(snap, 1)
		f.look()
		next := *snap
		next.Doc = snap.Doc.Clone()
		for addr, j := range next.Doc.Jobs {
			changed := *j
			next.Doc.Jobs[addr] = &changed
			break
		}
		for b.Loop() {
			n := newFrame(&next, 2)
			n.before.Store(f.built.Load())
			n.look()
		}
	})
	s, err := New(Config{Source: newSource(snap), Logs: &memory{}, Loopback: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range []string{
		"updates", "jobs?limit=100", "jobs?limit=100&offset=90000&sort=chips", "jobs?q=train[24&limit=100", "slices?summary=true&cells=400",
		"slices?limit=100&offset=20000", "slices?limit=100&q=us-west4+dead",
	} {
		b.Run(path, func(b *testing.B) {
			for b.Loop() {
				if path == "updates" {
					s.overviewOf(newFrameOf(s))
					continue
				}
				if w := ask(s, "/api/v1/"+path, nil); w.Code != 200 {
					b.Fatal(w.Body)
				} else {
					b.ReportMetric(float64(w.Body.Len()), "B")
				}
			}
		})
	}
}

// newFrameOf is the current frame whose sums are to be made again.
func newFrameOf(s *Server) *frame {
	f := s.current.Load()
	next := newFrame(f.snap, f.version)
	next.once.Do(func() { next.index = *f.look() })
	return next
}
