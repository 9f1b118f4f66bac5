package storage_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"

	gcs "cloud.google.com/go/storage"

	"github.com/fray-ml/fray/providers/gcp/emulator/storage"
)

// Uploads in chunks: the end of each may be lost, and it comes again.
func TestChunksThatComeAgain(t *testing.T) {
	s := start(t, storage.Config{Seed: 3, Faults: storage.Faults{LostReplies: 0.3, Unavailable: 0.2}})
	want := make([]byte, 8*256<<10+17)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(want)
	client := s.client(t)
	client.SetRetry(gcs.WithPolicy(gcs.RetryAlways), gcs.WithErrorFunc(func(err error) bool {
		return statusOf(err) == -1 || statusOf(err) == http.StatusServiceUnavailable
	}))
	object := client.Bucket("acme").Object("blob")
	w := object.NewWriter(t.Context())
	w.ChunkSize = 256 << 10
	_, err := w.Write(want)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if err := s.SetFaults(storage.Faults{}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, object); !bytes.Equal([]byte(got), want) {
		t.Errorf("got %d other bytes, want the %d that were sent", len(got), len(want))
	}
	if attrs, err := object.Attrs(t.Context()); err != nil || attrs.Metageneration != 1 {
		t.Errorf("got %+v, %v", attrs, err)
	}
}

func TestChecksumsAreHeld(t *testing.T) {
	s := start(t, storage.Config{})
	w := s.client(t).Bucket("acme").Object("x").NewWriter(t.Context())
	w.CRC32C, w.SendCRC32C = 42, true
	_, err := io.WriteString(w, "content")
	wantStatus(t, "wrong checksum", errors.Join(err, w.Close()), http.StatusBadRequest)
}
