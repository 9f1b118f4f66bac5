package bucket

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/fray-ml/fray/state"
)

// requests counts the requests of a client by the classes of
// https://cloud.google.com/storage/pricing#operations-by-class. It stands below all retries.
type requests struct {
	next http.RoundTripper

	writes, lists, reads, deletes atomic.Uint64
}

// RoundTrip implements [http.RoundTripper].
func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	r.counter(req).Add(1)
	return r.next.RoundTrip(req)
}

// counter is that of a request of the JSON API. The chunks of a resumable upload are one operation with
// the request that began it.
func (r *requests) counter(req *http.Request) *atomic.Uint64 {
	if req.URL.Query().Has("upload_id") {
		return new(atomic.Uint64)
	}
	switch req.Method {
	case http.MethodDelete:
		return &r.deletes
	case http.MethodGet, http.MethodHead:
		if strings.HasSuffix(req.URL.Path, "/o") {
			return &r.lists
		}
		return &r.reads
	}
	return &r.writes
}

// Requests implements [store.Billed].
func (b *Bucket) Requests() state.StoreRequests {
	r := b.requests
	return state.StoreRequests{Writes: r.writes.Load(), Lists: r.lists.Load(), Reads: r.reads.Load(), Deletes: r.deletes.Load()}
}
