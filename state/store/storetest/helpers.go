package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/state/store"
)

func put(t *testing.T, s store.Store, key, data string, want store.Generation) store.Generation {
	t.Helper()
	gen, err := s.Put(t.Context(), key, []byte(data), want)
	if err != nil {
		t.Fatal(err)
	}
	if gen <= 0 {
		t.Fatalf("put %s: generation %d is not above 0", key, gen)
	}
	return gen
}

func read(t *testing.T, s store.Store, key string) string {
	t.Helper()
	r, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// each runs n workers at once and fails the test with their errors.
func each(t *testing.T, n int, work func(worker int) error) {
	t.Helper()
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = work(i) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("worker %d: %v", i, err)
		}
	}
}

// eventually polls a condition that other goroutines bring about.
func eventually(what string, holds func() bool) error {
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			return fmt.Errorf("never happened: %s", what)
		}
	}
	return nil
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// pattern reads size bytes that do not repeat with any buffer's length.
func pattern(size int64) io.Reader { return io.LimitReader(&patternReader{}, size) }

type patternReader struct{ n uint32 }

func (r *patternReader) Read(p []byte) (int, error) {
	for i := range p {
		r.n = r.n*1664525 + 1013904223
		p[i] = byte(r.n >> 24)
	}
	return len(p), nil
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// callReader calls itself when it is read, and is empty.
type callReader func()

func (r callReader) Read([]byte) (int, error) {
	r()
	return 0, io.EOF
}

// contextOf is a context for cleanups, for which t.Context has ended.
func contextOf(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }
