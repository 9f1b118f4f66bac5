package follow

import (
	"container/heap"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state/store"
)

const (
	// mergeWait is how long a line waits for lines of other tasks that were written
	// before it: their hosts send them a moment later.
	mergeWait = 300 * time.Millisecond
	mergePace = 50 * time.Millisecond // between two releases
)

// lineHeap has streams with lines, the one with the earliest line first.
type lineHeap []*logStream

var _ heap.Interface = (*lineHeap)(nil)

func (h lineHeap) Len() int      { return len(h) }
func (h lineHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h lineHeap) Less(i, j int) bool {
	if c := h[i].lines[0].order.Compare(h[j].lines[0].order); c != 0 {
		return c < 0
	}
	return h[i].compare(h[j].logKey) < 0
}

// Push implements heap.Interface.
func (h *lineHeap) Push(x any) { *h = append(*h, x.(*logStream)) }

// Pop implements heap.Interface.
func (h *lineHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func (h *lineHeap) add(s *logStream) { heap.Push(h, s) }

// least is the stream of the earliest line, nil if there is none.
func (h *lineHeap) least() *logStream {
	if len(*h) == 0 {
		return nil
	}
	return (*h)[0]
}

// update takes in that lines of the least were taken.
func (h *lineHeap) update() {
	if len((*h)[0].lines) > 0 {
		heap.Fix(h, 0)
	} else {
		heap.Pop(h)
	}
}

// source reads the backlog of one stream, part by part.
type source struct {
	stream *logStream
	next   func() (store.LogPart, error, bool)
	stop   func()
}

// errStopped ends a read that is not continued.
var errStopped = errors.New("stopped")

func (p *logPrinter) source(ctx context.Context, s *logStream) *source {
	var parts iter.Seq2[store.LogPart, error] = func(yield func(store.LogPart, error) bool) {
		err := p.read(ctx, s, func(part store.LogPart) error {
			if !yield(part, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(store.LogPart{}, err)
		}
	}
	next, stop := iter.Pull2(parts)
	return &source{stream: s, next: next, stop: stop}
}

// backlog prints what the store has of streams that are read for the first time, by
// time. Of each it has one part in memory at a time, and with --tail its last lines.
func (p *logPrinter) backlog(ctx context.Context, streams []*logStream, end bool) error {
	heads := &lineHeap{}
	sources := map[*logStream]*source{}
	for _, s := range streams {
		if !p.since.IsZero() {
			var err error
			if s.next, err = p.firstSince(ctx, s); err != nil {
				return err
			}
		}
		from := p.source(ctx, s)
		defer from.stop()
		sources[s] = from
		if err := p.fill(from, end); err != nil {
			return err
		}
		if s.trimmed = true; len(s.lines) > 0 {
			heads.add(s)
		}
	}
	for s := heads.least(); s != nil; s = heads.least() {
		n := 1
		if len(*heads) == 1 {
			n = len(s.lines)
		}
		p.mu.Lock()
		p.print(s, s.lines[:n])
		p.mu.Unlock()
		if s.lines = s.lines[n:]; len(s.lines) == 0 {
			if err := p.fill(sources[s], end); err != nil {
				return err
			}
		}
		heads.update()
	}
	return nil
}

// fill reads until there are lines, or with --tail to the end.
func (p *logPrinter) fill(from *source, end bool) error {
	s := from.stream
	for {
		part, err, more := from.next()
		switch {
		case err != nil:
			return err
		case !more:
			if end {
				s.finish(p.since)
				s.keep(p.query.Tail)
			}
			return nil
		}
		s.take(part, p.since)
		s.keep(p.query.Tail)
		if len(s.lines) > 0 && p.query.Tail < 0 {
			return nil
		}
	}
}

// keep keeps the last n lines.
func (s *logStream) keep(n int) {
	if n >= 0 && !s.trimmed {
		s.lines = s.lines[max(0, len(s.lines)-n):]
	}
}

// rest waits for so long, and meanwhile prints the lines that have waited enough.
func (p *logPrinter) rest(ctx context.Context, pace time.Duration) {
	for end := time.Now().Add(pace); ; {
		p.release(false)
		left := time.Until(end)
		if left <= 0 || !sleep.For(ctx, min(left, mergePace)) {
			return
		}
	}
}
