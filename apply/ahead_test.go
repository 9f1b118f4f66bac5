package apply

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fray-ml/fray/apply/mail"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// What a controller read of assignments before it leads is not read again, unless it has changed
// since, and it observes what one sees that has read nothing.
func TestAssignmentsThatWereReadAhead(t *testing.T) {
	var read []string
	s := &storetest.Faulty{Store: storetest.NewMemory(), Before: func(op storetest.Op, key string) error {
		if op == storetest.OpGet && strings.HasPrefix(key, store.AssignPrefix) {
			read = append(read, key)
		}
		return nil
	}}
	assign := func(slice string, generation int64) {
		t.Helper()
		data, err := json.Marshal(state.Assignment{Slice: slice, Generation: generation})
		if err == nil {
			_, err = s.Put(t.Context(), store.AssignKey(slice), data, store.Any)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, slice := range []string{"a", "b", "c", "d"} {
		assign(slice, 1)
	}
	if _, err := s.Put(t.Context(), store.AssignKey("e"), []byte("no JSON"), store.Absent); err != nil {
		t.Fatal(err)
	}
	known := mail.NewAhead(s)
	for range 2 {
		if err := known.Read(t.Context()); err != nil || len(read) != 5 {
			t.Fatalf("read %v, %v; want each once", read, err)
		}
	}
	assign("b", 2)
	if err := known.Read(t.Context()); err != nil || len(read) != 6 {
		t.Fatalf("read %v, %v; want what has changed", read, err)
	}
	assign("c", 2)
	assign("f", 1)
	if err := s.Delete(t.Context(), store.AssignKey("d")); err != nil {
		t.Fatal(err)
	}
	read = nil
	o, fresh := &Observer{Store: s}, &Observer{Store: s}
	o.look.ahead = known
	got, err := o.Observe(t.Context(), "stack")
	if slices.Sort(read); err != nil || !slices.Equal(read, []string{store.AssignKey("c"), store.AssignKey("f")}) {
		t.Errorf("a controller that begins reads %v, %v; want what has changed", read, err)
	}
	want, err := fresh.Observe(t.Context(), "stack")
	if err != nil || !reflect.DeepEqual(got.Assignments, want.Assignments) || !reflect.DeepEqual(got.Damaged, want.Damaged) || !reflect.DeepEqual(got.Changed, want.Changed) {
		t.Errorf("it observes %+v\nwant %+v, %v", got, want, err)
	}
	if len(got.Damaged) != 1 || got.Assignments["b"].Generation != 2 || o.look.ahead != nil {
		t.Errorf("it observes %+v, and keeps what was read before: %t", got, o.look.ahead != nil)
	}
}
