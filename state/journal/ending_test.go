package journal

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// opened is a writer of a new state with that journal.
func opened(t *testing.T, s store.Store, j *state.Journal) (*Writer, *state.Document) {
	t.Helper()
	doc := state.Document{Lineage: "l", Serial: 1, Nonce: "first"}
	doc.Journal = j
	data, err := state.Encode(doc)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), store.StateKey, data, store.Absent); err != nil {
		t.Fatal(err)
	}
	w, read, err := Open(t.Context(), s, stampOf(1))
	if err != nil {
		t.Fatal(err)
	}
	return w, read
}

// A state that was large is one object that people can read, once it is small.
func TestASmallStateIsOneObject(t *testing.T) {
	s := storetest.NewMemory()
	w, doc := opened(t, s, nil)
	for _, size := range []int{1 << 20, 1 << 10, 600 << 10, 1 << 20, 600 << 10} {
		next := doc.Clone()
		next.LocalPlace = strings.Repeat("x", size)
		if err := w.Save(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		doc = next
		object, err := s.Get(t.Context(), store.StateKey)
		if err != nil {
			t.Fatal(err)
		}
		read, at, err := Load(t.Context(), s)
		if err != nil || read.LocalPlace != next.LocalPlace || read.Serial != w.at.Serial {
			t.Fatalf("%d bytes: got %d bytes, %v", size, len(read.LocalPlace), err)
		}
		large := size == 1<<20 || size == 600<<10 && at.journal != nil
		if large != (at.journal != nil) || state.IsCompressed(object.Data) && !large {
			t.Errorf("%d bytes: got a journal: %t, compressed: %t", size, at.journal != nil, state.IsCompressed(object.Data))
		}
	}
	if w.at.journal == nil {
		t.Error("600 KiB of a state that had more have no journal: it goes to and fro")
	}
}

// Nothing of what was written before is left after a consolidation, which a new key needs: not
// either of a journal that has ended.
func TestAConsolidationLeavesNothingBehind(t *testing.T) {
	for _, below := range []int{0, wholeBelow} {
		s := storetest.NewMemory()
		w, doc := opened(t, s, &state.Journal{ID: "j", Slots: 3, WholeBelow: below})
		for i := range 2 {
			doc = doc.Clone()
			doc.LocalPlace = fmt.Sprint("place ", i)
			if err := w.append(t.Context(), w.stamped(doc)); err != nil { // as Save does where the state is not small yet
				t.Fatal(err)
			}
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		w, _, err := Open(t.Context(), s, stampOf(2))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Consolidate(t.Context()); err != nil {
			t.Fatal(err)
		}
		slots, err := s.List(t.Context(), store.JournalPrefix)
		if err != nil || len(slots) == 0 {
			t.Fatalf("got %v, %v, want slots", slots, err)
		}
		for _, slot := range slots {
			if object, err := s.Get(t.Context(), slot.Key); err != nil || strings.Contains(string(object.Data), "place ") {
				t.Errorf("whole below %d: %s has %s, %v", below, slot.Key, object.Data, err)
			}
		}
		if read, _, err := Load(t.Context(), s); err != nil || read.LocalPlace != "place 1" {
			t.Errorf("whole below %d: got %v, want the last place", below, err)
		}
	}
}

// Who has ended a journal has not moved the state: others who are up to date go on.
func TestTheEndOfAJournalIsNoSave(t *testing.T) {
	for name, end := range map[string]func(w *Writer) error{
		"ended":  func(w *Writer) error { w.end(t.Context()); return nil },
		"united": func(w *Writer) error { return w.Flush(t.Context()) },
	} {
		s := storetest.NewMemory()
		first, doc := opened(t, s, &state.Journal{ID: "j", Slots: 3, WholeBelow: wholeBelow})
		first.at.small = false // it is about to find that out
		other, _, err := Open(t.Context(), s, stampOf(2))
		if err != nil {
			t.Fatal(err)
		}
		third, _, err := Open(t.Context(), s, stampOf(3))
		if err != nil {
			t.Fatal(err)
		}
		if err := end(third); err != nil {
			t.Fatal(err)
		}
		other.end(t.Context())
		next := doc.Clone()
		next.LocalPlace = "next"
		if err := first.Save(t.Context(), next); err != nil {
			t.Errorf("%s: got %v, want that it goes on", name, err)
		}
		for i, w := range []*Writer{other, third} {
			if err := w.Save(t.Context(), doc.Clone()); !errors.Is(err, ErrMoved) {
				t.Errorf("%s: writer %d: got %v, want ErrMoved", name, i, err)
			}
		}
		if read, _, err := Load(t.Context(), s); err != nil || read.LocalPlace != "next" {
			t.Errorf("%s: got %v, want what was saved", name, err)
		}
	}
}
