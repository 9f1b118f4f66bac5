package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/filelock"
	"github.com/fray-ml/fray/providers/gcp/bucket"
	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/rl/journal"
	"github.com/fray-ml/fray/state/store"
)

// opener opens one journal again and again.
type opener func(t *testing.T) (*journal.Journal, []string, error)

func inDir(dir string) opener {
	return func(t *testing.T) (*journal.Journal, []string, error) {
		j, records, err := journal.OpenDir(t.Context(), journal.DirConfig{Path: dir})
		return j, texts(records), err
	}
}

func inStore(dir string) opener {
	return func(t *testing.T) (*journal.Journal, []string, error) {
		s, err := store.CreateDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		j, records, err := journal.OpenStore(t.Context(), s, "rl/trajectory_pool/")
		return j, texts(records), err
	}
}

func inBucket(t *testing.T) opener {
	wire := buckettest.New(t)
	return func(t *testing.T) (*journal.Journal, []string, error) {
		b, err := bucket.Open(t.Context(), bucket.Config{
			Bucket: "acme", Prefix: "runs/one", Endpoint: wire.URL + "/storage/v1/", HTTPClient: &http.Client{Transport: wire.Transport()},
			WriteInterval: time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		j, records, err := journal.OpenStore(t.Context(), b, "trajectory_pool/")
		return j, texts(records), err
	}
}

func texts(records [][]byte) []string {
	var out []string
	for _, record := range records {
		out = append(out, string(record))
	}
	return out
}

// each runs a test with a journal in a directory, one in a store and one in an emulated bucket.
func each(t *testing.T, test func(*testing.T, opener)) {
	t.Run("directory", func(t *testing.T) { test(t, inDir(t.TempDir())) })
	t.Run("store", func(t *testing.T) { test(t, inStore(t.TempDir())) })
	t.Run("bucket", func(t *testing.T) { test(t, inBucket(t)) })
}

func mustOpen(t *testing.T, open opener, want ...string) *journal.Journal {
	t.Helper()
	j, got, err := open(t)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the journal has %q, want %q", got, want)
	}
	return j
}

func mustClose(t *testing.T, j *journal.Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsAreReadAgain(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		j := mustOpen(t, open)
		j.Append([]byte("a"))
		if err := j.Wait(j.Append(nil)); err != nil {
			t.Fatal(err)
		}
		mustClose(t, j)
		j = mustOpen(t, open, "a", "")
		if err := j.Wait(j.Append([]byte("b"))); err != nil {
			t.Fatal(err)
		}
		mustClose(t, j)
		mustClose(t, mustOpen(t, open, "a", "", "b"))
	})
}

func TestSnapshotReplacesWhatWasBefore(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		j := mustOpen(t, open)
		j.Append([]byte("a"))
		j.Rewrite([][]byte{[]byte("b"), []byte("c")})
		if err := j.Wait(j.Append([]byte("d"))); err != nil {
			t.Fatal(err)
		}
		mustClose(t, j)
		j = mustOpen(t, open, "b", "c", "d")
		if err := j.Wait(j.Rewrite(nil)); err != nil {
			t.Fatal(err)
		}
		mustClose(t, j)
		mustClose(t, mustOpen(t, open))
	})
}

// Records of many callers are kept in the order of Append, in fewer writes than there are records.
func TestManyCallers(t *testing.T) {
	each(t, func(t *testing.T, open opener) {
		j := mustOpen(t, open)
		var mu sync.Mutex
		var want []string
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() {
				for n := range 4 {
					record := fmt.Sprintf("%d/%d", i, n)
					mu.Lock()
					at := j.Append([]byte(record))
					want = append(want, record)
					mu.Unlock()
					if err := j.Wait(at); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		mustClose(t, j)
		mustClose(t, mustOpen(t, open, want...))
	})
}

func TestClosedJournalTakesNothing(t *testing.T) {
	j := mustOpen(t, inDir(t.TempDir()))
	mustClose(t, j)
	if err := j.Wait(j.Append([]byte("a"))); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// file is the journal's in a directory.
func file(t *testing.T, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "journal-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%q, %v; want one file", found, err)
	}
	return found[0]
}

// Wherever the process dies in its last write, what was written before it is there, and the next records follow it.
func TestTornTailIsDropped(t *testing.T) {
	dir := t.TempDir()
	open := inDir(dir)
	j := mustOpen(t, open)
	if err := j.Wait(j.Append([]byte("first"))); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Wait(j.Append([]byte("second"))); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	both, err := os.ReadFile(file(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	for end := len(whole); end < len(both); end++ {
		if err := os.WriteFile(file(t, dir), both[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		j := mustOpen(t, open, "first")
		if err := j.Wait(j.Append([]byte("third"))); err != nil {
			t.Fatal(err)
		}
		mustClose(t, j)
		mustClose(t, mustOpen(t, open, "first", "third"))
	}
}

func TestDamageInTheMiddleIsAnError(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, inDir(dir))
	for _, record := range []string{"first", "second", "third"} {
		if err := j.Wait(j.Append([]byte(record))); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, j)
	data, err := os.ReadFile(file(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	data[bytes.Index(data, []byte("second"))] ^= 1
	if err := os.WriteFile(file(t, dir), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := inDir(dir)(t); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("got %v, want ErrDamaged: acknowledged records are missing", err)
	}
}

func TestOneProcessWritesADirectory(t *testing.T) {
	open := inDir(t.TempDir())
	j := mustOpen(t, open)
	if _, _, err := open(t); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("opened twice: %v, want ErrHeld", err)
	}
	mustClose(t, j)
	mustClose(t, mustOpen(t, open))
}

// A process waits for a former one that is ending.
func TestTheNextProcessWaitsForTheLock(t *testing.T) {
	dir := t.TempDir()
	former := mustOpen(t, inDir(dir))
	former.Append([]byte("a"))
	j, records, err := journal.OpenDir(t.Context(), journal.DirConfig{Path: dir, Wait: time.Hour, Held: func() { mustClose(t, former) }})
	if err != nil || !slices.Equal(texts(records), []string{"a"}) {
		t.Fatalf("%q, %v; want what the former has written", records, err)
	}
	mustClose(t, j)
}

// A process that was replaced, and does not know, acknowledges nothing more, even after its successor's snapshot has
// removed what was there.
func TestReplacedProcessWritesNothing(t *testing.T) {
	open := inStore(t.TempDir())
	former := mustOpen(t, open)
	if err := former.Wait(former.Append([]byte("a"))); err != nil {
		t.Fatal(err)
	}
	successor := mustOpen(t, open, "a")
	successor.Append([]byte("b"))
	if err := successor.Wait(successor.Rewrite([][]byte{[]byte("c")})); err != nil {
		t.Fatal(err)
	}
	if err := former.Wait(former.Append([]byte("lost"))); !errors.Is(err, journal.ErrReplaced) {
		t.Errorf("got %v, want ErrReplaced", err)
	}
	mustClose(t, successor)
	mustClose(t, mustOpen(t, open, "c"))
}

// What snapshots have replaced is deleted, also what could not be at first.
func TestReplacedObjectsAreDeleted(t *testing.T) {
	d, err := store.CreateDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &keeping{Store: d, keeps: true}
	j, _, err := journal.OpenStore(t.Context(), s, "rl/pool/")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		for range 5 {
			if err := j.Wait(j.Append([]byte("record"))); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Wait(j.Rewrite([][]byte{[]byte("snapshot")})); err != nil {
			t.Fatal(err)
		}
		s.keep(i == 0)
	}
	mustClose(t, j)
	left, err := d.List(t.Context(), "rl/pool/")
	if err != nil || len(left) != 2 {
		t.Errorf("%d objects are left, %v; want that of the opening and the snapshot", len(left), err)
	}
}

// keeping is a store that does not delete for a while.
type keeping struct {
	store.Store
	mu    sync.Mutex
	keeps bool
}

func (k *keeping) keep(keeps bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.keeps = keeps
}

func (k *keeping) Delete(ctx context.Context, key string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.keeps {
		return errors.New("not now")
	}
	return k.Store.Delete(ctx, key)
}

// A snapshot that was not finished when the process died counts for nothing.
func TestUnfinishedSnapshotIsDropped(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, inDir(dir))
	if err := j.Wait(j.Append([]byte("a"))); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	if err := os.WriteFile(filepath.Join(dir, "journal-0000000000000001.new"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	mustClose(t, mustOpen(t, inDir(dir), "a"))
	if found, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(found) > 0 {
		t.Errorf("%q are left", found)
	}
}

func BenchmarkAppend(b *testing.B) {
	j, _, err := journal.OpenDir(b.Context(), journal.DirConfig{Path: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	record := make([]byte, 4<<10)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := j.Wait(j.Append(record)); err != nil {
				b.Error(err)
			}
		}
	})
}
