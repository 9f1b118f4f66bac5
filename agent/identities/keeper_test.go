package identities

import (
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/clusterapi/keys"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// While the controller sends the authorities they are hardly read, and older ones never take
// the place of newer ones.
func TestAuthoritiesThatAreSent(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		s := &storetest.Faulty{Store: storetest.NewMemory(), Before: func(op storetest.Op, _ string) error {
			if op == storetest.OpGet {
				reads.Add(1)
			}
			return nil
		}}
		join := func() store.Object {
			if _, err := keys.Join(t.Context(), s, "stack", "ann", time.Now()); err != nil {
				t.Fatal(err)
			}
			object, err := s.Get(t.Context(), keys.AuthoritiesKey)
			if err != nil {
				t.Fatal(err)
			}
			return object
		}
		first := join()
		k := New(s, slog.New(slog.DiscardHandler))
		defer k.Stop()
		k.Follow(func() bool { return true })
		path := filepath.Join(dir, "identity")
		if err := k.Keep(t.Context(), path, &Own{Key: []byte("key"), Certificate: []byte("certificate")}); err != nil {
			t.Fatal(err)
		}
		file := func() string {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		one := file()
		second := join()
		before := reads.Load()
		time.Sleep(time.Hour)
		if n := reads.Load() - before; n > 2 {
			t.Errorf("the authorities were read %d times in an hour", n)
		}
		third := join()
		k.Push(third.Generation, third.Data)
		three := file()
		k.Push(second.Generation, second.Data) // late
		k.Push(first.Generation, first.Data)
		if got := file(); got != three || len(three) <= len(one) {
			t.Errorf("the file has %d bytes after %d with the newest authorities, and %d with the first", len(got), len(three), len(one))
		}
	})
}
