package mailbox

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// transfers counts the reads that return content.
type transfers struct {
	*storetest.Memory
	count int
}

func (c *transfers) GetUnless(ctx context.Context, key string, known store.Generation) (store.Object, error) {
	object, err := c.Get(ctx, key)
	if err == nil && object.Generation == known {
		return store.Object{}, store.ErrUnchanged
	}
	c.count++
	return object, err
}

// A poll of an assignment that did not change transfers none of it.
func TestPollTransfersChangesOnly(t *testing.T) {
	s := &transfers{Memory: storetest.NewMemory()}
	p := &Poller{Store: s, Slice: "s", Log: slog.New(slog.DiscardHandler)}
	for generation := range int64(3) {
		data, err := store.Encode(&state.Assignment{Slice: "s", Generation: generation + 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(t.Context(), store.AssignKey("s"), data, store.Any); err != nil {
			t.Fatal(err)
		}
		a, err := p.poll(t.Context())
		if err != nil || a == nil || a.Generation != generation+1 {
			t.Fatalf("poll after a change: got %+v, %v", a, err)
		}
		before := s.count
		for range 10 {
			if a, err := p.poll(t.Context()); a != nil || err != nil {
				t.Fatalf("poll without a change: got %+v, %v", a, err)
			}
		}
		if s.count != before {
			t.Errorf("polls without a change transferred the assignment %d times", s.count-before)
		}
	}
	if err := s.Delete(t.Context(), store.AssignKey("s")); err != nil {
		t.Fatal(err)
	}
	if a, err := p.poll(t.Context()); a != nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("poll of an assignment that is gone: got %+v, %v", a, err)
	}
}
