package tpu

import (
	"sync"

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
	last  map[*tpuapi.Node]*seenSlice
}

// seenSlice is a slice that has a node.
type seenSlice struct {
	slice
	status *schema.SliceStatus
	list   int // the last one that had it
}

// seenList is one list; nil keeps nothing.
type seenList struct {
	of    *seenSlices
	found int // slices of this list that are kept
}

// begin starts a list, which done ends.
func (c *seenSlices) begin(stack string) *seenList {
	if !c.on {
		return nil
	}
	c.mu.Lock()
	if c.stack != stack || c.last == nil {
		c.stack, c.last = stack, map[*tpuapi.Node]*seenSlice{}
	}
	c.lists++
	return &seenList{of: c}
}

// slice is that of a node which is the same message as in the last list and has no queued
// resource, nil for others; again reports that this list has it already.
func (l *seenList) slice(n *tpuapi.Node) (s *slice, again bool) {
	if l == nil {
		return nil, false
	}
	known := l.of.last[n]
	if known == nil || known.queued != nil {
		return nil, false
	}
	if known.list == l.of.lists {
		return nil, true
	}
	l.find(known)
	return &known.slice, false
}

// status is that of a slice whose messages are the same as in the last list, nil for others.
func (l *seenList) status(s *slice) *schema.SliceStatus {
	if l == nil || s.node == nil {
		return nil
	}
	known := l.of.last[s.node]
	if known == nil || known.queued != s.queued {
		return nil
	}
	l.find(known)
	return known.status
}

func (l *seenList) find(known *seenSlice) {
	if known.list != l.of.lists {
		known.list = l.of.lists
		l.found++
	}
}

func (l *seenList) keep(s *slice, status *schema.SliceStatus) {
	if l == nil || s.node == nil {
		return
	}
	if was := l.of.last[s.node]; was != nil && was.list == l.of.lists {
		l.found--
	}
	l.of.last[s.node] = &seenSlice{slice: *s, status: status, list: l.of.lists}
	l.found++
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
	for node, known := range l.of.last {
		if known.list != l.of.lists {
			delete(l.of.last, node)
		}
	}
}
