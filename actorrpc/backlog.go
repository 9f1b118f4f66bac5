package actorrpc

import "slices"

// What waits for one actor to be found. Beyond it the callers wait, too.
const (
	maxBacklogCalls = 10_000
	maxBacklogBytes = 256 << 20
)

// backlog has the calls of an actor that wait until it is found, in the order in
// which they were made.
type backlog struct {
	maxCalls int
	maxBytes uint64

	calls   []*call
	bytes   uint64
	drained chan struct{} // closed when no more waits than may; nil: no caller waits for that
}

// insert puts a call where it belongs.
func (b *backlog) insert(c *call) {
	i, _ := slices.BinarySearchFunc(b.calls, c, func(x, y *call) int { return int(int64(x.order) - int64(y.order)) })
	b.calls = slices.Insert(b.calls, i, c)
	b.bytes += c.bytes
}

// filter takes out the calls of which drop is true.
func (b *backlog) filter(drop func(c *call) bool) {
	before := len(b.calls)
	b.calls = slices.DeleteFunc(b.calls, func(c *call) bool {
		out := drop(c)
		if out {
			b.bytes -= c.bytes
		}
		return out
	})
	if len(b.calls) < before {
		b.shrunk()
	}
}

// remove takes a call out, and reports whether it was there.
func (b *backlog) remove(c *call) bool {
	i := slices.Index(b.calls, c)
	if i < 0 {
		return false
	}
	b.calls = slices.Delete(b.calls, i, i+1)
	b.bytes -= c.bytes
	b.shrunk()
	return true
}

// drain takes calls out in order for as long as take is true, and reports whether
// none is left.
func (b *backlog) drain(take func(c *call) bool) bool {
	taken := 0
	for taken < len(b.calls) && take(b.calls[taken]) {
		b.bytes -= b.calls[taken].bytes
		taken++
	}
	if taken == len(b.calls) {
		b.calls = nil // it may have been long
	} else {
		b.calls = slices.Delete(b.calls, 0, taken)
	}
	b.shrunk()
	return len(b.calls) == 0
}

// over reports whether more waits than may.
func (b *backlog) over() bool { return len(b.calls) > b.maxCalls || b.bytes > b.maxBytes }

// shrunk wakes the callers that wait for room.
func (b *backlog) shrunk() {
	if b.drained != nil && !b.over() {
		close(b.drained)
		b.drained = nil
	}
}

// await is closed once no more waits than may; nil: that is so.
func (b *backlog) await() <-chan struct{} {
	if !b.over() {
		return nil
	}
	if b.drained == nil {
		b.drained = make(chan struct{})
	}
	return b.drained
}
