package surgery

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/fray-ml/fray/stack"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/journal"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
	"github.com/fray-ml/fray/terminal"
)

// deletionOf deletes a workspace in a store.
func deletionOf(t *testing.T, s store.Store, force bool) *Deletion {
	var out bytes.Buffer
	of := &stack.Stack{Site: stack.Site{Workspace: "dev"}, Root: t.TempDir(), Store: s}
	return &Deletion{Terminal: terminal.New(strings.NewReader(""), &out, &out), Stack: of, Force: force}
}

// journaled is a store with a state that has a journal, and the serial of that state.
func journaled(t *testing.T) (*storetest.Memory, uint64) {
	t.Helper()
	s := storetest.NewMemory()
	put := func(key string, data []byte) {
		if _, err := s.Put(t.Context(), key, data, store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	data, err := state.Encode(state.Document{Lineage: "l", Serial: 1, Nonce: "first"})
	if err != nil {
		t.Fatal(err)
	}
	put(store.StateKey, data)
	put(stack.WorkspaceKey, []byte("{}"))
	put(store.LogsPrefix+"a", []byte("log"))
	w, doc, err := journal.Open(t.Context(), s, journal.Stamp{Version: "v", Epoch: 1, Valid: func() error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		next := doc.Clone()
		next.LocalPlace = strings.Repeat("x", 2<<20) // a small state has no journal
		next.Revision++
		if err := w.Save(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		doc = next
	}
	if slots, err := s.List(t.Context(), store.JournalPrefix); err != nil || len(slots) < 3 {
		t.Fatalf("got %d entries in the journal, %v; want some", len(slots), err)
	}
	return s, w.Position().Serial
}

// TestACrashLeavesNoOlderState: wherever a deletion ends, the state that is left is the one that was, or
// there is none. It can be run again.
func TestACrashLeavesNoOlderState(t *testing.T) {
	errCrash := errors.New("crash")
	for crash, done := 0, false; !done; crash++ {
		s, serial := journaled(t)
		deletes := 0
		faulty := &storetest.Faulty{Store: s, Before: func(op storetest.Op, key string) error {
			if op != storetest.OpDelete || key == store.LeaseKey {
				return nil
			}
			if deletes++; deletes > crash {
				return errCrash
			}
			return nil
		}}
		err := deletionOf(t, faulty, false).Run(t.Context())
		if done = err == nil; !done && !errors.Is(err, errCrash) {
			t.Fatalf("crash at delete %d: %v", crash, err)
		}
		if done && crash < 6 {
			t.Fatalf("%d objects were deleted, want those of a journal, too", crash)
		}
		doc, at, err := journal.Load(t.Context(), s)
		if !errors.Is(err, store.ErrNotFound) && (err != nil || at.Serial != serial || doc.Revision != 4) {
			t.Errorf("crash at delete %d: the state has serial %d, %v; want %d, or none", crash, at.Serial, err, serial)
		}
		if !done {
			if err := deletionOf(t, s, false).Run(t.Context()); err != nil {
				t.Errorf("crash at delete %d, and again: %v", crash, err)
			}
		}
		if left, err := s.List(t.Context(), ""); err != nil || len(left) > 0 {
			t.Errorf("crash at delete %d: %v is left, %v", crash, left, err)
		}
	}
}

// TestAStateThatIsLostHidesNoSlices: a workspace without a state is not one in which nothing runs.
func TestAStateThatIsLostHidesNoSlices(t *testing.T) {
	s := storetest.NewMemory()
	for _, key := range []string{stack.WorkspaceKey, store.AssignKey("a-0"), store.LogsPrefix + "a"} {
		if _, err := s.Put(t.Context(), key, []byte("{}"), store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	if err := deletionOf(t, s, false).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "has no state, and 1 slice may run in it") {
		t.Errorf("got %v, want that a slice may run there", err)
	}
	if err := deletionOf(t, s, true).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	left, err := s.List(t.Context(), "")
	if err != nil || len(left) != 1 || left[0].Key != store.AssignKey("a-0") {
		t.Errorf("%v is left, %v; want the assignment, by which the slice is found again", left, err)
	}
}
