package gcp

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fray-ml/fray/agent/bundle"
	"github.com/fray-ml/fray/state/store"
)

// largeProject has files of 8 MiB, so that a part has one or two of them. Each
// compresses to the noise that it begins with.
func largeProject(t testing.TB, files, noise int) bundle.Project {
	t.Helper()
	dir := t.TempDir()
	for i := range files {
		random := make([]byte, noise)
		_, _ = rand.NewChaCha8([32]byte{byte(i)}).Read(random)
		text := hex.EncodeToString(random)
		text += strings.Repeat(text[:64], (8<<20-len(text))/64)
		if err := os.WriteFile(filepath.Join(dir, text[:8]), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	measured, err := bundle.Measure(dir)
	if err != nil {
		t.Fatal(err)
	}
	return bundle.Project{Dir: dir, Bundle: measured}
}

// brisk is quick with the chunks of the service.
func brisk() tempo {
	t := quick()
	t.chunk = serviceTempo().chunk
	return t
}

func wantFetched(t *testing.T, s store.Store, p bundle.Project) {
	t.Helper()
	to := t.TempDir()
	if err := (bundle.Fetcher{Store: s, Keep: filepath.Join(t.TempDir(), "keep")}).Fetch(t.Context(), p.Bundle.Sum, to); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(p.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		want, wantErr := os.ReadFile(filepath.Join(p.Dir, f.Name()))
		got, err := os.ReadFile(filepath.Join(to, f.Name()))
		if err != nil || wantErr != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, %v, want %d as shipped, %v", f.Name(), len(got), err, len(want), wantErr)
		}
	}
}

func TestBundleThroughABucket(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	b := w.open(t, brisk())
	p := largeProject(t, 4, 1<<20)
	parts := len(p.Bundle.Parts)
	if parts < 2 {
		t.Fatalf("there are %d parts, want some", parts)
	}
	shipper := bundle.Shipper{Store: b}
	if err := shipper.Ship(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	first := w.count()
	if first[reqPut]+first[reqSession] != parts+1 || first[reqStat] != first[reqSession] {
		t.Errorf("shipped with %v, want a write for each of %d parts and the index, and a look before what takes several", first, parts)
	}
	if err := shipper.Ship(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	again := w.count()
	if again[reqList] != 2 || again[reqGet] != 1 || again[reqPut]+again[reqSession]+again[reqStat] != 0 {
		t.Errorf("shipped again with %v, want two lists and the index", again)
	}
	wantFetched(t, b, p)
	if fetched := w.count(); fetched[reqGet] != parts+2 {
		t.Errorf("fetched with %v, want the whole, which is not there, the index and %d parts", fetched, parts)
	}
}

func TestBundleSurvivesPassingFaults(t *testing.T) {
	t.Parallel()
	p := largeProject(t, 2, 1<<20)
	for _, f := range passingFaults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel() // stalls are waited for
			w := newWire(t)
			b := w.open(t, impatient())
			for _, kind := range []request{reqList, reqStat, reqPut, reqSession, reqChunk} {
				w.inject(kind, f)
			}
			if err := (bundle.Shipper{Store: b}).Ship(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			w.left(t)
			w.inject(reqGet, f, f)
			wantFetched(t, b, p)
			w.left(t)
		})
	}
}

func TestBundleGoesOnAfterAnInterruption(t *testing.T) {
	t.Parallel()
	p := largeProject(t, 5, 1<<20)
	parts := len(p.Bundle.Parts)
	for _, after := range []int{0, 1, parts - 1} {
		w := newWire(t)
		b := w.open(t, brisk())
		var mu sync.Mutex
		written := 0
		w.always(func(kind request) (fault, bool) {
			mu.Lock()
			defer mu.Unlock()
			if kind == reqPut || kind == reqSession {
				written++
				return answer(http.StatusForbidden, "you may not write any more"), written > after
			}
			return fault{}, false
		})
		// One at a time: none is under way when one fails, to arrive late.
		err := bundle.Shipper{Store: b, Workers: 1}.Ship(t.Context(), p)
		if err == nil || !strings.Contains(err.Error(), "storage.objects.create") {
			t.Errorf("after %d parts: got %v, want what is missing", after, err)
		}
		w.always(nil)
		there, err := b.List(t.Context(), store.BundlesPrefix)
		if err != nil || len(there) != after {
			t.Fatalf("after %d parts: found %d, %v", after, len(there), err)
		}
		w.count()
		if err := (bundle.Shipper{Store: b}).Ship(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if got := w.count(); got[reqPut]+got[reqSession] != parts-len(there)+1 {
			t.Errorf("after %d parts: went on with %v, want the other %d parts and the index", after, got, parts-len(there))
		}
		wantFetched(t, b, p)
	}
}

func TestBundleOfTwoAtOnce(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	p := largeProject(t, 2, 1<<20)
	var shipping sync.WaitGroup
	for range 3 {
		b := w.open(t, brisk())
		shipping.Go(func() {
			if err := (bundle.Shipper{Store: b}).Ship(t.Context(), p); err != nil {
				t.Error(err)
			}
		})
	}
	shipping.Wait()
	b := w.open(t, brisk())
	wantFetched(t, b, p)
	if all, err := b.List(t.Context(), ""); err != nil || len(all) != len(p.Bundle.Parts)+1 {
		t.Errorf("left %d objects, %v, want %d parts and the index", len(all), err, len(p.Bundle.Parts))
	}
}

func TestBundleDamagedOnItsWay(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	b := w.open(t, brisk())
	p := largeProject(t, 3, 1<<20)
	if err := (bundle.Shipper{Store: b}).Ship(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	w.count()
	// The first two requests ask for the whole, which is not there, and the index.
	none := fault{damage: reply}
	w.inject(reqGet, none, none, fault{name: "a bit", damage: flipped}, fault{name: "cut short", damage: short})
	wantFetched(t, b, p)
	w.left(t)
	if got := w.count()[reqGet]; got != len(p.Bundle.Parts)+4 {
		t.Errorf("got %d requests, want %d parts, two of them twice, the index and the whole", got, len(p.Bundle.Parts))
	}
}
