// Package storetest holds the suite that every store.Store passes, a store in
// memory, and a wrapper that makes a store fail in chosen ways.
//
// It leaves out what only one kind of store promises; that is tested beside
// it. Start with [Run]; [NewMemory] and [Faulty] serve the tests of other
// packages.
package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/fray-ml/fray/state/store"
)

// Run tests a kind of store. open returns a new empty one each time; it is
// called once in each subtest.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	tests := []struct {
		name string
		run  func(*testing.T, store.Store)
	}{
		{"get returns what was put", testGetPut},
		{"a conditional read returns what changed", testGetUnless},
		{"put keeps to its precondition", testPreconditions},
		{"generations rise", testGenerationsRise},
		{"generations rise after a delete", testGenerationsAfterDelete},
		{"one of many racing writers wins", testRace},
		{"one of many racing creators wins", testCreateRace},
		{"concurrent increments are not lost", testIncrements},
		{"readers see whole objects", testWhole},
		{"list goes by prefix and key", testList},
		{"list returns more than a page", testListMany},
		{"list goes by several prefixes at once", testListPrefixes},
		{"list leaves out what is between prefixes", testListGap},
		{"list misses nothing that is being rewritten", testListBusy},
		{"delete removes", testDelete},
		{"upload is idempotent", testUpload},
		{"upload streams", testUploadLarge},
		{"upload leaves nothing when it fails", testUploadFails},
		{"upload checks bundles", testUploadBundle},
		{"bad keys are rejected", testBadKeys},
		{"an ended context is heeded", testCancelled},
		{"location names it", testLocation},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
	t.Run("lease", func(t *testing.T) { runLease(t, open) })
}

func testGetUnless(t *testing.T, s store.Store) {
	ctx := t.Context()
	const key = "assign/a.json"
	if _, err := store.GetUnless(ctx, s, key, 7); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of nothing: got %v, want ErrNotFound", err)
	}
	first := put(t, s, key, "one", store.Any)
	for _, known := range []store.Generation{store.Absent, first + 1} {
		if got, err := store.GetUnless(ctx, s, key, known); err != nil || string(got.Data) != "one" || got.Generation != first {
			t.Errorf("with another generation known: got %q %+v, %v", got.Data, got.Attrs, err)
		}
	}
	if got, err := store.GetUnless(ctx, s, key, first); !errors.Is(err, store.ErrUnchanged) {
		t.Errorf("unchanged: got %q, %v, want ErrUnchanged", got.Data, err)
	}
	second := put(t, s, key, "two", store.Any)
	if got, err := store.GetUnless(ctx, s, key, first); err != nil || string(got.Data) != "two" || got.Generation != second {
		t.Errorf("changed: got %q %+v, %v", got.Data, got.Attrs, err)
	}
}

func testGetPut(t *testing.T, s store.Store) {
	ctx := t.Context()
	if _, err := s.Get(ctx, "hosts/a/0.json"); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("get of nothing: got %v, want ErrNotFound", err)
	}
	for _, data := range []string{"one", "", "three, longer than the others"} {
		gen := put(t, s, "hosts/a/0.json", data, store.Any)
		got, err := s.Get(ctx, "hosts/a/0.json")
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Data) != data || got.Generation != gen || got.Key != "hosts/a/0.json" || got.Size != int64(len(data)) {
			t.Errorf("got %q %+v, want %q with generation %d", got.Data, got.Attrs, data, gen)
		}
		if got.Updated.IsZero() {
			t.Error("Updated is zero")
		}
	}
	// A key's beginning is no object.
	for _, key := range []string{"hosts", "hosts/a", "hosts/a/0"} {
		if _, err := s.Get(ctx, key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("get %s: got %v, want ErrNotFound", key, err)
		}
	}
}

func testPreconditions(t *testing.T, s store.Store) {
	ctx := t.Context()
	const key = "state.json"
	conflict := func(want store.Generation, content string) {
		t.Helper()
		if gen, err := s.Put(ctx, key, []byte("intruder"), want); !errors.Is(err, store.ErrConflict) {
			t.Errorf("put with generation %d: got %d, %v, want ErrConflict", want, gen, err)
		}
		got, err := s.Get(ctx, key)
		if content == "" && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after a conflict: got %q, %v, want nothing", got.Data, err)
		}
		if content != "" && string(got.Data) != content {
			t.Errorf("after a conflict: got %q, %v, want %q", got.Data, err, content)
		}
	}
	conflict(12345, "")
	first := put(t, s, key, "first", store.Absent)
	conflict(store.Absent, "first")
	conflict(first+1, "first")
	second := put(t, s, key, "second", first)
	conflict(first, "second")
	third := put(t, s, key, "third", store.Any)
	conflict(second, "third")
	put(t, s, key, "fourth", third)
	put(t, s, "new.json", "made by Any", store.Any)
}

func testGenerationsRise(t *testing.T, s store.Store) {
	last := store.Absent
	for i := range 100 {
		gen := put(t, s, "state.json", fmt.Sprint(i), store.Any)
		if gen <= last {
			t.Fatalf("write %d: generation %d after %d", i, gen, last)
		}
		last = gen
	}
}

func testGenerationsAfterDelete(t *testing.T, s store.Store) {
	last := store.Absent
	for i := range 20 {
		gen := put(t, s, "assign/a.json", "again", store.Absent)
		if gen <= last {
			t.Fatalf("creation %d: generation %d after %d", i, gen, last)
		}
		last = gen
		if err := s.Delete(t.Context(), "assign/a.json"); err != nil {
			t.Fatal(err)
		}
	}
}

func testDelete(t *testing.T, s store.Store) {
	ctx := t.Context()
	put(t, s, "hosts/a/0.json", "x", store.Absent)
	put(t, s, "hosts/a/1.json", "y", store.Absent)
	for range 2 { // the second time there is nothing left
		if err := s.Delete(ctx, "hosts/a/0.json"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(ctx, "hosts/a/0.json"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("get of a deleted object: got %v, want ErrNotFound", err)
		}
	}
	for _, key := range []string{"hosts/a", "hosts/a/1.json/below", "never/was"} {
		if err := s.Delete(ctx, key); err != nil {
			t.Errorf("delete %s, which is no object: %v", key, err)
		}
	}
	if list, err := s.List(ctx, ""); err != nil || len(list) != 1 || list[0].Key != "hosts/a/1.json" {
		t.Errorf("left: got %v, %v, want hosts/a/1.json", list, err)
	}
}

func testUpload(t *testing.T, s store.Store) {
	ctx := t.Context()
	content := "a bundle"
	key := store.BundleKey(digest(content))
	if _, err := s.Open(ctx, key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("open of nothing: got %v, want ErrNotFound", err)
	}
	for range 3 {
		if err := s.Upload(ctx, key, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	each(t, 8, func(int) error { return s.Upload(ctx, key, strings.NewReader(content)) })
	if got := read(t, s, key); got != content {
		t.Errorf("got %q, want %q", got, content)
	}
	// Without a digest in its key, what is there stays there.
	for _, content := range []string{"first", "second"} {
		if err := s.Upload(ctx, "logs/blob", strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, s, "logs/blob"); got != "first" {
		t.Errorf("got %q, want first", got)
	}
}

func testUploadLarge(t *testing.T, s store.Store) {
	const size = 24 << 20
	sum := sha256.New()
	if _, err := io.Copy(sum, pattern(size)); err != nil {
		t.Fatal(err)
	}
	key := store.BundleKey(hex.EncodeToString(sum.Sum(nil)))
	if err := s.Upload(t.Context(), key, pattern(size)); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	back := sha256.New()
	n, err := io.Copy(back, r)
	if err != nil || n != size || !bytes.Equal(back.Sum(nil), sum.Sum(nil)) {
		t.Errorf("got %d bytes with digest %x, %v, want %d with %x", n, back.Sum(nil), err, size, sum.Sum(nil))
	}
}

func testUploadFails(t *testing.T, s store.Store) {
	broken := errors.New("the source broke")
	source := io.MultiReader(pattern(1<<20), failingReader{broken})
	if err := s.Upload(t.Context(), "logs/blob", source); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	if list, err := s.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("left: got %v, %v, want nothing", list, err)
	}
}

func testUploadBundle(t *testing.T, s store.Store) {
	key := store.BundleKey(digest("what was meant"))
	if err := s.Upload(t.Context(), key, strings.NewReader("what came")); err == nil {
		t.Error("content that is not what its key names was taken")
	}
	if _, err := s.Open(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("open: got %v, want ErrNotFound", err)
	}
}

func testBadKeys(t *testing.T, s store.Store) {
	keys := []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "../a", "a/..", ".hidden", "a/.hidden/b", "a/./b",
		"a\x00b", "a\nb", "a/\xff", strings.Repeat("k", 256), strings.Repeat("k/", 600) + "k",
	}
	for _, key := range keys {
		t.Run(fmt.Sprintf("%.20q", key), func(t *testing.T) { refuse(t, s, key) })
	}
	for _, prefix := range []string{"/", "a//", "../", ".hid", "a/../", "a/.b"} {
		for _, prefixes := range [][]string{{prefix}, {"hosts/", prefix}, {"", prefix}} {
			if _, err := s.List(t.Context(), prefixes...); err == nil {
				t.Errorf("list %q: got no error", prefixes)
			}
		}
	}
	if list, err := s.List(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("left: got %v, %v, want nothing", list, err)
	}
}

func refuse(t *testing.T, s store.Store, key string) {
	ctx := t.Context()
	if _, err := s.Get(ctx, key); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("get: got %v, want a rejection", err)
	}
	if _, err := s.Put(ctx, key, nil, store.Any); err == nil || errors.Is(err, store.ErrConflict) {
		t.Errorf("put: got %v, want a rejection", err)
	}
	if err := s.Delete(ctx, key); err == nil {
		t.Error("delete: got no error")
	}
	if err := s.Upload(ctx, key, strings.NewReader("x")); err == nil {
		t.Error("upload: got no error")
	}
	if _, err := s.Open(ctx, key); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("open: got %v, want a rejection", err)
	}
}

func testCancelled(t *testing.T, s store.Store) {
	gen := put(t, s, "state.json", "kept", store.Absent)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := map[string]func() error{
		"get":    func() error { _, err := s.Get(ctx, "state.json"); return err },
		"put":    func() error { _, err := s.Put(ctx, "state.json", []byte("lost"), gen); return err },
		"list":   func() error { _, err := s.List(ctx, ""); return err },
		"delete": func() error { return s.Delete(ctx, "state.json") },
		"upload": func() error { return s.Upload(ctx, "logs/blob", strings.NewReader("x")) },
		"open":   func() error { _, err := s.Open(ctx, "state.json"); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}
	if got := read(t, s, "state.json"); got != "kept" {
		t.Errorf("got %q, want kept", got)
	}
	// An upload ends in the middle too.
	ctx, cancel = context.WithCancel(t.Context())
	source := io.MultiReader(pattern(1<<20), callReader(cancel), pattern(64<<20))
	if err := s.Upload(ctx, "logs/blob", source); !errors.Is(err, context.Canceled) {
		t.Errorf("upload: got %v, want context.Canceled", err)
	}
	if _, err := s.Open(t.Context(), "logs/blob"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("open of a cancelled upload: got %v, want ErrNotFound", err)
	}
}

func testLocation(t *testing.T, s store.Store) {
	if s.Location() == "" {
		t.Error("Location is empty")
	}
	if s.WriteInterval() < 0 {
		t.Errorf("WriteInterval is %v", s.WriteInterval())
	}
}
