package apply_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
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
	r := &apply.Recorder{Store: s, Epoch: 2}
	r.Add(store.Event{Kind: store.EventLease, Text: "somebody leads"})
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
