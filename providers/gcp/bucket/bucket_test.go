package bucket

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

func configOf(w *buckettest.Wire) Config {
	return Config{Bucket: "acme", Prefix: "rl/math", Endpoint: w.URL + "/storage/v1/", HTTPClient: &http.Client{Transport: w.Transport()}}
}

func opened(t *testing.T, w *buckettest.Wire, tempo client.Pace) *Bucket {
	t.Helper()
	b, err := open(t.Context(), configOf(w), tempo)
	if err != nil {
		t.Fatal(err)
	}
	w.Count()
	return b
}

func TestBucket(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return opened(t, buckettest.New(t), clienttest.Quick()) })
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
		w := buckettest.New(t)
		f := &fleet{Store: opened(t, w, clienttest.Quick())}
		for range 16 {
			f.clients = append(f.clients, opened(t, w, clienttest.Quick()))
		}
		return f
	})
}

func TestBucketLocation(t *testing.T) {
	w := buckettest.New(t)
	for prefix, want := range map[string]string{
		"": "gs://acme", "rl/math": "gs://acme/rl/math", "/rl/math/": "gs://acme/rl/math",
	} {
		cfg := configOf(w)
		cfg.Prefix = prefix
		b, err := Open(t.Context(), cfg)
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
	w := buckettest.New(t)
	math := opened(t, w, clienttest.Quick())
	cfg := configOf(w)
	cfg.Prefix = "rl/mathematics"
	other, err := open(t.Context(), cfg, clienttest.Quick())
	if err != nil {
		t.Fatal(err)
	}
	put(t, math, "state.json", "math", store.Absent)
	put(t, other, "state.json", "other", store.Absent)
	wantContent(t, math, "state.json", "math")
	// A folder that the console made is not the store's.
	if _, err := math.insert(t.Context(), &write{object: "rl/math/hosts/", mark: "x"}, store.Absent); err != nil {
		t.Fatal(err)
	}
	list, err := math.List(t.Context(), "")
	if err != nil || len(list) != 1 || list[0].Key != "state.json" || list[0].Size != 4 || list[0].Updated.IsZero() {
		t.Errorf("list: got %+v, %v, want state.json alone", list, err)
	}
}

func TestRequestsAreFew(t *testing.T) {
	w := buckettest.New(t)
	b := opened(t, w, clienttest.Quick())
	expect := func(what string, want map[buckettest.Request]int) {
		t.Helper()
		got := w.Count()
		for _, kind := range []buckettest.Request{buckettest.ReqGet, buckettest.ReqStat, buckettest.ReqPut, buckettest.ReqSession, buckettest.ReqChunk, buckettest.ReqList, buckettest.ReqDelete} {
			if got[kind] != want[kind] {
				t.Errorf("%s: %d requests to %s, want %d", what, got[kind], kind, want[kind])
			}
		}
	}
	gen := put(t, b, "state.json", "x", store.Absent)
	expect("create", map[buckettest.Request]int{buckettest.ReqPut: 1})
	put(t, b, "state.json", "y", gen)
	expect("swap", map[buckettest.Request]int{buckettest.ReqPut: 1})
	put(t, b, "state.json", "z", store.Any)
	expect("any, seen before", map[buckettest.Request]int{buckettest.ReqPut: 1})
	put(t, opened(t, w, clienttest.Quick()), "state.json", "z", store.Any)
	expect("any, not seen before", map[buckettest.Request]int{buckettest.ReqPut: 2, buckettest.ReqStat: 1})
	put(t, b, "hosts/a/0.json", "z", store.Any)
	expect("any, not there", map[buckettest.Request]int{buckettest.ReqPut: 1})
	wantContent(t, b, "state.json", "z")
	expect("get", map[buckettest.Request]int{buckettest.ReqGet: 1})
	if _, err := b.List(t.Context(), "hosts/"); err != nil {
		t.Fatal(err)
	}
	expect("list", map[buckettest.Request]int{buckettest.ReqList: 1})
	key := store.BundleKey("2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881") // of "x"
	for range 2 {
		if err := b.Upload(t.Context(), key, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	expect("upload, and again", map[buckettest.Request]int{buckettest.ReqPut: 2, buckettest.ReqStat: 1})
	for range 2 {
		if err := b.Upload(t.Context(), "logs/large", io.LimitReader(zeros{}, clienttest.Chunk+1)); err != nil {
			t.Fatal(err)
		}
	}
	// The emulator does not say that it is the object that is missing.
	expect("large upload, and again", map[buckettest.Request]int{buckettest.ReqStat: 2, buckettest.ReqList: 1, buckettest.ReqSession: 1, buckettest.ReqChunk: 2})
}

func TestListAsksForItsFields(t *testing.T) {
	w := buckettest.New(t)
	b := opened(t, w, clienttest.Quick())
	if _, err := b.List(t.Context(), "hosts/"); err != nil {
		t.Fatal(err)
	}
	seen := w.Requests(false)
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
	w := buckettest.New(t)
	cfg := configOf(w)
	cfg.KMSKey = "projects/p/locations/l/keyRings/r/cryptoKeys/k"
	b, err := open(t.Context(), cfg, clienttest.Quick())
	if err != nil {
		t.Fatal(err)
	}
	put(t, b, "state.json", "x", store.Absent)
	if err := b.Upload(t.Context(), "logs/blob", io.LimitReader(zeros{}, clienttest.Chunk+1)); err != nil {
		t.Fatal(err)
	}
	for _, r := range w.Requests(false) {
		if kind := buckettest.KindOf(r); (kind == buckettest.ReqPut || kind == buckettest.ReqSession) && r.URL.Query().Get("kmsKeyName") != cfg.KMSKey {
			t.Errorf("%s: got key %q", kind, r.URL.Query().Get("kmsKeyName"))
		}
	}
}

func TestBadConfig(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no bucket is named":         {},
		"write it without gs://":     {Bucket: "gs://acme"},
		"put what follows into":      {Bucket: "acme/rl"},
		"begins with a dot":          {Bucket: "acme", Prefix: "../other"},
		"between slashes is empty":   {Bucket: "acme", Prefix: "a//b"},
		"prefix: key \"a\\nb\": the": {Bucket: "acme", Prefix: "a\nb"},
		"must not be negative":       {Bucket: "acme", WriteInterval: -time.Second},
	} {
		if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), name) {
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
