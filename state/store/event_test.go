package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// countedEvents are n events that say their numbers, from first.
func countedEvents(first, n int) []state.Event {
	events := make([]state.Event, n)
	for i := range events {
		events[i] = state.Event{At: time.Unix(int64(first+i), 0).UTC(), Kind: state.EventJob, Text: fmt.Sprint(first + i)}
	}
	return events
}

func TestEventReader(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	write := func(epoch uint64, chunk int, events []state.Event) {
		t.Helper()
		data, err := store.EncodeEvents(events)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), store.EventsKey(epoch, chunk), data, store.Any); err != nil {
			t.Fatal(err)
		}
	}
	r := &store.EventReader{Store: s}
	for _, test := range []struct {
		name string
		do   func()
		want string
	}{
		{"none", func() {}, ""},
		{"some", func() { write(1, 0, countedEvents(0, 2)) }, "0 1"},
		{"none again", func() {}, ""},
		{"a chunk that grew", func() { write(1, 0, countedEvents(0, 4)) }, "2 3"},
		{"later chunks and another holder", func() { write(2, 0, countedEvents(7, 1)); write(1, 1, countedEvents(4, 3)) }, "4 5 6 7"},
		{"a chunk that was forgotten", func() {
			if err := s.Delete(t.Context(), store.EventsKey(1, 0)); err != nil {
				t.Fatal(err)
			}
			write(2, 0, countedEvents(7, 2))
		}, "8"},
	} {
		test.do()
		events, err := r.Next(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		var got []string
		for _, e := range events {
			got = append(got, e.Text)
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%s: got %q, want %q", test.name, strings.Join(got, " "), test.want)
		}
	}
}

// Who wants only the last events does not read all that are kept.
func TestEventReaderOfTheLast(t *testing.T) {
	t.Parallel()
	s := storetest.NewMemory()
	const chunks, inOne = 50, 100
	for n := range chunks {
		data, err := store.EncodeEvents(countedEvents(n*inOne, inOne))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), store.EventsKey(1, n), data, store.Any); err != nil {
			t.Fatal(err)
		}
	}
	r := &store.EventReader{Store: s, Last: 20}
	events, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(events) < 20 || len(events) == chunks*inOne || events[len(events)-1].Text != fmt.Sprint(chunks*inOne-1) {
		t.Errorf("%d events, the last %q; want at least 20 of the last", len(events), events[len(events)-1].Text)
	}
	if more, err := r.Next(t.Context()); err != nil || len(more) > 0 {
		t.Errorf("then %d more, error %v; want none", len(more), err)
	}
}

// What is damaged is left out, and nothing else.
func TestDecodeEvents(t *testing.T) {
	t.Parallel()
	data, err := store.EncodeEvents(countedEvents(0, 2))
	if err != nil {
		t.Fatal(err)
	}
	long := []state.Event{{Kind: state.EventJob, Text: strings.Repeat("x", 2<<20)}}
	rest, err := store.EncodeEvents(long)
	if err != nil {
		t.Fatal(err)
	}
	got := store.DecodeEvents(slices.Concat(data, []byte("{\"at\": nonsense\n"), rest))
	if want := append(countedEvents(0, 2), long...); !slices.Equal(got, want) {
		t.Errorf("%d events, want %d", len(got), len(want))
	}
}
