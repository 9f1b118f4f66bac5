package apply_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// What is kept of the past is bounded by its size, not by who wrote how much at
// a time: many short applies leave many small chunks.
func TestRecorderKeepsTheNewestTenMegabytes(t *testing.T) {
	s := storetest.NewMemory()
	for n := range 30 {
		if _, err := s.Put(t.Context(), store.EventsKey(1, n), bytes.Repeat([]byte{'\n'}, 1<<20), store.Any); err != nil {
			t.Fatal(err)
		}
	}
	r := &apply.Recorder{Store: s, Epoch: 2, Valid: func() error { return nil }}
	r.Add(state.Event{Kind: state.EventLease, Text: "a controller leads"})
	if err := r.Save(t.Context(), time.Now(), true); err != nil {
		t.Fatal(err)
	}
	listed, err := s.List(t.Context(), store.EventsPrefix)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(len(listed), listed[0].Key), fmt.Sprint(11, store.EventsKey(1, 20)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Who has lost the lease meanwhile writes nothing, and forgets nothing.
func TestRecorderAsksTheLeaseBeforeEachWrite(t *testing.T) {
	for holds, want := range []string{"1 events/000000000001-00000000", "0", "1 events/000000000002-00000000"} {
		s := storetest.NewMemory()
		if _, err := s.Put(t.Context(), store.EventsKey(1, 0), make([]byte, 11<<20), store.Any); err != nil {
			t.Fatal(err)
		}
		asked := 0
		r := &apply.Recorder{Store: s, Epoch: 2, Valid: func() error {
			if asked++; asked > holds {
				return store.ErrLeaseLost
			}
			return nil
		}}
		r.Add(state.Event{Kind: state.EventLease, Text: "a controller leads"})
		if err := r.Save(t.Context(), time.Now(), true); (err != nil) != (holds < 2) {
			t.Errorf("the lease holds for %d writes: %v", holds, err)
		}
		listed, err := s.List(t.Context(), store.EventsPrefix)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(len(listed))
		for _, each := range listed {
			got += " " + each.Key
		}
		if got != want {
			t.Errorf("the lease holds for %d writes: there is %q, want %q", holds, got, want)
		}
	}
}
