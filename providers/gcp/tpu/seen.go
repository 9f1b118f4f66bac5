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

	mu    sync.Mutex // held for the length of a list
	stack string
	lists int // begun so far
	last  map[engine.Place]*seenSlice
}

type seenSlice struct {
	node   *tpuapi.Node
	queued *tpuapi.QueuedResource
	status *schema.SliceStatus
	list   int // the last one that had it
}

// seenList is one list; nil keeps nothing.
type seenList struct {
	of    *seenSlices
	found int // slices of this list that are kept
}

// size is how many slices the last list had, as far as it is known.
func (c *seenSlices) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.last)
}

// begin starts a list, which done ends.
func (c *seenSlices) begin(stack string) *seenList {
	if !c.on {
		return nil
	}
	c.mu.Lock()
	if c.stack != stack || c.last == nil {
		c.stack, c.last = stack, map[engine.Place]*seenSlice{}
	}
	c.lists++
	return &seenList{of: c}
}

// status is that of a slice whose messages are the same as in the last list, nil for others.
func (l *seenList) status(s *slice) *schema.SliceStatus {
	if l == nil {
		return nil
	}
	known := l.of.last[s.at]
	if known == nil || known.node != s.node || known.queued != s.queued {
		return nil
	}
	known.list = l.of.lists
	l.found++
	return known.status
}

func (l *seenList) keep(s *slice, status *schema.SliceStatus) {
	if l != nil {
		l.of.last[s.at] = &seenSlice{node: s.node, queued: s.queued, status: status, list: l.of.lists}
		l.found++
	}
}

// done keeps this list for the next one.
func (l *seenList) done() {
	if l == nil {
		return
	}
	defer l.of.mu.Unlock()
	if l.found == len(l.of.last) {
		return
	}
	for at, known := range l.of.last {
		if known.list != l.of.lists {
			delete(l.of.last, at)
		}
	}
}
