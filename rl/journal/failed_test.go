package journal

import (
	"context"
	"errors"
	"iter"
	"testing"
)

type broken struct{ err error }

func (b broken) write(context.Context, []byte) error             { return b.err }
func (b broken) replace(context.Context, iter.Seq[[]byte]) error { return b.err }
func (b broken) floor() int64                                    { return 0 }
func (b broken) close() error                                    { return nil }

// A write that fails is told to the journal's owner, and nothing is kept in memory for a later one.
func TestAFailedWriteIsReported(t *testing.T) {
	full := errors.New("the disk is full")
	j := start(t.Context(), broken{full}, 0)
	if err := j.Wait(j.Append([]byte("a"))); !errors.Is(err, full) {
		t.Fatalf("got %v", err)
	}
	if err, ok := errors.AsType[*WriteError](j.Wait(1)); !ok || !err.MaybeExecuted() {
		t.Errorf("got %v, want an error after which callers ask again", err)
	}
	if err := j.Failed(t.Context()); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	if err := j.Wait(j.Append([]byte("b"))); !errors.Is(err, full) || len(j.pending) != 0 {
		t.Errorf("got %v with %d records pending", err, len(j.pending))
	}
	whole := start(t.Context(), broken{}, 0)
	if err := whole.Close(); err != nil {
		t.Fatal(err)
	}
	if err := whole.Failed(t.Context()); err != nil {
		t.Errorf("a journal that was closed: %v", err)
	}
}
