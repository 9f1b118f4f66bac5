package apply_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// The reply to a write is lost, and so is the look that would have told that it
// had won: the next save builds upon it.
func TestALostReplyAndALostReadAreNoOtherClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		lost := errors.New("connection reset")
		losing := false
		cfg := w.config()
		cfg.Store = &storetest.Faulty{
			Store: w,
			Before: func(op storetest.Op, key string) error {
				if losing && op == storetest.OpGet && key == store.StateKey {
					return lost
				}
				return nil
			},
			After: func(op storetest.Op, key string) error {
				if losing && op == storetest.OpPut && key == store.StateKey {
					return lost
				}
				return nil
			},
		}
		s := newStepper(t, cfg)
		accept(t, s, jobs(1))
		serial := stateIn(t, w).Serial
		time.Sleep(apply.SaveInterval)
		losing = true
		if err := s.Accept(t.Context(), apply.Accept(s.Document(), apply.Request{Desired: jobs(2)})); !errors.Is(err, lost) {
			t.Fatalf("save with everything lost = %v, want %v", err, lost)
		}
		losing = false
		time.Sleep(apply.SaveInterval)
		for range 2 { // the first finds out, the second writes
			if err := s.Save(t.Context()); errors.Is(err, apply.ErrStateMoved) {
				t.Fatalf("save = %v: that was its own write", err)
			}
			time.Sleep(apply.SaveInterval)
		}
		if got := stateIn(t, w); got.Serial != serial+2 || len(got.Desired.Jobs) != 2 {
			t.Errorf("serial %d with %d jobs, want %d with 2", got.Serial, len(got.Desired.Jobs), serial+2)
		}
	})
}

func stateIn(t *testing.T, s store.Store) state.Document {
	t.Helper()
	object, err := s.Get(t.Context(), store.StateKey)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := state.Decode(object.Data)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
