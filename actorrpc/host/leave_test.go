package host

import (
	"context"
	"sync"
	"testing"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// An actor leaves while calls of another one begin, again and again: they do not disturb each other.
func TestUnregisterBesideCallsOfAnother(t *testing.T) {
	s := started(t, Config{}, map[string]any{"counter": newLesson()}, Options{})
	c := connect(t, s, "a")
	called, stop := context.WithCancel(t.Context())
	var leaving sync.WaitGroup
	leaving.Go(func() {
		for called.Err() == nil {
			if _, err := s.Register("passing", newLesson(), Options{}); err != nil {
				t.Error(err)
			}
			if err := s.Unregister(t.Context(), "passing"); err != nil {
				t.Error(err)
			}
		}
	})
	for n := range 300 {
		c.wants(n+1, "counter", "increment", 1)
	}
	stop()
	leaving.Wait()
}

// An actor leaves while calls of it come whose arguments do not: each is answered.
func TestUnregisterBesideCallsThatWaitForTheirArguments(t *testing.T) {
	s := started(t, Config{}, nil, Options{})
	c := takingParts(t, s, "a")
	for range 300 {
		if _, err := s.Register("books", &books{}, Options{}); err != nil {
			t.Fatal(err)
		}
		var leaving sync.WaitGroup
		leaving.Go(func() {
			if err := s.Unregister(t.Context(), "books"); err != nil {
				t.Error(err)
			}
		})
		seq, _ := c.announce("books", 1)
		if _, err := c.result(seq); err == nil || err.Code != rpcerror.CodeStopping && err.Code != rpcerror.CodeUnknownActor {
			t.Errorf("got %v, want that the actor is gone", err)
		}
		leaving.Wait()
	}
}
