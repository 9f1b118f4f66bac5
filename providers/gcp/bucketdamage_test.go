package gcp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
)

func TestDamagedDownloads(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 20)
	for name, f := range map[string]fault{
		"cut off": {damage: half}, "shortened": {damage: short}, "a bit flipped": {damage: flipped},
		"without a checksum": {damage: unsummed}, "hanging": {damage: part, stall: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			b := w.open(t, impatient())
			put(t, b, "state.json", content, store.Absent)
			w.inject(reqGet, f, f)
			wantContent(t, b, "state.json", content)
			w.left(t)
		})
	}
	t.Run("slow", func(t *testing.T) {
		t.Parallel()
		content := strings.Repeat(content, 4)
		w := newWire(t)
		tempo := quick()
		tempo.stall = 3 * time.Second // no byte takes that long on its way
		b := w.open(t, tempo)
		put(t, b, "state.json", content, store.Absent)
		w.inject(reqGet, fault{damage: dripping})
		began := time.Now()
		wantContent(t, b, "state.json", content)
		if counts := w.count(); counts[reqGet] != 1 || time.Since(began) < b.tempo.stall {
			t.Errorf("%d requests in %v, want one that took longer than a stall may", counts[reqGet], time.Since(began))
		}
	})
}

// The rest of a generation that is gone is not found; the object is.
func TestDownloadCutOffByAWrite(t *testing.T) {
	w := newWire(t)
	b, other := w.open(t, quick()), w.open(t, quick())
	put(t, b, "state.json", strings.Repeat("old", 100), store.Absent)
	w.inject(reqGet, fault{damage: func(out http.ResponseWriter, reply *httptest.ResponseRecorder) {
		if _, err := other.Put(t.Context(), "state.json", []byte("new"), store.Any); err != nil {
			t.Error(err)
		}
		half(out, reply)
	}})
	wantContent(t, b, "state.json", "new")
}

func TestDamagedStreams(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("0123456789", 100_000)
	w := newWire(t)
	b := w.open(t, impatient())
	if err := uploaded(t.Context(), b, content); err != nil {
		t.Fatal(err)
	}
	put(t, b, "logs/x", content, store.Absent)
	for name, f := range map[string]fault{"cut off": {damage: half}, "hanging": {damage: part, stall: true}} {
		w.inject(reqGet, f, f)
		if err := readsAs(t.Context(), b, "logs/x", content); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		w.left(t)
	}
	for name, damage := range map[string]func(http.ResponseWriter, *httptest.ResponseRecorder){
		"shortened": short, "a bit flipped": flipped,
	} {
		w.inject(reqGet, fault{damage: damage})
		if err := readsAs(t.Context(), b, "logs/x", content); err == nil || !strings.Contains(err.Error(), "CRC") {
			t.Errorf("%s: got %v, want a bad CRC", name, err)
		}
	}
}
