package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

func TestDirVersions(t *testing.T) {
	storetest.RunVersioned(t, func(t *testing.T) store.Store { return newDir(t) })
}

func TestMemoryVersions(t *testing.T) {
	storetest.RunVersioned(t, func(*testing.T) store.Store { return storetest.NewMemory() })
}

// versionFile is where a directory keeps an old state.
func versionFile(d *store.Dir, gen store.Generation) string {
	return filepath.Join(d.Location(), ".versions", store.StateKey, fmt.Sprint(gen))
}

// contents are those of all versions of the state, newest first.
func contents(t *testing.T, d *store.Dir) []string {
	t.Helper()
	list, err := d.Versions(t.Context(), store.StateKey)
	if err != nil {
		t.Fatal(err)
	}
	found := make([]string, len(list))
	for i, attrs := range list {
		object, err := d.GetVersion(t.Context(), store.StateKey, attrs.Generation)
		if err != nil {
			t.Fatal(err)
		}
		found[i] = string(object.Data)
	}
	return found
}

func TestDirKeepsTwentyVersionsOfTheStateAlone(t *testing.T) {
	d := newDir(t)
	for i := range 30 {
		put(t, d, store.StateKey, fmt.Sprint(i))
		put(t, d, store.LeaseKey, fmt.Sprint(i))
	}
	got := contents(t, d)
	if len(got) != 21 || got[0] != "29" || got[20] != "9" {
		t.Errorf("got %v, want 29 and the twenty before it", got)
	}
	list, err := d.Versions(t.Context(), store.LeaseKey)
	if !errors.Is(err, store.ErrNoVersions) || !strings.Contains(err.Error(), store.LeaseKey) || len(list) != 1 {
		t.Errorf("versions of the lease: got %v, %v, want the live one and ErrNoVersions", list, err)
	}
	if list, err := d.Versions(t.Context(), store.HandoverKey); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("versions of nothing: got %v, %v, want ErrNotFound", list, err)
	}
	kept, err := os.ReadDir(filepath.Join(d.Location(), ".versions"))
	if err != nil || len(kept) != 1 || kept[0].Name() != store.StateKey {
		t.Errorf("kept: got %v, %v, want %s only", kept, err, store.StateKey)
	}
}

func TestDirKeepsVersionsWithinSixtyFourMebibytes(t *testing.T) {
	tests := []struct {
		name string
		size int64 // of each old version
		old  int   // of them that are left
	}{
		{"many", 16 << 20, 4},
		{"two", 32 << 20, 2},
		{"one, whatever its size", 65 << 20, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := newDir(t)
			for range 6 {
				gen := put(t, d, store.StateKey, "state")
				// As large as if it had been written so.
				path := filepath.Join(d.Location(), store.StateKey)
				if err := os.Truncate(path, test.size); err != nil {
					t.Fatal(err)
				}
				at := time.Unix(0, int64(gen))
				if err := os.Chtimes(path, at, at); err != nil {
					t.Fatal(err)
				}
			}
			put(t, d, store.StateKey, "the last")
			list, err := d.Versions(t.Context(), store.StateKey)
			if err != nil || len(list) != test.old+1 || list[0].Size != int64(len("the last")) {
				t.Errorf("got %d versions, %v, want the live one and %d", len(list), err, test.old)
			}
			wantContent(t, d, store.StateKey, "the last")
		})
	}
}

// A writer that died between its link and its rename left two names of the
// live version.
func TestDirVersionThatIsStillTheLiveOne(t *testing.T) {
	d := newDir(t)
	put(t, d, store.StateKey, "one")
	gen := put(t, d, store.StateKey, "two")
	if err := os.Link(filepath.Join(d.Location(), store.StateKey), versionFile(d, gen)); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(contents(t, d), " "); got != "two one" {
		t.Errorf("got %s, want two one", got)
	}
	put(t, d, store.StateKey, "three")
	if got := strings.Join(contents(t, d), " "); got != "three two one" {
		t.Errorf("after the next write: got %s, want three two one", got)
	}
}

// The history is worth less than the write.
func TestDirWritesStateWhoseVersionsCannotBeKept(t *testing.T) {
	d := newDir(t)
	put(t, d, store.StateKey, "one")
	if err := os.WriteFile(filepath.Join(d.Location(), ".versions"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, d, store.StateKey, "two")
	put(t, d, store.StateKey, "three")
	wantContent(t, d, store.StateKey, "three")
	if list, err := d.Versions(t.Context(), store.StateKey); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v, want the live one", list, err)
	}
}

// What a hand or another program put beside the versions is none.
func TestDirVersionsAreFilesNamedAfterGenerations(t *testing.T) {
	d := newDir(t)
	put(t, d, store.StateKey, "one")
	gen := put(t, d, store.StateKey, "two")
	folder := filepath.Dir(versionFile(d, gen))
	for _, name := range []string{"notes.txt", "-5", "0"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "77"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(contents(t, d), " "); got != "two one" {
		t.Errorf("got %s, want two one", got)
	}
}
