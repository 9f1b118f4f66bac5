package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// save has a client save, unless a write of it is rejected or its reply lost.
func (m *model) save(c *client) {
	next := m.successor(c.doc)
	m.bases[next.LocalPlace] = append(slices.Clone(c.tried), c.doc.LocalPlace)
	c.w.collect()
	pending, at := c.w.pending, &c.w.at
	full := at.journal == nil || at.number+1-at.journal.Entries > uint64(at.journal.Slots)
	if full || at.small { // it waits for a snapshot, or writes the state whole
		c.flow()
	}
	c.fault = none
	if !full {
		c.fault = rapid.SampledFrom([]fault{none, none, none, rejected, lost}).Draw(m.t, "save")
	}
	err := c.w.Save(context.Background(), next)
	c.arrive(pending)
	c.through = false
	c.tried = append(c.tried, next.LocalPlace)
	switch {
	case err == nil:
		c.doc, c.tried = next, nil
		if last := m.newest[len(m.newest)-1]; last != next.LocalPlace {
			m.fail("%s was acknowledged while %s is the newest", next.LocalPlace, last)
		}
	case errors.Is(err, ErrMoved):
		c.gone = true
	case errors.Is(err, errRejected) || errors.Is(err, errLost):
	default:
		m.fail("save: %v", err)
	}
}

// flow has snapshots be held up no more.
func (c *client) flow() {
	c.land(rapid.SampledFrom([]fault{none, rejected, lost}).Draw(c.m.t, "snapshot"))
	c.through, c.snapped = true, rapid.SampledFrom([]fault{none, rejected, lost}).Draw(c.m.t, "snapshot")
}

// flush has a client end.
func (m *model) flush(c *client) {
	c.flow()
	c.fault = rapid.SampledFrom([]fault{none, none, rejected, lost}).Draw(m.t, "entry")
	err := c.w.Flush(context.Background())
	c.through = false
	switch {
	case err == nil || errors.Is(err, errRejected) || errors.Is(err, errLost):
	case errors.Is(err, ErrMoved):
		c.gone = true
	default:
		m.fail("flush: %v", err)
	}
}

// grow is what another client does that saves a large state in place of a small one.
func (m *model) grow() {
	doc, at, err := Load(context.Background(), m.objects)
	if err != nil || at.journal != nil {
		return
	}
	next := m.successor(doc)
	m.bases[next.LocalPlace] = []string{doc.LocalPlace}
	next.Serial, next.Nonce = at.Serial+1, fmt.Sprint("grown ", m.saves)
	next.Journal = drawJournal(m.t, next.Nonce)
	data, err := state.Encode(*next)
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := m.objects.Put(context.Background(), store.StateKey, data, at.Generation); err != nil {
		m.t.Fatal(err)
	}
	m.committed(store.StateKey)
}

// step is one event; a writer's only where a reader is at work.
func (m *model) step(reading bool) {
	var able []*client
	for _, c := range m.clients {
		if !c.crashed && !c.gone {
			able = append(able, c)
		}
	}
	kinds := []string{"open", "land"}
	if len(able) > 0 {
		kinds = append(kinds, "save", "save", "save", "save", "flush", "crash")
	}
	if !reading {
		kinds = append(kinds, "read", "read beside writers", "grow")
	}
	if !reading && len(able) > 0 {
		kinds = append(kinds, "replace")
	}
	kind := rapid.SampledFrom(kinds).Draw(m.t, "event")
	switch kind {
	case "open":
		m.open()
	case "land":
		if len(m.clients) > 0 {
			rapid.SampledFrom(m.clients).Draw(m.t, "of").land(rapid.SampledFrom([]fault{none, none, rejected, lost}).Draw(m.t, "snapshot"))
		}
	case "save":
		m.save(rapid.SampledFrom(able).Draw(m.t, "client"))
	case "flush":
		m.flush(rapid.SampledFrom(able).Draw(m.t, "client"))
	case "grow":
		m.grow()
	case "crash":
		rapid.SampledFrom(able).Draw(m.t, "client").crashed = true
	case "read":
		m.read(m.objects)
	case "read beside writers":
		m.readBeside()
	case "replace":
		m.replace()
	}
}

// replace is what puts a state in place of one that cannot be read.
func (m *model) replace() {
	m.open()
	c := m.clients[len(m.clients)-1]
	next := m.successor(c.doc)
	c.through, c.snapped = true, none
	if err := c.w.Replace(context.Background(), next, c.w.Position().Generation); err != nil {
		m.fail("replace: %v", err)
	}
	c.through = false
	c.doc = next
	// It is small, and has no journal; the test is about large ones.
	c.gone = true
	again := *next
	again.Serial, again.Nonce = c.w.at.Serial, c.w.at.Nonce
	again.Journal = drawJournal(m.t, again.Nonce)
	data, err := state.Encode(again)
	if err != nil {
		m.t.Fatal(err)
	}
	if _, err := m.objects.Put(context.Background(), store.StateKey, data, c.w.at.Generation); err != nil {
		m.t.Fatal(err)
	}
}
