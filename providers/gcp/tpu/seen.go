package tpu

import (
	"sync"

	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// seenSlices remembers how slices of the last list stand, where the service is in this
// process: it hands out the same messages until they change.
type seenSlices struct {
	on bool

	mu    sync.Mutex
	stack string
	last  map[engine.Place]seenSlice
}

type seenSlice struct {
	node   *tpuapi.Node
	queued *tpuapi.QueuedResource
	status schema.SliceStatus
}

// seenList is one list; nil keeps nothing.
type seenList struct {
	of       *seenSlices
	was, now map[engine.Place]seenSlice
}

// begin starts a list of about n slices.
func (c *seenSlices) begin(n int, stack string) *seenList {
	if !c.on {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &seenList{of: c, now: make(map[engine.Place]seenSlice, n)}
	if c.stack == stack {
		l.was = c.last
	}
	c.stack = stack
	return l
}

// status is that of a slice whose messages are the same as in the last list.
func (l *seenList) status(s *slice) (schema.SliceStatus, bool) {
	if l == nil {
		return schema.SliceStatus{}, false
	}
	known, ok := l.was[s.at]
	if !ok || known.node != s.node || known.queued != s.queued {
		return schema.SliceStatus{}, false
	}
	l.now[s.at] = known
	return known.status, true
}

func (l *seenList) keep(s *slice, status schema.SliceStatus) {
	if l != nil {
		l.now[s.at] = seenSlice{s.node, s.queued, status}
	}
}

// done keeps this list for the next one.
func (l *seenList) done() {
	if l == nil {
		return
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.of.last = l.now
}
