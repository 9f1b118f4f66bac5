package bucket

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/providers/gcp/bucket/buckettest"
	"github.com/fray-ml/fray/providers/gcp/client/clienttest"
	"github.com/fray-ml/fray/state/store"
)

func TestDamagedDownloads(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 20)
	for name, f := range map[string]clienttest.Fault{
		"cut off": {Damage: clienttest.Half}, "shortened": {Damage: clienttest.Short}, "a bit flipped": {Damage: clienttest.Flipped},
		"without a checksum": {Damage: clienttest.Unsummed}, "hanging": {Damage: clienttest.Part, Stall: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := buckettest.New(t)
			b := opened(t, w, impatient())
			put(t, b, "state.json", content, store.Absent)
			w.Inject(buckettest.ReqGet, f, f)
			wantContent(t, b, "state.json", content)
			w.Left(t)
		})
	}
	t.Run("slow", func(t *testing.T) {
		t.Parallel()
		content := strings.Repeat(content, 4)
		w := buckettest.New(t)
		tempo := clienttest.Quick()
		tempo.Stall = 3 * time.Second // no byte takes that long on its way
		b := opened(t, w, tempo)
		put(t, b, "state.json", content, store.Absent)
		w.Inject(buckettest.ReqGet, clienttest.Fault{Damage: clienttest.Dripping})
		began := time.Now()
		wantContent(t, b, "state.json", content)
		if counts := w.Count(); counts[buckettest.ReqGet] != 1 || time.Since(began) < b.tempo.Stall {
			t.Errorf("%d requests in %v, want one that took longer than a stall may", counts[buckettest.ReqGet], time.Since(began))
		}
	})
}

// The rest of a generation that is gone is not found; the object is.
func TestDownloadCutOffByAWrite(t *testing.T) {
	w := buckettest.New(t)
	b, other := opened(t, w, clienttest.Quick()), opened(t, w, clienttest.Quick())
	put(t, b, "state.json", strings.Repeat("old", 100), store.Absent)
	w.Inject(buckettest.ReqGet, clienttest.Fault{Damage: func(out http.ResponseWriter, reply *httptest.ResponseRecorder) {
		if _, err := other.Put(t.Context(), "state.json", []byte("new"), store.Any); err != nil {
			t.Error(err)
		}
		clienttest.Half(out, reply)
	}})
	wantContent(t, b, "state.json", "new")
}

func TestDamagedStreams(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 100_000)
	w := buckettest.New(t)
	b := opened(t, w, impatient())
	if err := uploaded(t.Context(), b, content); err != nil {
		t.Fatal(err)
	}
	put(t, b, "logs/x", content, store.Absent)
	for name, f := range map[string]clienttest.Fault{"cut off": {Damage: clienttest.Half}, "hanging": {Damage: clienttest.Part, Stall: true}} {
		w.Inject(buckettest.ReqGet, f, f)
		if err := readsAs(t.Context(), b, "logs/x", content); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		w.Left(t)
	}
	// In a bucket of its own: a request that the client gave up above may arrive late, and take a fault.
	w = buckettest.New(t)
	b = opened(t, w, impatient())
	put(t, b, "logs/x", content, store.Absent)
	for name, damage := range map[string]func(http.ResponseWriter, *httptest.ResponseRecorder){
		"shortened": clienttest.Short, "a bit flipped": clienttest.Flipped,
	} {
		w.Inject(buckettest.ReqGet, clienttest.Fault{Damage: damage})
		if err := readsAs(t.Context(), b, "logs/x", content); err == nil || !strings.Contains(err.Error(), "CRC") {
			t.Errorf("%s: got %v, want a bad CRC", name, err)
		}
	}
}
