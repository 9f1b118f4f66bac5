package scale

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/providers/gcp/bucket"
	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
	"github.com/fray-ml/fray/sleep"
	"github.com/fray-ml/fray/state/store"
)

// Latencies of the emulated bucket: assumed,
// for small objects.
const (
	readLatency  = 40 * time.Millisecond
	writeLatency = 80 * time.Millisecond
)

const bucketName = "acme"

// service is an emulated bucket that counts and delays requests.
type service struct {
	next                 http.Handler
	slow                 atomic.Bool
	writes, lists, reads atomic.Int64
}

func newService() (*service, error) {
	next, err := storage.New(storage.Config{Buckets: []storage.Bucket{{Name: bucketName}}})
	return &service{next: next}, err
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	latency := readLatency
	switch {
	case r.Method != http.MethodGet:
		latency = writeLatency
		if r.Method != http.MethodDelete && !r.URL.Query().Has("upload_id") {
			s.writes.Add(1)
		}
	case strings.HasSuffix(r.URL.Path, "/o"):
		s.lists.Add(1)
	default:
		s.reads.Add(1)
	}
	if s.slow.Load() {
		sleep.For(r.Context(), latency)
	}
	s.next.ServeHTTP(w, r)
}

// RoundTrip answers requests of this process, without a connection.
func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

// open opens the bucket of a service.
func open(ctx context.Context, url string, client *http.Client, interval time.Duration) (store.Store, error) {
	return bucket.Open(ctx, bucket.Config{Bucket: bucketName, Prefix: "bench", Endpoint: url + "/storage/v1/", HTTPClient: client, WriteInterval: interval})
}
