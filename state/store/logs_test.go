package store_test

import (
	"errors"
	"testing"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

func TestReadLog(t *testing.T) {
	s := storetest.NewMemory()
	for i, chunk := range []string{"0123", "4567", "89"} {
		if _, err := s.Put(t.Context(), store.LogKey("job", 1, 2, i), []byte(chunk), store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	of := store.LogName{Job: "job", Attempt: 1, Task: 2}
	const all = "0123456789"
	for from := int64(0); from <= 12; from++ {
		var got string
		next, err := store.ReadLog(t.Context(), s, of, from, func(data []byte) error {
			got += string(data)
			return nil
		})
		if want := all[min(from, 10):]; err != nil || got != want || next != max(from, 10) {
			t.Errorf("from %d: %q, next %d, %v; want %q, %d", from, got, next, err, want, max(from, 10))
		}
	}
	enough := errors.New("enough")
	next, err := store.ReadLog(t.Context(), s, of, 1, func(data []byte) error {
		if string(data) == "4567" {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || next != 4 {
		t.Errorf("broken off: next %d, %v; want 4", next, err)
	}
	if size, err := store.LogSize(t.Context(), s, of); err != nil || size != 10 {
		t.Errorf("LogSize = %d, %v", size, err)
	}
	if next, err := store.ReadLog(t.Context(), s, store.LogName{Job: "other"}, 0, nil); err != nil || next != 0 {
		t.Errorf("of nothing: %d, %v", next, err)
	}
}
