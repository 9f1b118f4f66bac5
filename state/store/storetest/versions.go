package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fray-ml/fray/state/store"
)

// RunVersioned tests a kind of store that keeps old versions of the state. open
// returns a new empty one each time.
func RunVersioned(t *testing.T, open func(t *testing.T) store.Store) {
	tests := []struct {
		name string
		run  func(*testing.T, store.Store, store.Versioned)
	}{
		{"versions are kept, newest first", testVersions},
		{"a write that does not happen leaves no version", testVersionsConflict},
		{"a deleted object's versions are kept", testVersionsDelete},
		{"an old version can be put back", testVersionsPutBack},
		{"versions are no objects", testVersionsHidden},
		{"what is listed while it is written can be read", testVersionsBusy},
		{"versions of bad keys are rejected", testVersionsBadKeys},
		{"an ended context is heeded", testVersionsCancelled},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			v, ok := store.AsVersioned(&Faulty{Store: &Faulty{Store: s}})
			if !ok {
				t.Fatal("it keeps no versions")
			}
			test.run(t, s, v)
		})
	}
}

// wantVersions wants the contents of all versions of the state, newest first.
func wantVersions(t *testing.T, v store.Versioned, want ...string) []store.Attrs {
	t.Helper()
	list, err := v.Versions(t.Context(), store.StateKey)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(list))
	for i, attrs := range list {
		object, err := v.GetVersion(t.Context(), store.StateKey, attrs.Generation)
		if err != nil {
			t.Fatal(err)
		}
		got[i] = string(object.Data)
		if attrs.Key != store.StateKey || attrs.Size != int64(len(object.Data)) || attrs.Updated.IsZero() {
			t.Errorf("version %d of %d bytes is listed as %+v", i, len(object.Data), attrs)
		}
		if object.Key != attrs.Key || object.Generation != attrs.Generation || object.Size != attrs.Size {
			t.Errorf("version %d: got %+v, listed as %+v", i, object.Attrs, attrs)
		}
		if i > 0 && attrs.Generation >= list[i-1].Generation {
			t.Errorf("version %d: generation %d after %d", i, attrs.Generation, list[i-1].Generation)
		}
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("got versions %q, want %q", got, want)
	}
	return list
}

func testVersions(t *testing.T, s store.Store, v store.Versioned) {
	if list, err := v.Versions(t.Context(), store.StateKey); !errors.Is(err, store.ErrNotFound) || len(list) != 0 {
		t.Errorf("versions of nothing: got %v, %v, want ErrNotFound", list, err)
	}
	want := []string{}
	gen := store.Absent
	for _, content := range []string{"one", "", "three", "three", "the fifth"} {
		gen = put(t, s, store.StateKey, content, gen)
		want = append([]string{content}, want...)
		if list := wantVersions(t, v, want...); list[0].Generation != gen {
			t.Errorf("newest: got generation %d, want the live %d", list[0].Generation, gen)
		}
	}
	for _, absent := range []store.Generation{store.Any, store.Absent, gen + 1} {
		if _, err := v.GetVersion(t.Context(), store.StateKey, absent); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("generation %d: got %v, want ErrNotFound", absent, err)
		}
	}
}

func testVersionsConflict(t *testing.T, s store.Store, v store.Versioned) {
	gen := put(t, s, store.StateKey, "one", store.Absent)
	for range 3 {
		if _, err := s.Put(t.Context(), store.StateKey, []byte("intruder"), gen+1); !errors.Is(err, store.ErrConflict) {
			t.Errorf("got %v, want ErrConflict", err)
		}
	}
	wantVersions(t, v, "one")
}

func testVersionsDelete(t *testing.T, s store.Store, v store.Versioned) {
	put(t, s, store.StateKey, "one", store.Absent)
	put(t, s, store.StateKey, "two", store.Any)
	if err := s.Delete(t.Context(), store.StateKey); err != nil {
		t.Fatal(err)
	}
	wantVersions(t, v, "two", "one")
	put(t, s, store.StateKey, "three", store.Absent)
	wantVersions(t, v, "three", "two", "one")
}

func testVersionsPutBack(t *testing.T, s store.Store, v store.Versioned) {
	put(t, s, store.StateKey, "good", store.Absent)
	bad := put(t, s, store.StateKey, "bad", store.Any)
	list := wantVersions(t, v, "bad", "good")
	object, err := v.GetVersion(t.Context(), store.StateKey, list[1].Generation)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, store.StateKey, string(object.Data), bad)
	wantVersions(t, v, "good", "bad", "good")
}

func testVersionsHidden(t *testing.T, s store.Store, v store.Versioned) {
	for i := range 3 {
		put(t, s, store.StateKey, fmt.Sprint(i), store.Any)
		put(t, s, "state.json-else", "not a version of it", store.Any)
	}
	if list, err := s.List(t.Context(), ""); err != nil || keysOf(list) != "state.json state.json-else" {
		t.Errorf("list: got %s, %v", keysOf(list), err)
	}
	wantVersions(t, v, "2", "1", "0")
}

func testVersionsBusy(t *testing.T, s store.Store, v store.Versioned) {
	const writes = 20 // as many as every store keeps
	put(t, s, store.StateKey, string(Whole(0)), store.Absent)
	var done atomic.Bool
	each(t, 3, func(worker int) error {
		if worker == 0 {
			defer done.Store(true)
			for n := range writes {
				if _, err := s.Put(t.Context(), store.StateKey, Whole(n), store.Any); err != nil {
					return err
				}
			}
			return nil
		}
		for !done.Load() {
			list, err := v.Versions(t.Context(), store.StateKey)
			if err != nil {
				return err
			}
			for _, attrs := range list {
				object, err := v.GetVersion(t.Context(), store.StateKey, attrs.Generation)
				if err != nil {
					return err
				}
				if object.Generation != attrs.Generation || !IsWhole(object.Data, writes) {
					return fmt.Errorf("generation %d: got %+v", attrs.Generation, object.Attrs)
				}
			}
		}
		return nil
	})
}

func testVersionsBadKeys(t *testing.T, _ store.Store, v store.Versioned) {
	for _, key := range []string{"", "/a", "../state.json", ".versions", "a//b"} {
		if _, err := v.Versions(t.Context(), key); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("versions of %q: got %v, want a rejection", key, err)
		}
		if _, err := v.GetVersion(t.Context(), key, 1); err == nil || errors.Is(err, store.ErrNotFound) {
			t.Errorf("get a version of %q: got %v, want a rejection", key, err)
		}
	}
}

func testVersionsCancelled(t *testing.T, s store.Store, v store.Versioned) {
	gen := put(t, s, store.StateKey, "one", store.Absent)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Versions(ctx, store.StateKey); !errors.Is(err, context.Canceled) {
		t.Errorf("versions: got %v, want context.Canceled", err)
	}
	if _, err := v.GetVersion(ctx, store.StateKey, gen); !errors.Is(err, context.Canceled) {
		t.Errorf("get: got %v, want context.Canceled", err)
	}
}
