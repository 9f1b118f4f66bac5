package gcp

import (
	"bytes"
	"context"
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
)

// request is a kind of request to the service.
type request string

const (
	reqGet     request = "get"     // an object's content
	reqStat    request = "stat"    // its attributes
	reqPut     request = "put"     // a whole object
	reqSession request = "session" // the begin of an upload in chunks
	reqChunk   request = "chunk"
	reqList    request = "list"
	reqDelete  request = "delete"
)

func kindOf(r *http.Request) request {
	upload := r.URL.Query()
	switch {
	case upload.Has("upload_id"):
		return reqChunk
	case upload.Get("uploadType") == "resumable":
		return reqSession
	case upload.Get("uploadType") == "multipart":
		return reqPut
	case r.Method == http.MethodDelete:
		return reqDelete
	case strings.HasSuffix(r.URL.Path, "/o"):
		return reqList
	case upload.Get("alt") == "media":
		return reqGet
	}
	return reqStat
}

// fault is what the wire does to one request.
type fault struct {
	name string
	// status and body are the answer; 0: none, the connection breaks.
	status int
	body   string
	happen bool // the service has carried the request out before
	// damage answers with the service's own reply, made worse.
	damage func(w http.ResponseWriter, reply *httptest.ResponseRecorder)
	stall  bool   // no more comes, and the connection stays
	then   func() // runs before the answer
}

func answer(status int, body string) fault {
	return fault{name: "an answer", status: status, body: body}
}

// wire stands between a Bucket and the emulator, on real connections: it counts
// what passes, and breaks what it is told to.
type wire struct {
	*httptest.Server
	service *fakestorage.Server

	chunks sync.Mutex // held while one is served

	mu       sync.Mutex
	counts   map[request]int
	faults   map[request][]fault         // for the requests to come
	chance   func(request) (fault, bool) // in place of faults: whether something happens to a request, and what
	seen     []*http.Request
	stalled  []*http.Request
	replies  map[string]*httptest.ResponseRecorder // of chunks that arrived
	page     int                                   // the most objects that a list returns; 0: as many as asked for
	interval time.Duration                         // between two writes of one object; 0: any
	written  map[string]time.Time                  // by name
	refused  int                                   // for coming too early
}

func newWire(t testing.TB) *wire {
	t.Helper()
	service, err := fakestorage.NewServerWithOptions(fakestorage.Options{NoListener: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{
		service: service, counts: map[request]int{}, faults: map[request][]fault{},
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

// inject does something to the next requests of a kind, one fault each.
func (w *wire) inject(kind request, faults ...fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[kind] = append(w.faults[kind], faults...)
}

// always decides over every request from now on; nil: as injected.
func (w *wire) always(chance func(request) (fault, bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.chance = chance
}

// keep stores a request that has been given up, for it to arrive late.
func (w *wire) keep(r *http.Request, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	late := r.Clone(context.WithoutCancel(r.Context()))
	late.Body = io.NopCloser(bytes.NewReader(body))
	w.stalled = append(w.stalled, late)
}

// requests are all that have come, or those that have stalled.
func (w *wire) requests(stalled bool) []*http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stalled {
		return slices.Clone(w.stalled)
	}
	return slices.Clone(w.seen)
}

// left tells which faults were never met.
func (w *wire) left(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for kind, faults := range w.faults {
		if len(faults) > 0 {
			t.Errorf("%d faults of %s were never met", len(faults), kind)
		}
	}
}

// count forgets what was counted and returns it.
func (w *wire) count() map[request]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := maps.Clone(w.counts)
	clear(w.counts)
	return counts
}

func (w *wire) next(r *http.Request) (fault, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := kindOf(r)
	w.counts[kind]++
	w.seen = append(w.seen, r)
	if w.chance != nil {
		return w.chance(kind)
	}
	if len(w.faults[kind]) == 0 {
		return fault{}, false
	}
	f := w.faults[kind][0]
	w.faults[kind] = w.faults[kind][1:]
	return f, true
}

// ServeHTTP is the service as the wire lets it appear.
func (w *wire) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	f, ok := w.next(r)
	if !ok {
		reply(out, w.serve(r))
		return
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var served *httptest.ResponseRecorder
	if f.happen || f.damage != nil {
		served = w.serve(r)
	}
	if f.then != nil {
		f.then()
	}
	if f.damage != nil {
		f.damage(out, served)
	}
	switch {
	case f.stall:
		w.keep(r, body)
		<-r.Context().Done()
	case f.damage != nil:
	case f.status != 0:
		http.Error(out, f.body, f.status)
	default:
		cut(out)
	}
}

// serve is the emulator, with what it lacks: the service knows a chunk that
// comes again, and takes one write a second of one object.
func (w *wire) serve(r *http.Request) *httptest.ResponseRecorder {
	recorded := httptest.NewRecorder()
	chunk := ""
	if kindOf(r) == reqChunk {
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
	w.service.HTTPHandler().ServeHTTP(recorded, w.paged(r))
	w.mu.Lock()
	defer w.mu.Unlock()
	if chunk != "" {
		w.replies[chunk] = recorded
	}
	if kindOf(r) == reqPut && recorded.Code == http.StatusOK {
		w.written[r.URL.Query().Get("name")] = time.Now()
	}
	return recorded
}

// paged asks for smaller pages, which the service may always return.
func (w *wire) paged(r *http.Request) *http.Request {
	if w.page == 0 || kindOf(r) != reqList {
		return r
	}
	smaller := r.Clone(r.Context())
	query := r.URL.Query()
	query.Set("maxResults", strconv.Itoa(w.page))
	smaller.URL.RawQuery = query.Encode()
	return smaller
}

func (w *wire) early(r *http.Request) bool {
	last, ok := w.written[r.URL.Query().Get("name")]
	early := kindOf(r) == reqPut && ok && time.Since(last) < w.interval
	if early {
		w.refused++
	}
	return early
}

func reply(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	maps.Copy(out.Header(), recorded.Header())
	out.WriteHeader(recorded.Code)
	_, _ = out.Write(recorded.Body.Bytes())
}

// cut breaks the connection.
func cut(out http.ResponseWriter) {
	conn, _, err := http.NewResponseController(out).Hijack()
	if err == nil {
		conn.Close()
	}
}

// part sends the headers of all and the first half of the content.
func part(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	maps.Copy(out.Header(), recorded.Header())
	out.WriteHeader(recorded.Code)
	_, _ = out.Write(recorded.Body.Bytes()[:recorded.Body.Len()/2])
	_ = http.NewResponseController(out).Flush()
}

// half is part of the content and the end of the connection.
func half(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	part(out, recorded)
	cut(out)
}

// short sends the first half of the content as if it were all.
func short(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	maps.Copy(out.Header(), recorded.Header())
	out.Header().Set("Content-Length", strconv.Itoa(recorded.Body.Len()/2))
	out.WriteHeader(recorded.Code)
	_, _ = out.Write(recorded.Body.Bytes()[:recorded.Body.Len()/2])
}

// flipped sends all with one bit changed.
func flipped(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	changed := bytes.Clone(recorded.Body.Bytes())
	changed[len(changed)/2] ^= 1
	recorded.Body = bytes.NewBuffer(changed)
	reply(out, recorded)
}

// unsummed sends all without its checksum.
func unsummed(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	recorded.Header().Del("X-Goog-Hash")
	reply(out, recorded)
}

// dripping sends the content byte by byte.
func dripping(out http.ResponseWriter, recorded *httptest.ResponseRecorder) {
	maps.Copy(out.Header(), recorded.Header())
	out.WriteHeader(recorded.Code)
	tick := time.NewTicker(4 * time.Millisecond)
	defer tick.Stop()
	for _, b := range recorded.Body.Bytes() {
		<-tick.C
		_, _ = out.Write([]byte{b})
		_ = http.NewResponseController(out).Flush()
	}
}
