package rehearse

import (
	"errors"
	"testing"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// An observer counts the silence of a host from when it began, however seldom it looks,
// and never that of one that lives.
func TestSilence(t *testing.T) {
	now := began()
	m := newMemory(func() time.Time { return now })
	for n := range 2 {
		m.report(state.HostReport{Slice: "a", Host: n, Address: "10.0.0.1"})
	}
	o := apply.Observer{Store: m, Now: func() time.Time { return now }}
	silent := func(host int) time.Duration {
		t.Helper()
		obs, err := o.Observe(t.Context(), "stack")
		if err != nil {
			t.Fatal(err)
		}
		return obs.Hosts["a"][host].SilentFor(obs.Monitored)
	}
	silent(0)
	now = now.Add(20 * time.Minute)
	m.silence("a", 1)
	now = now.Add(30 * time.Second)
	if got := silent(1); got != 30*time.Second {
		t.Errorf("silent for %s, want 30s", got)
	}
	now = now.Add(time.Hour)
	if got, want := silent(1), time.Hour+30*time.Second; got != want {
		t.Errorf("silent for %s, want %s", got, want)
	}
	if got := silent(0); got != 0 {
		t.Errorf("a living host was silent for %s", got)
	}
	m.report(state.HostReport{Slice: "a", Host: 1, Address: "10.0.0.1"})
	if got := silent(1); got != 0 {
		t.Errorf("a host that is back was silent for %s", got)
	}
}

// The state is encoded when it is read, and then is the one that was written last.
func TestDocumentIsEncodedWhenItIsRead(t *testing.T) {
	m := newMemory(began)
	doc := &state.Document{FormatVersion: state.FormatVersion, Lineage: lineage, Serial: 7}
	first, err := m.PutDocument(t.Context(), doc, store.Absent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.PutDocument(t.Context(), doc, store.Absent); !errors.Is(err, store.ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	if m.objects[store.StateKey].Data != nil {
		t.Error("the state is encoded before a reader needs it")
	}
	for range 2 {
		object, err := m.Get(t.Context(), store.StateKey)
		if err != nil {
			t.Fatal(err)
		}
		read, err := state.Decode(object.Data)
		if err != nil || read.Serial != 7 || object.Generation != first {
			t.Errorf("got serial %d of generation %d, %v, want 7 of %d", read.Serial, object.Generation, err, first)
		}
	}
}

// An agent that lives reports again after its report was removed, a dead one does not.
func TestRemovedReports(t *testing.T) {
	m := newMemory(began)
	m.report(state.HostReport{Slice: "a", Host: 0})
	m.report(state.HostReport{Slice: "a", Host: 1})
	m.silence("a", 1)
	before, err := m.Get(t.Context(), store.HostKey("a", 0))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		if err := m.Delete(t.Context(), store.HostKey("a", n)); err != nil {
			t.Fatal(err)
		}
	}
	left, err := m.List(t.Context(), store.HostsPrefix)
	if err != nil || len(left) != 1 || left[0].Key != before.Key || left[0].Generation <= before.Generation {
		t.Errorf("got %v, %v, want the living one, later than %d", left, err, before.Generation)
	}
}
