package bucket

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
	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
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
func brisk() client.Pace {
	t := clienttest.Quick()
	t.Chunk = client.ServicePace().Chunk
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
	w := buckettest.New(t)
	b := opened(t, w, brisk())
	p := largeProject(t, 4, 1<<20)
	parts := len(p.Bundle.Parts)
	if parts < 2 {
		t.Fatalf("there are %d parts, want some", parts)
	}
	shipper := bundle.Shipper{Store: b}
	if err := shipper.Ship(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	first := w.Count()
	if first[buckettest.ReqPut]+first[buckettest.ReqSession] != parts+1 || first[buckettest.ReqStat] != first[buckettest.ReqSession] {
		t.Errorf("shipped with %v, want a write for each of %d parts and the index, and a look before what takes several", first, parts)
	}
	if err := shipper.Ship(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	again := w.Count()
	if again[buckettest.ReqList] != 2 || again[buckettest.ReqGet] != 1 || again[buckettest.ReqPut]+again[buckettest.ReqSession]+again[buckettest.ReqStat] != 0 {
		t.Errorf("shipped again with %v, want two lists and the index", again)
	}
	wantFetched(t, b, p)
	if fetched := w.Count(); fetched[buckettest.ReqGet] != parts+2 {
		t.Errorf("fetched with %v, want the whole, which is not there, the index and %d parts", fetched, parts)
	}
}

func TestBundleSurvivesPassingFaults(t *testing.T) {
	t.Parallel()
	p := largeProject(t, 2, 1<<20)
	for _, f := range clienttest.PassingFaults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel() // stalls are waited for
			w := buckettest.New(t)
			b := opened(t, w, impatient())
			for _, kind := range []buckettest.Request{buckettest.ReqList, buckettest.ReqStat, buckettest.ReqPut, buckettest.ReqSession, buckettest.ReqChunk} {
				w.Inject(kind, f)
			}
			if err := (bundle.Shipper{Store: b}).Ship(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			w.Left(t)
			w.Inject(buckettest.ReqGet, f, f)
			wantFetched(t, b, p)
			w.Left(t)
		})
	}
}

func TestBundleGoesOnAfterAnInterruption(t *testing.T) {
	t.Parallel()
	p := largeProject(t, 5, 1<<20)
	parts := len(p.Bundle.Parts)
	for _, after := range []int{0, 1, parts - 1} {
		w := buckettest.New(t)
		b := opened(t, w, brisk())
		var mu sync.Mutex
		written := 0
		w.Always(func(kind buckettest.Request) (clienttest.Fault, bool) {
			mu.Lock()
			defer mu.Unlock()
			if kind == buckettest.ReqPut || kind == buckettest.ReqSession {
				written++
				return clienttest.Answer(http.StatusForbidden, "you may not write any more"), written > after
			}
			return clienttest.Fault{}, false
		})
		// One at a time: none is under way when one fails, to arrive late.
		err := bundle.Shipper{Store: b, Workers: 1}.Ship(t.Context(), p)
		if err == nil || !strings.Contains(err.Error(), "storage.objects.create") {
			t.Errorf("after %d parts: got %v, want what is missing", after, err)
		}
		w.Always(nil)
		there, err := b.List(t.Context(), store.BundlesPrefix)
		if err != nil || len(there) != after {
			t.Fatalf("after %d parts: found %d, %v", after, len(there), err)
		}
		w.Count()
		if err := (bundle.Shipper{Store: b}).Ship(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		if got := w.Count(); got[buckettest.ReqPut]+got[buckettest.ReqSession] != parts-len(there)+1 {
			t.Errorf("after %d parts: went on with %v, want the other %d parts and the index", after, got, parts-len(there))
		}
		wantFetched(t, b, p)
	}
}

func TestBundleOfTwoAtOnce(t *testing.T) {
	t.Parallel()
	w := buckettest.New(t)
	p := largeProject(t, 2, 1<<20)
	var shipping sync.WaitGroup
	for range 3 {
		b := opened(t, w, brisk())
		shipping.Go(func() {
			if err := (bundle.Shipper{Store: b}).Ship(t.Context(), p); err != nil {
				t.Error(err)
			}
		})
	}
	shipping.Wait()
	b := opened(t, w, brisk())
	wantFetched(t, b, p)
	if all, err := b.List(t.Context(), ""); err != nil || len(all) != len(p.Bundle.Parts)+1 {
		t.Errorf("left %d objects, %v, want %d parts and the index", len(all), err, len(p.Bundle.Parts))
	}
}

func TestBundleDamagedOnItsWay(t *testing.T) {
	t.Parallel()
	w := buckettest.New(t)
	b := opened(t, w, brisk())
	p := largeProject(t, 3, 1<<20)
	if err := (bundle.Shipper{Store: b}).Ship(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	// One in each fetch: two could hit the same part twice, which ends a fetch.
	for _, f := range []clienttest.Fault{{Name: "a bit", Damage: clienttest.Flipped}, {Name: "cut short", Damage: clienttest.Short}} {
		w.Count()
		// The first two requests ask for the whole, which is not there, and the index.
		none := clienttest.Fault{Damage: clienttest.Reply}
		w.Inject(buckettest.ReqGet, none, none, f)
		wantFetched(t, b, p)
		w.Left(t)
		if got := w.Count()[buckettest.ReqGet]; got != len(p.Bundle.Parts)+3 {
			t.Errorf("%s: got %d requests, want %d parts, one of them twice, the index and the whole", f.Name, got, len(p.Bundle.Parts))
		}
	}
}
