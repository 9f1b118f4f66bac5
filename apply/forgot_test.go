package apply

import (
	"errors"
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
