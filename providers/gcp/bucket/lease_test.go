package bucket

import (
	"testing"

	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/state/store"
)

// Three single faults after which Terraform's state in a bucket needs a hand:
// it then finds itself to be the holder of its lock, or stays locked, or has
// lost the state that it could not write. Those that are like them come after.
func TestFaultsThatBreakTerraformsBackend(t *testing.T) {
	replyLost, hangs := clienttest.Fault{Happen: true}, clienttest.Fault{Happen: true, Stall: true}
	before, after := clienttest.Fault{Status: 503, Body: clienttest.Busy}, clienttest.Fault{Status: 503, Body: clienttest.Busy, Happen: true}
	tests := []struct {
		name  string
		fault clienttest.Fault
		run   func(t *testing.T, w *buckettest.Wire, f clienttest.Fault)
	}{
		{"the reply to taking the lock lost", replyLost, takingTheLock},
		{"the reply to releasing it lost", replyLost, releasingTheLock},
		{"one 503 on the state write", before, writingTheState},

		{"one 503 on taking the lock", before, takingTheLock},
		{"one 503 on taking the lock, after it happened", after, takingTheLock},
		{"taking the lock stalls, after it happened", hangs, takingTheLock},
		{"one 503 on releasing it", before, releasingTheLock},
		{"one 503 on releasing it, after it happened", after, releasingTheLock},
		{"releasing it stalls, after it happened", hangs, releasingTheLock},
		{"the reply to the state write lost", replyLost, writingTheState},
		{"one 503 on the state write, after it happened", after, writingTheState},
		{"the state write stalls, after it happened", hangs, writingTheState},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := buckettest.New(t)
			test.run(t, w, test.fault)
			w.Left(t)
		})
	}
}

func takingTheLock(t *testing.T, w *buckettest.Wire, f clienttest.Fault) {
	b, other := opened(t, w, impatient()), opened(t, w, clienttest.Quick())
	w.Inject(buckettest.ReqPut, f)
	held := take(t, b, 1)
	if _, err := store.Acquire(t.Context(), other, store.LeaseConfig{}); err == nil {
		t.Error("a second one holds it too")
	}
	release(t, held)
	release(t, take(t, other, 2))
}

func releasingTheLock(t *testing.T, w *buckettest.Wire, f clienttest.Fault) {
	b, other := opened(t, w, impatient()), opened(t, w, clienttest.Quick())
	held := take(t, b, 1)
	w.Inject(buckettest.ReqPut, f)
	release(t, held)
	release(t, take(t, other, 2)) // it needs no unlocking
}

func writingTheState(t *testing.T, w *buckettest.Wire, f clienttest.Fault) {
	b := opened(t, w, impatient())
	gen := put(t, b, store.StateKey, "before", store.Absent)
	w.Inject(buckettest.ReqPut, f)
	gen = put(t, b, store.StateKey, "after", gen)
	if present := wantContent(t, b, store.StateKey, "after"); present != gen {
		t.Errorf("generation %d is there, want %d", present, gen)
	}
}

// take takes the lease without waiting.
func take(t *testing.T, b *Bucket, epoch uint64) *store.Held {
	t.Helper()
	held, err := store.Acquire(t.Context(), b, store.LeaseConfig{Command: "fray apply"})
	if err != nil {
		t.Fatal(err)
	}
	if held.Epoch() != epoch || held.Valid() != nil {
		t.Errorf("got epoch %d, %v, want %d, valid", held.Epoch(), held.Valid(), epoch)
	}
	return held
}

func release(t *testing.T, held *store.Held) {
	t.Helper()
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
}
