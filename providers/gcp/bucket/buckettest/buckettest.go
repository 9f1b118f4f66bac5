package buckettest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsouza/fake-gcs-server/fakestorage"

	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
)

// Request is a kind of request to the service.
type Request string

// The kinds of requests.
const (
	ReqGet     Request = "get"     // an object's content
	ReqStat    Request = "stat"    // its attributes
	ReqPut     Request = "put"     // a whole object
	ReqSession Request = "session" // the begin of an upload in chunks
	ReqChunk   Request = "chunk"
	ReqList    Request = "list"
	ReqDelete  Request = "delete"
)

// KindOf is the kind of a request.
func KindOf(r *http.Request) Request {
	upload := r.URL.Query()
	switch {
	case upload.Has("upload_id"):
		return ReqChunk
	case upload.Get("uploadType") == "resumable":
		return ReqSession
	case upload.Get("uploadType") == "multipart", upload.Get("uploadType") == "media":
		return ReqPut
	case r.Method == http.MethodDelete:
		return ReqDelete
	case strings.HasSuffix(r.URL.Path, "/o"):
		return ReqList
	case upload.Get("alt") == "media":
		return ReqGet
	}
	return ReqStat
}

// Wire stands between a Bucket and the emulator, on real connections: it counts
// what passes, and injects faults.
type Wire struct {
	*httptest.Server
	Service *fakestorage.Server

	chunks sync.Mutex // held while one is served

	mu       sync.Mutex
	counts   map[Request]int
	faults   map[Request][]clienttest.Fault         // for the requests to come
	chance   func(Request) (clienttest.Fault, bool) // in place of faults: whether something happens to a request, and what
	seen     []*http.Request
	stalled  []*http.Request
	replies  map[string]*httptest.ResponseRecorder // of chunks that arrived
	Page     int                                   // the most objects that a list returns; 0: as many as asked for
	Interval time.Duration                         // between two writes of one object; 0: any
	written  map[string]time.Time                  // by name
	Rejected int                                   // for coming too early
}

// New starts an emulator with the bucket acme behind a wire, for as long as the test runs.
func New(t testing.TB) *Wire {
	t.Helper()
	service, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{
		Service: service, counts: map[Request]int{}, faults: map[Request][]clienttest.Fault{},
		replies: map[string]*httptest.ResponseRecorder{}, written: map[string]time.Time{},
	}
	service.CreateBucketWithOpts(fakestorage.CreateBucketOpts{Name: "acme"})
	w.Server = httptest.NewServer(w)
	t.Cleanup(func() {
		w.CloseClientConnections() // ends what stalls
		w.Close()
		service.Stop()
	})
	return w
}

// Inject does something to the next requests of a kind, one fault each.
func (w *Wire) Inject(kind Request, faults ...clienttest.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[kind] = append(w.faults[kind], faults...)
}

// Always decides over every request from now on; nil: as injected.
func (w *Wire) Always(chance func(Request) (clienttest.Fault, bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chance = chance
}

// keep stores a request that has been given up, for it to arrive late.
func (w *Wire) keep(r *http.Request, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	late := r.Clone(context.WithoutCancel(r.Context()))
	late.Body = io.NopCloser(bytes.NewReader(body))
	w.stalled = append(w.stalled, late)
}

// Requests are all that have come, or those that have stalled.
func (w *Wire) Requests(stalled bool) []*http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stalled {
		return slices.Clone(w.stalled)
	}
	return slices.Clone(w.seen)
}

// Left returns which faults were never met.
func (w *Wire) Left(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, faults := range w.faults {
		if len(faults) > 0 {
			t.Errorf("%d faults of %s were never met", len(faults), kind)
		}
	}
}

// Count forgets what was counted and returns it.
func (w *Wire) Count() map[Request]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := maps.Clone(w.counts)
	clear(w.counts)
	return counts
}

func (w *Wire) next(r *http.Request) (clienttest.Fault, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := KindOf(r)
	w.counts[kind]++
	w.seen = append(w.seen, r)
	if w.chance != nil {
		return w.chance(kind)
	}
	if len(w.faults[kind]) == 0 {
		return clienttest.Fault{}, false
	}
	f := w.faults[kind][0]
	w.faults[kind] = w.faults[kind][1:]
	return f, true
}

// ServeHTTP is the service as the wire lets it appear.
func (w *Wire) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	f, ok := w.next(r)
	if !ok {
		clienttest.Reply(out, w.Serve(r))
		return
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var served *httptest.ResponseRecorder
	if f.Happen || f.Damage != nil {
		served = w.Serve(r)
	}
	if f.Then != nil {
		f.Then()
	}
	if f.Damage != nil {
		f.Damage(out, served)
	}
	switch {
	case f.Stall:
		w.keep(r, body)
		<-r.Context().Done()
	case f.Damage != nil:
	case f.Status != 0:
		http.Error(out, f.Body, f.Status)
	default:
		clienttest.Cut(out)
	}
}

// Serve is the emulator, with what it lacks: the service knows a chunk that
// comes again, and takes one write a second of one object.
func (w *Wire) Serve(r *http.Request) *httptest.ResponseRecorder {
	recorded := httptest.NewRecorder()
	chunk := ""
	if KindOf(r) == ReqChunk {
		chunk = r.URL.Query().Get("upload_id") + " " + r.Header.Get("Content-Range")
	}
	if chunk != "" { // one that comes again waits for itself
		w.chunks.Lock()
		defer w.chunks.Unlock()
	}
	w.mu.Lock()
	known := w.replies[chunk]
	early := w.early(r)
	w.mu.Unlock()
	if known != nil {
		return known
	}
	if early {
		http.Error(recorded, `{"error":{"code":429,"message":"The rate of change requests to the object exceeds the rate limit."}}`,
			http.StatusTooManyRequests)
		return recorded
	}
	w.Service.HTTPHandler().ServeHTTP(recorded, w.paged(r))
	w.mu.Lock()
	defer w.mu.Unlock()
	if chunk != "" {
		w.replies[chunk] = recorded
	}
	if KindOf(r) == ReqPut && recorded.Code == http.StatusOK {
		w.written[r.URL.Query().Get("name")] = time.Now()
	}
	return recorded
}

// paged asks for smaller pages, which the service may always return.
func (w *Wire) paged(r *http.Request) *http.Request {
	if w.Page == 0 || KindOf(r) != ReqList {
		return r
	}
	smaller := r.Clone(r.Context())
	query := r.URL.Query()
	query.Set("maxResults", strconv.Itoa(w.Page))
	smaller.URL.RawQuery = query.Encode()
	return smaller
}

func (w *Wire) early(r *http.Request) bool {
	last, ok := w.written[r.URL.Query().Get("name")]
	early := KindOf(r) == ReqPut && ok && time.Since(last) < w.Interval
	if early {
		w.Rejected++
	}
	return early
}

// Seed makes objects past the Bucket and the wire.
func (w *Wire) Seed(prefix string, n int) {
	for i := range n {
		w.Service.CreateObject(fakestorage.Object{ObjectAttrs: fakestorage.ObjectAttrs{
			BucketName: "acme", Name: fmt.Sprintf("rl/math/%s%05d", prefix, i),
		}})
	}
}

// Transport keeps the connections of this wire apart from others'.
func (w *Wire) Transport() http.RoundTripper { return w.Client().Transport }
