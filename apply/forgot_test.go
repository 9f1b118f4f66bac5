package apply

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// noStreams are streams by which no host reports.
type noStreams struct{ unassigned []string }

func (*noStreams) Take(time.Duration) []LiveHost             { return nil }
func (*noStreams) Assigned(string, state.Generation, []byte) {}
func (s *noStreams) Unassigned(slice string)                 { s.unassigned = append(s.unassigned, slice) }

// What the executor has removed is not observed any more, before the store is listed again; what
// it could not remove is.
func TestForgottenMailboxes(t *testing.T) {
	s, streams := storetest.NewMemory(), &noStreams{}
	for key, data := range map[string]string{
		store.AssignKey("a"): `{"slice":"a"}`, store.HostKey("a", 0): `{"slice":"a"}`, store.BootPrefix + "a/0": "booting", store.HostKey("b", 0): `{"slice":"b"}`,
	} {
		if _, err := s.Put(t.Context(), key, []byte(data), store.Absent); err != nil {
			t.Fatal(err)
		}
	}
	o := &Observer{Store: s, Live: streams}
	if _, err := o.Observe(t.Context(), "stack"); err != nil {
		t.Fatal(err)
	}
	if len(o.assigned) != 1 || len(o.hosts) != 2 || len(o.booting) != 1 {
		t.Fatalf("observed %v, %v and %v", o.assigned, o.hosts, o.booting)
	}
	before := o.hosts
	for slice, err := range map[string]error{"a": nil, "b": errors.New("permission denied")} {
		o.forgot((&result{action: plan.Action{Verb: plan.ForgetSlice, Slice: &schema.SliceSpec{Name: slice}}, err: err}).forgotten())
	}
	if len(o.assigned) != 0 || len(o.hosts) != 1 || len(o.booting) != 0 || !o.changing["a"] || o.changing["b"] || len(streams.unassigned) != 1 {
		t.Errorf("observed %v, %v, %v, changing %v; want nothing of a", o.assigned, o.hosts, o.booting, o.changing)
	}
	if len(before) != 2 {
		t.Error("an earlier observation has changed")
	}
}

// However much is removed between two observations, what was observed before is copied once, and
// stays as it was.
func TestObservationsKeepTheirMaps(t *testing.T) {
	s := storetest.NewMemory()
	slices := []string{"a", "b", "c", "d"}
	for _, slice := range slices {
		for key, data := range map[string]string{store.AssignKey(slice): `{"slice":"` + slice + `"}`, store.HostKey(slice, 0): `{"slice":"` + slice + `"}`} {
			if _, err := s.Put(t.Context(), key, []byte(data), store.Absent); err != nil {
				t.Fatal(err)
			}
		}
	}
	o := &Observer{Store: s, Live: &noStreams{}}
	left := len(slices)
	for _, two := range [][]string{slices[:2], slices[2:]} {
		obs, err := o.Observe(t.Context(), "stack")
		if err != nil {
			t.Fatal(err)
		}
		for _, slice := range two {
			o.forgot(slice)
		}
		if len(obs.Assignments) != left || len(obs.Hosts) != left {
			t.Errorf("an observation of %d slices has %d assignments and hosts of %d after two were forgotten", left, len(obs.Assignments), len(obs.Hosts))
		}
		if left -= 2; len(o.assigned) != left || len(o.hosts) != left {
			t.Errorf("%d assignments and hosts of %d are left, want %d", len(o.assigned), len(o.hosts), left)
		}
		assigned, hosts := reflect.ValueOf(o.assigned).Pointer(), reflect.ValueOf(o.hosts).Pointer()
		o.forgot("nothing")
		if reflect.ValueOf(o.assigned).Pointer() != assigned || reflect.ValueOf(o.hosts).Pointer() != hosts {
			t.Error("the maps were copied again")
		}
	}
}
