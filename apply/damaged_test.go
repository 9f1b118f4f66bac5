package apply_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// A report that is none leaves its host as it was, and all others seen.
func TestDamagedReportHidesNoOther(t *testing.T) {
	s := storetest.NewMemory()
	put := func(key string, data []byte) {
		t.Helper()
		if _, err := s.Put(t.Context(), key, data, store.Any); err != nil {
			t.Fatal(err)
		}
	}
	report := func(slice string, seq uint64) []byte {
		data, err := json.Marshal(state.HostReport{Slice: slice, Seq: seq, Address: "10.0.0.1"})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	o := &apply.Observer{Store: s}
	put(store.HostKey("a", 0), report("a", 1))
	put(store.HostKey("b", 0), []byte("{\"slice\": \"b"))
	for range 2 {
		obs, err := o.Observe(t.Context(), "stack")
		if err != nil || len(obs.Hosts["a"]) != 1 || len(obs.Hosts["b"]) != 0 {
			t.Fatalf("got hosts %v, %v; want the one of a", obs.Hosts, err)
		}
	}
	put(store.HostKey("b", 0), report("b", 2))
	put(store.HostKey("a", 0), []byte("nonsense"))
	obs, err := o.Observe(t.Context(), "stack")
	if err != nil || len(obs.Hosts["a"]) != 1 || len(obs.Hosts["b"]) != 1 {
		t.Errorf("got hosts %v, %v; want both, a as it was", obs.Hosts, err)
	}
}

// A damaged assignment is told of and written again as it was, and nothing that
// runs ends by it, nor under a controller that never saw it whole.
func TestDamagedAssignmentIsWrittenAgain(t *testing.T) {
	for _, restarted := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarted=%v", restarted), func(t *testing.T) {
			w := newWorld()
			s := newStepper(t, w.config())
			accept(t, s, jobs(2))
			converge(t, s)
			if err := s.Save(t.Context()); err != nil {
				t.Fatal(err)
			}
			key := store.AssignKey(w.created[0])
			before := assignmentIn(t, w, key)
			object, err := w.Store.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			broken := bytes.Replace(object.Data, []byte(`"true"`), []byte(`"trud"`), 1)
			if _, err := w.Store.Put(t.Context(), key, broken, object.Generation); err != nil {
				t.Fatal(err)
			}
			if _, err := store.DecodeAssignment(broken); !errors.Is(err, store.ErrDamaged) {
				t.Fatalf("got %v, want a damaged assignment to begin with", err)
			}
			if restarted {
				cfg := w.config()
				cfg.Epoch = 2
				s = newStepper(t, cfg)
			}
			if _, err := s.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			drift := s.Last().Drift
			if len(drift) != 1 || drift[0].Slice != w.created[0] || !strings.Contains(drift[0].Found, "cannot be read") {
				t.Errorf("got drift %+v, want that the assignment cannot be read", drift)
			}
			converge(t, s)
			after := assignmentIn(t, w, key)
			if after.Generation != before.Generation || after.Run == nil || after.Run.Attempt != 1 || !reflect.DeepEqual(after.Run.Spec, before.Run.Spec) {
				t.Errorf("got %+v, want it as it was: %+v", after, before)
			}
			for _, j := range s.Document().Jobs {
				if j.Attempt != 1 || j.Failures != 0 || j.Status != schema.JobRunning {
					t.Errorf("got job %+v, want attempt 1, running, no failures", j)
				}
			}
			if len(w.created) != 2 {
				t.Errorf("got slices %v created, want two", w.created)
			}
		})
	}
}

// One on a slice where nothing is recorded to run is replaced by one that runs nothing.
func TestDamagedAssignmentOfAnIdleSlice(t *testing.T) {
	w := newWorld()
	s := newStepper(t, w.config())
	one := schema.Capacity{CPU: 1, Slices: 1}
	accept(t, s, schema.Desired{Providers: []schema.Provider{{Name: schema.ProviderLocal}}, Reservations: []schema.Reservation{{
		Addr: schema.Address{Kind: schema.KindReservation, Name: "pool"}, Provider: schema.ProviderLocal, Min: one, Max: one,
	}}})
	converge(t, s)
	key := store.AssignKey(w.created[0])
	if _, err := w.Store.Put(t.Context(), key, []byte(`{"slice":"`), store.Any); err != nil {
		t.Fatal(err)
	}
	converge(t, s)
	if a := assignmentIn(t, w, key); a.Run != nil || a.Generation == 0 || a.Stack != s.Document().Stack() {
		t.Errorf("got %+v, want one of this stack that runs nothing", a)
	}
	if len(w.created) != 1 {
		t.Errorf("got slices %v created, want one", w.created)
	}
}

func assignmentIn(t *testing.T, s store.Store, key string) state.Assignment {
	t.Helper()
	object, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	a, err := store.DecodeAssignment(object.Data)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
