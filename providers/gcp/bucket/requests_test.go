package bucket

import (
	"bytes"
	"net/http"
	"testing"

	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Each try is a request that is billed. The counts are those of the wire, which sees what arrives.
func TestRequestsAreCounted(t *testing.T) {
	w := buckettest.New(t)
	b := opened(t, w, clienttest.Quick())
	before := b.Requests()
	w.Inject(buckettest.ReqPut, clienttest.Fault{Status: http.StatusServiceUnavailable})
	w.Inject(buckettest.ReqGet, clienttest.Fault{Status: http.StatusServiceUnavailable}, clienttest.Fault{Status: http.StatusServiceUnavailable})
	for range 3 {
		if _, err := b.Put(t.Context(), "state.json", []byte("{}"), store.Any); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Get(t.Context(), "state.json"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.List(t.Context(), "st"); err != nil {
		t.Fatal(err)
	}
	if err := b.Upload(t.Context(), "blob/large", bytes.NewReader(make([]byte, 40<<20))); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), "state.json"); err != nil {
		t.Fatal(err)
	}
	seen := w.Count()
	if seen[buckettest.ReqChunk] < 2 || seen[buckettest.ReqGet] != 3 {
		t.Errorf("the wire saw %v: the test counts on chunks, and on three tries of the read", seen)
	}
	want := state.StoreRequests{
		Writes:  uint64(seen[buckettest.ReqPut] + seen[buckettest.ReqSession]),
		Lists:   uint64(seen[buckettest.ReqList]),
		Reads:   uint64(seen[buckettest.ReqGet] + seen[buckettest.ReqStat]),
		Deletes: uint64(seen[buckettest.ReqDelete]),
	}
	if got := b.Requests().Since(before); got != want {
		t.Errorf("got %+v, the wire saw %+v", got, want)
	}
}
