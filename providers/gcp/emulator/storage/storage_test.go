package storage_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	gcs "cloud.google.com/go/storage"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	gcpbucket "github.com/fray-ml/fray/providers/gcp/bucket"
	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// service is an emulator on a connection of its own.
type service struct {
	*storage.Server
	http *httptest.Server
}

func start(t *testing.T, cfg storage.Config) *service {
	t.Helper()
	if cfg.Buckets == nil {
		cfg.Buckets = []storage.Bucket{{Name: "acme"}}
	}
	emulator, err := storage.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &service{Server: emulator, http: httptest.NewServer(emulator)}
	t.Cleanup(s.http.Close)
	return s
}

// client is Google's, which tries everything once.
func (s *service) client(t *testing.T, options ...option.ClientOption) *gcs.Client {
	t.Helper()
	return clientOf(t, s.http, options...)
}

func clientOf(t *testing.T, server *httptest.Server, options ...option.ClientOption) *gcs.Client {
	t.Helper()
	options = append([]option.ClientOption{
		option.WithEndpoint(server.URL + "/storage/v1/"), option.WithHTTPClient(server.Client()), gcs.WithJSONReads(),
	}, options...)
	client, err := gcs.NewClient(context.WithoutCancel(t.Context()), options...)
	if err != nil {
		t.Fatal(err)
	}
	client.SetRetry(gcs.WithPolicy(gcs.RetryNever))
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// open is the module's own store.
func (s *service) open(t *testing.T, bucket string) *gcpbucket.Bucket {
	t.Helper()
	b, err := gcpbucket.Open(t.Context(), gcpbucket.Config{
		Bucket: bucket, Prefix: "rl/math", Endpoint: s.http.URL + "/storage/v1/",
		WriteInterval: time.Nanosecond, HTTPClient: s.http.Client(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBucketIsAStore(t *testing.T) {
	t.Run("in memory", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store { return start(t, storage.Config{}).open(t, "acme") })
	})
	t.Run("in a directory", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store {
			return start(t, storage.Config{Dir: t.TempDir()}).open(t, "acme")
		})
	})
	t.Run("with versions", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) store.Store {
			cfg := storage.Config{Buckets: []storage.Bucket{{Name: "acme", Versioning: true}}}
			return start(t, cfg).open(t, "acme")
		})
	})
}

func TestBucketIsAStoreForManyProcesses(t *testing.T) {
	s := start(t, storage.Config{})
	var sum sync.WaitGroup
	for range 8 {
		b := s.open(t, "acme")
		sum.Go(func() {
			for range 10 {
				if err := storetest.Increment(t.Context(), b, "counter.json"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	sum.Wait()
	if got, err := s.open(t, "acme").Get(t.Context(), "counter.json"); err != nil || string(got.Data) != "80" {
		t.Errorf("counter: got %q, %v, want 80", got.Data, err)
	}
}

// Upload with a precondition: exactly one of 32 racing writers wins, others get 412.
func TestOneOf32RacingWritersWins(t *testing.T) {
	s := start(t, storage.Config{})
	bucket := s.client(t).Bucket("acme")
	first := write(t, bucket.Object("state.json"), "0")
	t.Run("replacing", func(t *testing.T) { race(t, bucket.Object("state.json").If(gcs.Conditions{GenerationMatch: first})) })
	t.Run("making", func(t *testing.T) { race(t, bucket.Object("new.json").If(gcs.Conditions{DoesNotExist: true})) })
}

func race(t *testing.T, object *gcs.ObjectHandle) {
	t.Helper()
	var mu sync.Mutex
	var writers sync.WaitGroup
	answers := map[int]int{}
	for range 32 {
		writers.Go(func() {
			_, err := tryWrite(t.Context(), object, "mine")
			mu.Lock()
			defer mu.Unlock()
			answers[statusOf(err)]++
		})
	}
	writers.Wait()
	if answers[0] != 1 || answers[http.StatusPreconditionFailed] != 31 {
		t.Errorf("got %v, want one success (0) and 31 times 412", answers)
	}
}

// statusOf is the service's answer: 0 for success, -1 for none.
func statusOf(err error) int {
	answer, ok := errors.AsType[*googleapi.Error](err)
	switch {
	case err == nil:
		return 0
	case ok:
		return answer.Code
	}
	return -1
}

func tryWrite(ctx context.Context, object *gcs.ObjectHandle, data string) (int64, error) {
	w := object.NewWriter(ctx)
	w.ChunkSize = 0
	if _, err := io.WriteString(w, data); err != nil {
		return 0, errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	return w.Attrs().Generation, nil
}

func write(t *testing.T, object *gcs.ObjectHandle, data string) int64 {
	t.Helper()
	generation, err := tryWrite(t.Context(), object, data)
	if err != nil {
		t.Fatal(err)
	}
	return generation
}

func read(t *testing.T, object *gcs.ObjectHandle) string {
	t.Helper()
	r, err := object.NewReader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
