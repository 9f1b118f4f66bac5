package storage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gcs "cloud.google.com/go/storage"

	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
	"github.com/fray-ml/fray/state/store"
)

// clock stands still until it is moved.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func wantStatus(t *testing.T, what string, err error, want int) {
	t.Helper()
	got := statusOf(err)
	if errors.Is(err, gcs.ErrObjectNotExist) || errors.Is(err, gcs.ErrBucketNotExist) {
		got = http.StatusNotFound
	}
	if got != want {
		t.Errorf("%s: got %d, %v, want %d", what, got, err, want)
	}
}

func TestOneWriteASecondForEachObject(t *testing.T) {
	now := newClock()
	s := start(t, storage.Config{Now: now.Now, WriteInterval: time.Second})
	bucket := s.client(t).Bucket("acme")
	object := bucket.Object("state.json")
	write(t, object, "one")
	_, err := tryWrite(t.Context(), object, "two")
	wantStatus(t, "write at once", err, http.StatusTooManyRequests)
	wantStatus(t, "delete at once", object.Delete(t.Context()), http.StatusTooManyRequests)
	write(t, bucket.Object("other.json"), "one")
	if got := read(t, object); got != "one" {
		t.Errorf("content: got %q, want what was written first", got)
	}
	now.move(time.Second - time.Millisecond)
	_, err = tryWrite(t.Context(), object, "two")
	wantStatus(t, "write a moment too early", err, http.StatusTooManyRequests)
	now.move(time.Millisecond)
	write(t, object, "two")
}

func TestGenerationsGrowWhenTheClockDoesNot(t *testing.T) {
	now := newClock()
	s := start(t, storage.Config{Now: now.Now})
	object := s.client(t).Bucket("acme").Object("state.json")
	first := write(t, object, "one")
	if first != now.Now().UnixMicro() {
		t.Errorf("first generation: got %d, want the time in microseconds, %d", first, now.Now().UnixMicro())
	}
	now.move(-time.Hour)
	if second := write(t, object, "two"); second <= first {
		t.Errorf("second generation: got %d, want more than %d", second, first)
	}
}

// A write that committed and whose reply was lost.
func TestLostReplies(t *testing.T) {
	s := start(t, storage.Config{Faults: storage.Faults{LostReplies: 1}})
	object := s.client(t).Bucket("acme").Object("state.json")
	_, err := tryWrite(t.Context(), object, "mine")
	wantStatus(t, "write", err, -1)
	if got := read(t, object); got != "mine" {
		t.Errorf("content: got %q, want what was written", got)
	}
	wantStatus(t, "delete", object.Delete(t.Context()), -1)
	_, err = object.Attrs(t.Context())
	wantStatus(t, "after the delete", err, http.StatusNotFound)
}

func TestUnavailableChangesNothing(t *testing.T) {
	s := start(t, storage.Config{Faults: storage.Faults{Unavailable: 1}})
	object := s.client(t).Bucket("acme").Object("state.json")
	_, err := tryWrite(t.Context(), object, "mine")
	wantStatus(t, "write", err, http.StatusServiceUnavailable)
	if err := s.SetFaults(storage.Faults{}); err != nil {
		t.Fatal(err)
	}
	_, err = object.Attrs(t.Context())
	wantStatus(t, "after the write", err, http.StatusNotFound)
}

func TestLatencyIsWaitedForOnItsClock(t *testing.T) {
	asked := make(chan time.Duration, 1)
	over := make(chan time.Time)
	s := start(t, storage.Config{
		Faults: storage.Faults{Latency: time.Hour},
		After:  func(d time.Duration) <-chan time.Time { asked <- d; return over },
	})
	done := make(chan error)
	go func() {
		_, err := s.client(t).Bucket("acme").Attrs(context.WithoutCancel(t.Context()))
		done <- err
	}()
	if got := <-asked; got != time.Hour {
		t.Errorf("latency: got %v, want 1h", got)
	}
	select {
	case err := <-done:
		t.Errorf("it was answered before its time, %v", err)
	default:
	}
	close(over)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The module's own store settles by its marks what lost replies leave open.
func TestStoreUnderFaults(t *testing.T) {
	s := start(t, storage.Config{Seed: 7})
	b := s.open(t, "acme")
	if err := s.SetFaults(storage.Faults{Unavailable: 0.1, LostReplies: 0.2}); err != nil {
		t.Fatal(err)
	}
	generation := store.Absent
	for i := range 12 {
		var err error
		if generation, err = b.Put(t.Context(), "state.json", fmt.Append(nil, i), generation); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := b.Get(t.Context(), "state.json"); err != nil || string(got.Data) != "11" || got.Generation != generation {
		t.Errorf("got %q %d, %v, want 11 of generation %d", got.Data, got.Generation, err, generation)
	}
}

func TestDirectorySurvivesARestart(t *testing.T) {
	cfg := storage.Config{Dir: t.TempDir(), Buckets: []storage.Bucket{{Name: "acme", Location: "us-east1", Versioning: true}}}
	before := start(t, cfg)
	object := before.client(t).Bucket("acme").Object("a/state.json")
	first, second := write(t, object, "one"), write(t, object, "two")
	gone := before.client(t).Bucket("acme").Object("gone.json")
	deleted := write(t, gone, "gone")
	if err := gone.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	before.http.Close()
	past := func() time.Time { return time.Unix(1, 0) } // generations must not begin anew
	bucket := start(t, storage.Config{Dir: cfg.Dir, Buckets: []storage.Bucket{}, Now: past}).client(t).Bucket("acme")
	if got := read(t, bucket.Object("a/state.json")); got != "two" {
		t.Errorf("content: got %q, want two", got)
	}
	if got := read(t, bucket.Object("a/state.json").Generation(first)); got != "one" {
		t.Errorf("old version: got %q, want one", got)
	}
	if got := read(t, bucket.Object("gone.json").Generation(deleted)); got != "gone" {
		t.Errorf("deleted version: got %q, want gone", got)
	}
	_, err := bucket.Object("gone.json").Attrs(t.Context())
	wantStatus(t, "deleted object", err, http.StatusNotFound)
	if attrs, err := bucket.Attrs(t.Context()); err != nil || attrs.Location != "US-EAST1" || !attrs.VersioningEnabled {
		t.Errorf("bucket: got %+v, %v, want versions in US-EAST1", attrs, err)
	}
	if third := write(t, bucket.Object("a/state.json").If(gcs.Conditions{GenerationMatch: second}), "three"); third <= second {
		t.Errorf("generation: got %d, want more than %d", third, second)
	}
}

// The process ends within a write: the new version is there, the old one is too.
func TestDirectoryRepairsWhatACrashLeft(t *testing.T) {
	for _, versioning := range []bool{false, true} {
		dir := t.TempDir()
		cfg := storage.Config{Dir: dir, Buckets: []storage.Bucket{{Name: "acme", Versioning: versioning}}}
		before := start(t, cfg)
		object := before.client(t).Bucket("acme").Object("state.json")
		first := write(t, object, "one")
		old := map[string][]byte{}
		for _, ending := range []string{".json", ".data"} {
			path := filepath.Join(dir, "acme", fmt.Sprint(first)+ending)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			old[path] = data
		}
		write(t, object, "two")
		before.http.Close()
		old[filepath.Join(dir, "acme", "77.data")] = []byte("no record of it was written")
		for path, data := range old {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		bucket := start(t, cfg).client(t).Bucket("acme")
		if got := read(t, bucket.Object("state.json")); got != "two" {
			t.Errorf("versioning %v: content: got %q, want two", versioning, got)
		}
		files, err := os.ReadDir(filepath.Join(dir, "acme"))
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 3, true: 5}[versioning]; len(files) != want {
			t.Errorf("versioning %v: got %v, want %d files", versioning, files, want)
		}
	}
}

func TestPermissionsThatAreMissing(t *testing.T) {
	for permission, try := range map[string]func(context.Context, *gcs.BucketHandle) error{
		"storage.objects.create": func(ctx context.Context, b *gcs.BucketHandle) error {
			_, err := tryWrite(ctx, b.Object("new"), "x")
			return err
		},
		"storage.objects.delete": func(ctx context.Context, b *gcs.BucketHandle) error {
			_, err := tryWrite(ctx, b.Object("there"), "x")
			return err
		},
		"storage.objects.get": func(ctx context.Context, b *gcs.BucketHandle) error {
			_, err := b.Object("there").Attrs(ctx)
			return err
		},
		"storage.objects.list": func(ctx context.Context, b *gcs.BucketHandle) error {
			_, err := b.Objects(ctx, nil).Next()
			return err
		},
		"storage.buckets.get": func(ctx context.Context, b *gcs.BucketHandle) error { _, err := b.Attrs(ctx); return err },
	} {
		t.Run(permission, func(t *testing.T) {
			dir := t.TempDir()
			calm := start(t, storage.Config{Dir: dir})
			write(t, calm.client(t).Bucket("acme").Object("there"), "x")
			calm.http.Close()
			s := start(t, storage.Config{Dir: dir, Buckets: []storage.Bucket{{Name: "acme", Denied: []string{permission}}}})
			bucket := s.client(t).Bucket("acme")
			err := try(t.Context(), bucket)
			wantStatus(t, "try", err, http.StatusForbidden)
			if err != nil && !strings.Contains(err.Error(), permission) {
				t.Errorf("%q does not name the permission", err)
			}
			asked := []string{"storage.objects.get", "storage.objects.list", "storage.objects.create", "storage.objects.delete", "storage.buckets.get"}
			granted, err := bucket.IAM().TestPermissions(t.Context(), asked)
			if want := slices.DeleteFunc(asked, func(p string) bool { return p == permission }); err != nil || !slices.Equal(granted, want) {
				t.Errorf("test permissions: got %v, %v, want %v", granted, err, want)
			}
		})
	}
}

func TestBucketAttributes(t *testing.T) {
	const key = "projects/p/locations/us-east1/keyRings/r/cryptoKeys/k"
	s := start(t, storage.Config{Buckets: []storage.Bucket{{Name: "acme", Location: "us-east1", KMSKey: key}}})
	bucket := s.client(t).Bucket("acme")
	attrs, err := bucket.Attrs(t.Context())
	if err != nil || attrs.Location != "US-EAST1" || attrs.LocationType != "region" || attrs.Encryption.DefaultKMSKeyName != key {
		t.Errorf("attributes: got %+v, %v, want region US-EAST1 and the key", attrs, err)
	}
	attrs, err = bucket.Update(t.Context(), gcs.BucketAttrsToUpdate{VersioningEnabled: true})
	if err != nil || !attrs.VersioningEnabled {
		t.Errorf("update: got %+v, %v, want versioning", attrs, err)
	}
	write(t, bucket.Object("x"), "x")
	if object, err := bucket.Object("x").Attrs(t.Context()); err != nil || object.KMSKeyName != key+"/cryptoKeyVersions/1" {
		t.Errorf("object: got %+v, %v, want it encrypted by the bucket's key", object, err)
	}
	_, err = s.client(t).Bucket("nowhere").Attrs(t.Context())
	wantStatus(t, "a bucket that is not there", err, http.StatusNotFound)
	wantStatus(t, "make it", s.client(t).Bucket("nowhere").Create(t.Context(), "p", nil), 0)
	wantStatus(t, "make it again", s.client(t).Bucket("nowhere").Create(t.Context(), "p", nil), http.StatusConflict)
	wantStatus(t, "delete one with objects", bucket.Delete(t.Context()), http.StatusConflict)
	wantStatus(t, "delete an empty one", s.client(t).Bucket("nowhere").Delete(t.Context()), 0)
}

func TestVersions(t *testing.T) {
	s := start(t, storage.Config{Buckets: []storage.Bucket{{Name: "acme", Versioning: true}}})
	b := s.open(t, "acme")
	var want []store.Generation
	for i := range 3 {
		generation, err := b.Put(t.Context(), "state.json", fmt.Append(nil, i), store.Any)
		if err != nil {
			t.Fatal(err)
		}
		want = slices.Insert(want, 0, generation)
	}
	versions, err := b.Versions(t.Context(), "state.json")
	var got []store.Generation
	for _, v := range versions {
		got = append(got, v.Generation)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("versions: got %v, %v, want %v", got, err, want)
	}
	object, err := b.GetVersion(t.Context(), "state.json", want[1])
	if err != nil || string(object.Data) != "1" {
		t.Errorf("the second version: got %q, %v, want 1", object.Data, err)
	}
}

// The library without options reads by /BUCKET/OBJECT, as STORAGE_EMULATOR_HOST has it.
func TestEmulatorHost(t *testing.T) {
	s := start(t, storage.Config{})
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(s.http.URL, "http://"))
	client, err := gcs.NewClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	object := client.Bucket("acme").Object("a b/ü+%2F.json")
	w := object.NewWriter(t.Context())
	w.Metadata = map[string]string{"who": "me"}
	_, writeErr := io.WriteString(w, "content")
	if err := errors.Join(writeErr, w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := object.NewRangeReader(t.Context(), 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	if err != nil || string(data) != "te" || r.Attrs.Size != 7 || r.Attrs.Generation != w.Attrs().Generation || r.Metadata()["who"] != "me" && r.Metadata()["Who"] != "me" {
		t.Errorf("range: got %q, %+v, %v, %v, want te of 7 bytes", data, r.Attrs, r.Metadata(), err)
	}
	_, err = client.Bucket("acme").Object("nothing").NewReader(t.Context())
	wantStatus(t, "what is not there", err, http.StatusNotFound)
}

func TestUnknownCallsAreNamed(t *testing.T) {
	s := start(t, storage.Config{})
	_, err := s.client(t).Bucket("acme").AddNotification(t.Context(), &gcs.Notification{TopicProjectID: "p", TopicID: "t", PayloadFormat: gcs.NoPayload})
	wantStatus(t, "a notification", err, http.StatusNotImplemented)
}

func TestBadConfig(t *testing.T) {
	for name, cfg := range map[string]storage.Config{
		"is not a name":      {Buckets: []storage.Bucket{{Name: "a/b"}}},
		"is there twice":     {Buckets: []storage.Bucket{{Name: "a"}, {Name: "a"}}},
		"not between 0":      {Faults: storage.Faults{Unavailable: 2}},
		"latency must not":   {Faults: storage.Faults{Latency: -1}},
		"write interval -1s": {WriteInterval: -time.Second},
	} {
		if _, err := storage.New(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%+v: got %v, want %q", cfg, err, name)
		}
	}
}
