package gcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// chunk is the least that the service takes.
const chunk = 256 << 10

// quick is a tempo for what does not test the tempo: no request of a busy machine
// is taken for one that hangs.
func quick() tempo {
	return tempo{stall: time.Minute, backoff: time.Millisecond, patience: 20 * time.Second, chunk: chunk}
}

func (w *wire) config() BucketConfig {
	return BucketConfig{Bucket: "acme", Prefix: "rl/math", Endpoint: w.URL + "/storage/v1/", HTTPClient: &http.Client{Transport: w.transport()}}
}

// transport keeps the connections of this wire apart from others'.
func (w *wire) transport() http.RoundTripper { return w.Client().Transport }

func (w *wire) open(t *testing.T, tempo tempo) *Bucket {
	t.Helper()
	b, err := openBucket(t.Context(), w.config(), tempo)
	if err != nil {
		t.Fatal(err)
	}
	w.count()
	return b
}

func TestBucket(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return newWire(t).open(t, quick()) })
}

// fleet is one store used through the clients of many processes.
type fleet struct {
	store.Store
	clients []*Bucket
	calls   atomic.Int64
}

func (f *fleet) any() *Bucket { return f.clients[int(f.calls.Add(1))%len(f.clients)] }

func (f *fleet) Put(ctx context.Context, key string, data []byte, want store.Generation) (store.Generation, error) {
	return f.any().Put(ctx, key, data, want)
}

func (f *fleet) Delete(ctx context.Context, key string) error { return f.any().Delete(ctx, key) }

func (f *fleet) Upload(ctx context.Context, key string, content io.Reader) error {
	return f.any().Upload(ctx, key, content)
}

func TestBucketOfManyProcesses(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		w := newWire(t)
		f := &fleet{Store: w.open(t, quick())}
		for range 16 {
			f.clients = append(f.clients, w.open(t, quick()))
		}
		return f
	})
}

func TestBucketLocation(t *testing.T) {
	w := newWire(t)
	for prefix, want := range map[string]string{
		"": "gs://acme", "rl/math": "gs://acme/rl/math", "/rl/math/": "gs://acme/rl/math",
	} {
		cfg := w.config()
		cfg.Prefix = prefix
		b, err := OpenBucket(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if b.Location() != want {
			t.Errorf("prefix %q: got %s, want %s", prefix, b.Location(), want)
		}
		if b.WriteInterval() != time.Second {
			t.Errorf("write interval: got %v, want 1s", b.WriteInterval())
		}
	}
}

func TestPrefixesAreApart(t *testing.T) {
	w := newWire(t)
	math := w.open(t, quick())
	cfg := w.config()
	cfg.Prefix = "rl/mathematics"
	other, err := openBucket(t.Context(), cfg, quick())
	if err != nil {
		t.Fatal(err)
	}
	put(t, math, "state.json", "math", store.Absent)
	put(t, other, "state.json", "other", store.Absent)
	wantContent(t, math, "state.json", "math")
	// A folder that the console made is not the store's.
	if _, err := math.insert(t.Context(), &write{object: math.bucket.Object("rl/math/hosts/"), mark: "x"}, store.Absent); err != nil {
		t.Fatal(err)
	}
	list, err := math.List(t.Context(), "")
	if err != nil || len(list) != 1 || list[0].Key != "state.json" || list[0].Size != 4 || list[0].Updated.IsZero() {
		t.Errorf("list: got %+v, %v, want state.json alone", list, err)
	}
}

func TestRequestsAreFew(t *testing.T) {
	w := newWire(t)
	b := w.open(t, quick())
	expect := func(what string, want map[request]int) {
		t.Helper()
		got := w.count()
		for _, kind := range []request{reqGet, reqStat, reqPut, reqSession, reqChunk, reqList, reqDelete} {
			if got[kind] != want[kind] {
				t.Errorf("%s: %d requests to %s, want %d", what, got[kind], kind, want[kind])
			}
		}
	}
	gen := put(t, b, "state.json", "x", store.Absent)
	expect("create", map[request]int{reqPut: 1})
	put(t, b, "state.json", "y", gen)
	expect("swap", map[request]int{reqPut: 1})
	put(t, b, "state.json", "z", store.Any)
	expect("any, seen before", map[request]int{reqPut: 1})
	put(t, w.open(t, quick()), "state.json", "z", store.Any)
	expect("any, not seen before", map[request]int{reqPut: 2, reqStat: 1})
	put(t, b, "hosts/a/0.json", "z", store.Any)
	expect("any, not there", map[request]int{reqPut: 1})
	wantContent(t, b, "state.json", "z")
	expect("get", map[request]int{reqGet: 1})
	if _, err := b.List(t.Context(), "hosts/"); err != nil {
		t.Fatal(err)
	}
	expect("list", map[request]int{reqList: 1})
	key := store.BundleKey("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881") // of "x"
	for range 2 {
		if err := b.Upload(t.Context(), key, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	expect("upload, and again", map[request]int{reqPut: 2, reqStat: 1})
	for range 2 {
		if err := b.Upload(t.Context(), "logs/large", io.LimitReader(zeros{}, chunk+1)); err != nil {
			t.Fatal(err)
		}
	}
	// The emulator does not say that it is the object that is missing.
	expect("large upload, and again", map[request]int{reqStat: 2, reqList: 1, reqSession: 1, reqChunk: 2})
}

func TestListAsksForItsFields(t *testing.T) {
	w := newWire(t)
	b := w.open(t, quick())
	if _, err := b.List(t.Context(), "hosts/"); err != nil {
		t.Fatal(err)
	}
	seen := w.requests(false)
	query := seen[len(seen)-1].URL.Query()
	if query.Get("prefix") != "rl/math/hosts/" || query.Get("projection") != "noAcl" || query.Get("maxResults") != "1000" {
		t.Errorf("query: got %v", query)
	}
	for _, field := range []string{"name", "generation", "size", "updated"} {
		if fields := query.Get("fields"); !strings.Contains(fields, field) || strings.Contains(fields, "metadata") {
			t.Errorf("fields: got %q, want %s and no metadata", fields, field)
		}
	}
}

func TestKeyEncryptsWhatIsWritten(t *testing.T) {
	w := newWire(t)
	cfg := w.config()
	cfg.KMSKey = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
	b, err := openBucket(t.Context(), cfg, quick())
	if err != nil {
		t.Fatal(err)
	}
	put(t, b, "state.json", "x", store.Absent)
	if err := b.Upload(t.Context(), "logs/blob", io.LimitReader(zeros{}, chunk+1)); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.requests(false) {
		if kind := kindOf(r); (kind == reqPut || kind == reqSession) && r.URL.Query().Get("kmsKeyName") != cfg.KMSKey {
			t.Errorf("%s: got key %q", kind, r.URL.Query().Get("kmsKeyName"))
		}
	}
}

func TestBadConfig(t *testing.T) {
	for name, cfg := range map[string]BucketConfig{
		"no bucket is named":         {},
		"write it without gs://":     {Bucket: "gs://acme"},
		"put what follows into":      {Bucket: "acme/rl"},
		"begins with a dot":          {Bucket: "acme", Prefix: "../other"},
		"between slashes is empty":   {Bucket: "acme", Prefix: "a//b"},
		"prefix: key \"a\\nb\": the": {Bucket: "acme", Prefix: "a\nb"},
		"must not be negative":       {Bucket: "acme", WriteInterval: -time.Second},
	} {
		if _, err := OpenBucket(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: got %v, want %q", cfg, err, name)
		}
	}
}

func put(t *testing.T, s store.Store, key, data string, want store.Generation) store.Generation {
	t.Helper()
	gen, err := s.Put(t.Context(), key, []byte(data), want)
	if err != nil {
		t.Fatal(err)
	}
	return gen
}

func wantContent(t *testing.T, s store.Store, key, want string) store.Generation {
	t.Helper()
	object, err := s.Get(t.Context(), key)
	if err != nil || string(object.Data) != want {
		t.Errorf("get %s: got %.40q, %v, want %.40q", key, object.Data, err, want)
	}
	return object.Generation
}

func wantConflict(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, store.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
