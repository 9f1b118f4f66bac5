package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

var errDead = errors.New("the process is dead")

// process is one that dies at a call of its store: before it happens, or before its reply.
type process struct {
	t       *testing.T
	objects *storetest.Memory
	calls   int // until it dies; negative: it lives on
	after   bool
	dead    bool

	w     *Writer
	newer bool              // the last save was not acknowledged
	saves []*state.Document // the last may be written or not
}

func (p *process) store() *storetest.Faulty {
	return &storetest.Faulty{Store: p.objects, Before: func(storetest.Op, string) error {
		if p.calls--; p.calls == 0 {
			p.dead = true
		}
		if p.dead && (!p.after || p.calls < 0) {
			return errDead
		}
		return nil
	}, After: func(storetest.Op, string) error {
		if p.dead {
			return errDead
		}
		return nil
	}}
}

func stampOf(epoch uint64) Stamp {
	return Stamp{Version: "v", Epoch: epoch, Valid: func() error { return nil }}
}

// open reports whether the process lives on.
func (p *process) open() bool {
	w, doc, err := Open(context.Background(), p.store(), stampOf(1))
	if p.w = w; err != nil {
		p.expect(err)
		return false
	}
	p.saves = append(p.saves, doc)
	return true
}

func (p *process) expect(err error) {
	p.t.Helper()
	if err != nil && !p.dead {
		p.t.Fatalf("got %v before the process died", err)
	}
}

// save saves another document, and waits for the snapshot, if one is written.
func (p *process) save(text string) {
	if p.dead {
		return
	}
	next := p.saves[len(p.saves)-1].Clone()
	next.LocalPlace = text
	addr := schema.Address{Kind: schema.KindJob, Name: "a", Key: schema.IntKey(len(p.saves) % 3)}
	next.Jobs[addr] = &state.Job{ID: text, Spec: &schema.Job{Addr: addr}}
	p.written(next, p.w.Save)
	if p.w.pending != nil {
		<-p.w.pending.done
	}
}

func (p *process) written(next *state.Document, write func(context.Context, *state.Document) error) {
	p.saves = append(p.saves, next)
	err := write(context.Background(), next)
	p.expect(err)
	p.newer = err != nil
}

// do is anything that changes nothing in the state.
func (p *process) do(what func(context.Context) error) {
	if !p.dead {
		p.expect(what(context.Background()))
	}
}

// recover checks that nothing is lost: for a reader that read on, for one that comes, and for the
// next writer, whose saves the process does not undo if it was not dead but suspended.
func (p *process) recover(follower *Reader) {
	p.t.Helper()
	newest := p.saves[len(p.saves)-1:]
	if p.newer {
		newest = p.saves[len(p.saves)-2:]
	}
	is := func(doc *state.Document, err error) {
		p.t.Helper()
		if err != nil {
			p.t.Fatal(err)
		}
		for _, want := range newest {
			if same(p.t, doc, want) {
				return
			}
		}
		p.t.Fatalf("got %q with %d jobs, want what was saved last, %q", doc.LocalPlace, len(doc.Jobs), newest[len(newest)-1].LocalPlace)
	}
	doc, _, err := Load(context.Background(), p.objects)
	is(doc, err)
	newest = []*state.Document{doc}
	followed, _, err := follower.Read(context.Background())
	is(followed, err)
	next := &process{t: p.t, objects: p.objects, calls: -1}
	if !next.open() {
		p.t.Fatal("the next one cannot go on")
	}
	is(next.saves[0], nil)
	for i := range 4 {
		next.save(fmt.Sprint("next ", i))
		newest = next.saves[len(next.saves)-1:]
		doc, _, err := Load(context.Background(), p.objects)
		is(doc, err)
		followed, _, err := follower.Read(context.Background())
		is(followed, err)
		if i > 0 || p.w.base == nil && p.w.at.Nonce == "" {
			continue
		}
		p.dead, p.calls = false, -1 // it was suspended
		err = nil
		for tries := 0; tries < 3 && !errors.Is(err, ErrMoved); tries++ { // first it may find what it wrote itself
			if err = p.w.Save(context.Background(), p.saves[len(p.saves)-1].Clone()); err == nil {
				break
			}
		}
		if !errors.Is(err, ErrMoved) {
			p.t.Fatalf("the former writer goes on: got %v, want ErrMoved", err)
		}
		_ = p.w.Flush(context.Background())
		doc, _, err = Load(context.Background(), p.objects)
		is(doc, err)
	}
	next.do(next.w.Flush)
	doc, _, err = Load(context.Background(), p.objects)
	is(doc, err)
}

func same(t *testing.T, a, b *state.Document) bool {
	t.Helper()
	text := func(d *state.Document) string {
		out := *d
		out.FrayVersion, out.Serial, out.Epoch, out.Nonce, out.Journal, out.FormatVersion = "", 0, 0, "", nil, 0
		data, err := state.Text(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	return text(a) == text(b)
}

// lives are what a process does with the state of a journal.
func lives() map[string]func(p *process) {
	saves := func(p *process, n int) {
		for i := range n {
			p.save(fmt.Sprint("save ", i, strings.Repeat(".", i)))
		}
	}
	return map[string]func(p *process){
		"two turns of the slots": func(p *process) { saves(p, 5) },
		"the end of a controller": func(p *process) {
			saves(p, 2)
			p.do(p.w.Flush)
		},
		"consolidation": func(p *process) {
			saves(p, 3)
			p.do(p.w.Consolidate)
			saves(p, 1)
		},
		"a stack of another lineage": func(p *process) {
			saves(p, 1)
			p.do(p.w.Compact)
			if p.dead {
				return
			}
			other := &state.Document{FormatVersion: state.FormatVersion, Lineage: "other"}
			other.LocalPlace = "other"
			p.written(other, func(ctx context.Context, doc *state.Document) error {
				return p.w.Replace(ctx, doc, p.w.Position().Generation)
			})
			saves(p, 2)
		},
		"a state that grows": func(p *process) {
			saves(p, 1)
			p.do(p.w.Compact)
			if p.dead {
				return
			}
			large := p.saves[len(p.saves)-1].Clone()
			large.Outputs = map[string]schema.Output{"o": {Value: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)}}
			p.written(large, p.w.Save)
			saves(p, 1)
		},
	}
}

// Wherever a process dies, nothing that it saved is lost, and the next one goes on.
func TestACrashAtEachCall(t *testing.T) {
	t.Parallel()
	for name, live := range lives() {
		for _, below := range []int{0, wholeBelow} {
			for _, after := range []bool{false, true} {
				if name == "a state that grows" && (below == 0 || after) {
					continue // it takes long
				}
				for call, dead := 1, true; dead; call++ {
					dead = dies(t, fmt.Sprintf("%s, whole below %d, at call %d, which happens: %t", name, below, call, after), live,
						&process{t: t, objects: storetest.NewMemory(), calls: call, after: after}, below)
				}
			}
		}
	}
}

// dies reports whether the process died at all.
func dies(t *testing.T, what string, live func(p *process), p *process, below int) bool {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Log(what)
		}
	}()
	doc := state.Document{Lineage: "l", Serial: 1, Nonce: "first"}
	doc.Journal = &state.Journal{ID: "j", Slots: 2, WholeBelow: below}
	data, err := state.Encode(doc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.objects.Put(t.Context(), store.StateKey, data, store.Absent); err != nil {
		t.Fatal(err)
	}
	follower := &Reader{Store: p.objects}
	if _, _, err := follower.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !p.open() {
		return p.dead
	}
	live(p)
	died := p.dead
	p.recover(follower)
	return died
}

// A command that replaces a state which cannot be read, and dies, leaves either that state or the
// new one: never one from before the damage, which would look whole.
func TestACrashWhileADamagedStateIsReplaced(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for call, dead := 1, true; dead; call++ {
			dead = diesReplacing(t, call, after)
		}
	}
}

func diesReplacing(t *testing.T, call int, after bool) bool {
	t.Helper()
	objects := storetest.NewMemory()
	doc := state.Document{Lineage: "l", Serial: 1, Nonce: "first"}
	doc.Journal = &state.Journal{ID: "j", Slots: 3}
	data, err := state.Encode(doc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := objects.Put(t.Context(), store.StateKey, data, store.Absent); err != nil {
		t.Fatal(err)
	}
	writer := &process{t: t, objects: objects, calls: -1}
	writer.open()
	writer.save("one")
	if _, err := objects.Put(t.Context(), store.JournalKey(0), []byte("{}"), store.Any); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, objects: objects, calls: call, after: after}
	w, _, err := Open(t.Context(), p.store(), stampOf(2))
	if err == nil {
		t.Fatal("a damaged state was read")
	}
	replaced := &state.Document{FormatVersion: state.FormatVersion, Lineage: "l"}
	replaced.LocalPlace = "replaced"
	written := w.Replace(t.Context(), replaced, w.Position().Generation)
	switch read, _, err := Load(t.Context(), objects); {
	case errors.Is(err, state.ErrDamaged) && written != nil:
	case err != nil:
		t.Fatalf("at call %d, which happens: %t: got %v, want ErrDamaged or the new state", call, after, err)
	case read.LocalPlace != "replaced":
		t.Fatalf("at call %d, which happens: %t: got %q, want ErrDamaged or the new state", call, after, read.LocalPlace)
	}
	again, _, _ := Open(t.Context(), objects, stampOf(3))
	if err := again.Replace(t.Context(), replaced, again.Position().Generation); err != nil {
		t.Fatal(err)
	}
	if read, _, err := Load(t.Context(), objects); err != nil || read.LocalPlace != "replaced" {
		t.Fatalf("replaced again: got %v", err)
	}
	return p.dead
}
