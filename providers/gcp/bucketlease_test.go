package gcp

import (
	"testing"

	"github.com/fray-ml/fray/state/store"
)

// Three single faults after which Terraform's state in a bucket needs a hand:
// it then finds itself to be the holder of its lock, or stays locked, or has
// lost the state that it could not write.
func TestFaultsThatBreakTerraformsBackend(t *testing.T) {
	faults := []fault{
		{name: "reply lost", happen: true},
		{name: "503 after it happened", status: 503, body: busy, happen: true},
		{name: "503", status: 503, body: busy},
		{name: "stalled after it happened", stall: true, happen: true},
	}
	run := func(name string, test func(t *testing.T, w *wire, f fault)) {
		for _, f := range faults {
			t.Run(name+", "+f.name, func(t *testing.T) {
				w := newWire(t)
				test(t, w, f)
				w.left(t)
			})
		}
	}
	take := func(t *testing.T, b *Bucket, epoch uint64) *store.Held {
		held, err := store.Acquire(t.Context(), b, store.LeaseConfig{Command: "fray apply"})
		if err != nil {
			t.Fatal(err)
		}
		if held.Epoch() != epoch || held.Valid() != nil {
			t.Errorf("got epoch %d, %v, want %d, valid", held.Epoch(), held.Valid(), epoch)
		}
		return held
	}
	release := func(t *testing.T, held *store.Held) {
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	run("taking the lease", func(t *testing.T, w *wire, f fault) {
		b, other := w.open(t, impatient()), w.open(t, quick())
		w.inject(reqPut, f)
		held := take(t, b, 1)
		if _, err := store.Acquire(t.Context(), other, store.LeaseConfig{}); err == nil {
			t.Error("a second one holds it too")
		}
		release(t, held)
		release(t, take(t, other, 2))
	})
	run("releasing the lease", func(t *testing.T, w *wire, f fault) {
		b, other := w.open(t, impatient()), w.open(t, quick())
		held := take(t, b, 1)
		w.inject(reqPut, f)
		release(t, held)
		release(t, take(t, other, 2)) // nobody has to unlock it
	})
	run("writing state", func(t *testing.T, w *wire, f fault) {
		b := w.open(t, impatient())
		gen := put(t, b, store.StateKey, "before", store.Absent)
		w.inject(reqPut, f)
		gen = put(t, b, store.StateKey, "after", gen)
		if present := wantContent(t, b, store.StateKey, "after"); present != gen {
			t.Errorf("generation %d is there, want %d", present, gen)
		}
	})
}
