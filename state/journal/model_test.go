package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/propertytest"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

func TestMain(m *testing.M) { propertytest.Main(m) }

var (
	errRejected = errors.New("503 try again")
	errLost     = errors.New("connection reset by peer")
)

// fault is what becomes of a write.
type fault string

const (
	none     fault = "none"
	rejected fault = "rejected" // it does not happen
	lost     fault = "lost"     // it happens, and its reply is lost
)

// model is a store, its clients, and what an oracle knows that saw every write.
type model struct {
	t       *rapid.T
	objects *storetest.Memory
	clients []*client // those that have crashed among them: what they have sent may still arrive

	mu      sync.Mutex
	texts   map[string]string   // of the documents by what marks them
	bases   map[string][]string // marks of those that a document may follow; none: any, since it replaces the state
	newest  []string            // marks of the states in the order in which they were committed
	nonce   string              // of the newest
	serial  uint64
	failure string
	saves   int
}

// client is a process that writes states.
type client struct {
	m       *model
	w       *Writer
	doc     *state.Document // its newest
	tried   []string        // marks of those since then of which it is not known whether they were written
	crashed bool
	gone    bool // the state was found moved: it ends

	fault   fault         // of its next entry
	snapped fault         // of its snapshots, where they are not held up
	arrived chan struct{} // a snapshot is about to be written
	release chan fault
	through bool // snapshots are not held up
}

func newModel(t *rapid.T) *model {
	m := &model{t: t, objects: storetest.NewMemory(), texts: map[string]string{}, bases: map[string][]string{}, serial: 1, nonce: "first"}
	doc := &state.Document{FormatVersion: state.FormatVersion, Lineage: "l", Serial: 1, Nonce: "first"}
	m.mark(doc)
	doc.Journal = drawJournal(t, "j")
	data, err := state.Encode(*doc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.objects.Put(context.Background(), store.StateKey, data, store.Absent); err != nil {
		t.Fatal(err)
	}
	m.newest = []string{doc.LocalPlace}
	return m
}

// drawJournal is a journal whose state may be small, always or with few jobs.
func drawJournal(t *rapid.T, id string) *state.Journal {
	return &state.Journal{ID: id, Slots: rapid.IntRange(1, 5).Draw(t, "slots"), WholeBelow: rapid.SampledFrom([]int{0, 0, 700, wholeBelow}).Draw(t, "whole below")}
}

// mark gives a document a mark, by which its content is known.
func (m *model) mark(doc *state.Document) {
	m.saves++
	doc.LocalPlace = fmt.Sprint("state ", m.saves)
	m.texts[doc.LocalPlace] = contentOf(m.t, doc)
}

// contentOf is a document without what is written with it.
func contentOf(t rapid.TB, d *state.Document) string {
	t.Helper()
	out := *d
	out.FrayVersion, out.Serial, out.Epoch, out.Nonce, out.Journal = "", 0, 0, "", nil
	text, err := state.Text(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fail keeps the first failure; goroutines of a writer may find it.
func (m *model) fail(format string, args ...any) {
	if m.failure == "" {
		m.failure = fmt.Sprintf(format, args...)
	}
}

// committed sees what is in the store after a write.
func (m *model) committed(key string) {
	object, err := m.objects.Get(context.Background(), key)
	if err != nil {
		m.fail("%v", err)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if key == store.StateKey {
		doc, err := state.Decode(object.Data)
		last, bases := m.newest[len(m.newest)-1], m.bases[doc.LocalPlace]
		switch {
		case err != nil:
			m.fail("a snapshot that is none: %v", err)
		case slices.Contains(m.newest, doc.LocalPlace):
			if doc.Journal == nil && doc.LocalPlace != last {
				m.fail("%s was written whole, where %s is the newest", doc.LocalPlace, last)
			}
		case bases != nil && !slices.Contains(bases, last):
			m.fail("%s, which follows %s, was written whole, where %s is the newest: an acknowledged save is lost", doc.LocalPlace, bases, last)
		default:
			m.newest, m.nonce, m.serial = append(m.newest, doc.LocalPlace), doc.Nonce, doc.Serial
		}
		return
	}
	e, err := state.DecodeEntry(object.Data)
	if err != nil || e.Number == 0 {
		return // the end of a journal
	}
	if e.Last {
		if e.Nonce != m.nonce || e.Serial != m.serial {
			m.fail("a journal ended with serial %d, %q, where the newest is serial %d, %q", e.Serial, e.Nonce, m.serial, m.nonce)
		}
		return
	}
	if e.After != m.nonce || e.Serial <= m.serial {
		m.fail("entry %d, serial %d, changes %q, where the newest is serial %d, %q: an acknowledged save is lost", e.Number, e.Serial, e.After, m.serial, m.nonce)
	}
	var mark string
	if err := json.Unmarshal(e.Members["local_place"], &mark); err != nil {
		m.fail("entry %d: %v", e.Number, err)
	}
	m.newest, m.nonce, m.serial = append(m.newest, mark), e.Nonce, e.Serial
}

func (m *model) open() {
	c := &client{m: m, arrived: make(chan struct{}), release: make(chan fault), fault: none}
	s := &storetest.Faulty{Store: m.objects, Before: c.before, After: c.after}
	var err error
	c.w, c.doc, err = Open(context.Background(), s, Stamp{Version: "v", Epoch: uint64(len(m.clients) + 1), Valid: func() error { return nil }})
	if err != nil {
		m.fail("open: %v", err)
		return
	}
	m.clients = append(m.clients, c)
}

func (c *client) before(op storetest.Op, key string) error {
	if op != storetest.OpPut {
		return nil
	}
	f := c.fault
	if key == store.StateKey {
		if !c.through {
			c.arrived <- struct{}{}
			c.snapped = <-c.release
		}
		f = c.snapped
	}
	if f == rejected {
		return errRejected
	}
	return nil
}

func (c *client) after(op storetest.Op, key string) error {
	if op != storetest.OpPut {
		return nil
	}
	c.m.committed(key)
	if key == store.StateKey && c.snapped == lost || key != store.StateKey && c.fault == lost {
		return errLost
	}
	return nil
}

// arrive waits until a snapshot that has begun is about to be written, or is written where none
// is held up.
func (c *client) arrive(before *compaction) {
	switch {
	case c.w.pending == nil || c.w.pending == before:
	case c.through:
		<-c.w.pending.done
	default:
		<-c.arrived
	}
}

// land has a snapshot that is held up written, or not.
func (c *client) land(f fault) {
	if c.w.pending == nil {
		return
	}
	select {
	case <-c.w.pending.done:
		return
	default:
	}
	c.release <- f
	<-c.w.pending.done
}

// successor is another document, which shares some jobs with the one before.
func (m *model) successor(was *state.Document) *state.Document {
	next := was.Clone()
	for i := range rapid.IntRange(0, 3).Draw(m.t, "changed jobs") {
		addr := schema.Address{Kind: schema.KindJob, Name: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(m.t, "job")}
		if rapid.IntRange(0, 3).Draw(m.t, "what") == 0 {
			delete(next.Jobs, addr)
			continue
		}
		next.Jobs[addr] = &state.Job{ID: fmt.Sprint(m.saves, i), Spec: &schema.Job{Addr: addr, Namespace: "n"}}
	}
	if rapid.IntRange(0, 3).Draw(m.t, "new desired") == 0 {
		next.Revision++
		next.Desired.Jobs = nil
		for _, addr := range slices.SortedFunc(maps.Keys(next.Jobs), schema.Address.Compare) {
			next.Desired.Jobs = append(next.Desired.Jobs, *next.Jobs[addr].Spec)
		}
	}
	m.mark(next)
	return next
}

// read reads the newest state.
func (m *model) read(s store.Store) {
	first := len(m.newest) - 1
	doc, _, err := Load(context.Background(), s)
	m.check(first, doc, err)
}

// check checks that what was read was the newest state at a time since first was.
func (m *model) check(first int, doc *state.Document, err error) {
	if err != nil {
		m.fail("read: %v", err)
		return
	}
	if !slices.Contains(m.newest[first:], doc.LocalPlace) {
		m.fail("read %s, while %s were the newest", doc.LocalPlace, strings.Join(m.newest[first:], ", "))
	}
	if got, want := contentOf(m.t, doc), m.texts[doc.LocalPlace]; got != want {
		m.fail("%s: got\n%s\nwant\n%s", doc.LocalPlace, got, want)
	}
}

// readBeside reads while clients write: between any two of its calls.
func (m *model) readBeside() {
	first := len(m.newest) - 1
	calls, resume := make(chan struct{}), make(chan struct{})
	s := &storetest.Faulty{Store: m.objects, Before: func(storetest.Op, string) error {
		calls <- struct{}{}
		<-resume
		return nil
	}}
	var doc *state.Document
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		doc, _, err = Load(context.Background(), s)
	}()
	for left := 12; ; {
		select {
		case <-calls:
			for range rapid.IntRange(0, 3).Draw(m.t, "meanwhile") {
				if left--; left >= 0 {
					m.step(true)
				}
			}
			resume <- struct{}{}
		case <-done:
			m.check(first, doc, err)
			return
		}
	}
}

// No acknowledged save is lost and no reader goes back, whichever writes are rejected, lost, late
// or the last of a process, with several clients that each take themselves for the leader.
func TestModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		defer m.end()
		follower := &Reader{Store: m.objects}
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			m.step(false)
			if m.failure != "" {
				t.Fatal(m.failure)
			}
			if rapid.Bool().Draw(t, "followed") {
				doc, _, err := follower.Read(context.Background())
				m.check(len(m.newest)-1, doc, err)
			}
		}
		m.read(m.objects)
		m.open() // another one can go on
		c := m.clients[len(m.clients)-1]
		c.through, c.snapped = true, none
		for range 7 {
			if err := c.w.Save(context.Background(), m.successor(c.doc)); err != nil {
				m.fail("save by the only client: %v", err)
			}
			c.arrive(nil)
		}
		m.read(m.objects)
		if m.failure != "" {
			t.Fatal(m.failure)
		}
	})
}

// end ends the goroutines of all writers.
func (m *model) end() {
	for _, c := range m.clients {
		c.land(rejected)
	}
}
