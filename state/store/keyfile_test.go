package store_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

func TestKeyFileIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "secret.key")
	if _, err := store.LoadKey(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("load of nothing: got %v, want ErrNotExist", err)
	}
	const racers = 16
	sealed := make([]string, racers)
	var wg sync.WaitGroup
	for i := range racers {
		wg.Go(func() {
			key, err := createKey(path)
			if err != nil {
				t.Error(err)
				return
			}
			if sealed[i], err = key.Seal("x"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, each := range sealed {
		if each != sealed[0] {
			t.Fatal("two racers got two keys")
		}
	}
	key, err := store.LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := key.Open(sealed[0]); err != nil || opened != "x" {
		t.Errorf("opened %q, %v, want x", opened, err)
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("left in its directory: %v, %v, want the key alone", files, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %v, %v, want 0600", info.Mode(), err)
	}
}

func TestKeysDiffer(t *testing.T) {
	one, err := store.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	two, err := store.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := one.Seal("x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.Open(sealed); err == nil {
		t.Error("two new keys are the same")
	}
}

func TestKeyFileThatOthersMayReadIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	if _, err := createKey(path); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[fs.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o644: false, 0o620: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := createKey(path)
		if (err == nil) != want {
			t.Errorf("mode %#o: got %v, want it taken: %v", mode, err, want)
		}
		if !want && !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Errorf("mode %#o: %q does not say what to do", mode, err)
		}
	}
}

func TestKeyFileThatIsDamagedIsLeftAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	for _, content := range []string{"", "fray-key-v1:", "fray-key-v1:AAAA\n", "AAAA", "fray-key-v2:" + strings.Repeat("A", 43) + "="} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := createKey(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: got %v, want an error that names the file", content, err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != content {
			t.Errorf("%q: now it is %q, %v", content, data, err)
		}
	}
}

// A key that is there is read where nothing can be written, such as to a full disk.
func TestKeyFileIsReadWhereNothingCanBeWritten(t *testing.T) {
	folder := t.TempDir()
	if _, err := createKey(filepath.Join(folder, "secret.key")); err != nil {
		t.Fatal(err)
	}
	before := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := os.Chtimes(folder, before, before); err != nil {
		t.Fatal(err)
	}
	if _, err := createKey(filepath.Join(folder, "secret.key")); err != nil {
		t.Error(err)
	}
	// Even a file that is removed at once changes the time of its folder.
	if after, err := os.Stat(folder); err != nil || !after.ModTime().Equal(before) {
		t.Errorf("the folder was written to at %v, %v, want nothing since %v", after.ModTime(), err, before)
	}
}

func TestKeyFileThatIsADirectory(t *testing.T) {
	if _, err := createKey(t.TempDir()); err == nil || !strings.Contains(err.Error(), "regular file") {
		t.Errorf("got %v, want an error that says so", err)
	}
}

func createKey(path string) (*state.Key, error) {
	secret, err := store.CreateSecret(path, nil)
	if err != nil {
		return nil, err
	}
	return state.NewKey(secret)
}

// Keys are replaced as a whole; the former ones come after the current one.
func TestReplaceSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	first, err := store.CreateSecret(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	old, err := store.LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := old.Seal("word")
	if err != nil {
		t.Fatal(err)
	}
	next := state.Secrets{Current: store.NewSecret(), Former: [][]byte{first}}
	if err := store.ReplaceSecrets(path, next); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v, want one that only its owner may read", info.Mode(), err)
	}
	if got, err := store.LoadSecrets(path); err != nil || string(got.Current) != string(next.Current) || len(got.Former) != 1 || string(got.Former[0]) != string(first) {
		t.Errorf("got %v, %v", got, err)
	}
	both, err := store.LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := both.Open(sealed); err != nil || got != "word" {
		t.Errorf("the former key opens %q, %v", got, err)
	}
	anew, err := both.Reseal(sealed)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := old.Open(anew); !errors.Is(err, state.ErrOtherKey) {
		t.Errorf("the former key alone opens what was sealed anew: %q, %v", got, err)
	}
	if err := store.ReplaceSecrets(path, state.Secrets{Current: next.Current}); err != nil {
		t.Fatal(err)
	}
	alone, err := store.LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := alone.Open(sealed); !errors.Is(err, state.ErrOtherKey) {
		t.Errorf("what the removed key sealed opens: %q, %v", got, err)
	}
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 1 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
}
