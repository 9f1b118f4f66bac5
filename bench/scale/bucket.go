package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
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

const (
	bucketName = "acme"
	prefix     = "bench"
)

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

// put writes an object as a small request does, without a client that costs more than the
// service: the hosts of a fleet are one process.
func (s *service) put(ctx context.Context, key string, data []byte) (store.Generation, error) {
	to := "http://" + bucketName + "/upload/storage/v1/b/" + bucketName + "/o?uploadType=media&name=" + url.QueryEscape(prefix+"/"+key)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var made struct {
		Generation store.Generation `json:"generation,string"`
	}
	if w.Code != http.StatusOK {
		return 0, fmt.Errorf("write %s: %s", key, w.Body)
	}
	err = json.Unmarshal(w.Body.Bytes(), &made)
	return made.Generation, err
}

// open opens the bucket of a service.
func open(ctx context.Context, address string, client *http.Client, interval time.Duration) (store.Store, error) {
	return bucket.Open(ctx, bucket.Config{Bucket: bucketName, Prefix: prefix, Endpoint: address + "/storage/v1/", HTTPClient: client, WriteInterval: interval})
}

// leases is the bucket for hosts. All of them read the lease after a takeover, which costs this
// process one read for many; each counts and takes its time.
type leases struct {
	store.Store
	service *service

	mu   sync.Mutex
	read store.Object
	at   time.Time
}

// leaseAge is how old the lease may be that a host reads.
const leaseAge = 50 * time.Millisecond

// Get reads an object.
func (l *leases) Get(ctx context.Context, key string) (store.Object, error) {
	if key != store.LeaseKey {
		return l.Store.Get(ctx, key)
	}
	l.mu.Lock()
	read, fresh := l.read, time.Since(l.at) < leaseAge
	l.mu.Unlock()
	if fresh {
		l.service.reads.Add(1)
		sleep.For(ctx, readLatency)
		return read, ctx.Err()
	}
	read, err := l.Store.Get(ctx, key)
	if err == nil {
		l.mu.Lock()
		l.read, l.at = read, time.Now()
		l.mu.Unlock()
	}
	return read, err
}
