package tasks

import (
	"context"
	"testing"
)

// Goroutines of a group end with it, and none begins afterwards.
func TestGroupEnds(t *testing.T) {
	g := New()
	ended := 0
	if !g.Run(func(ctx context.Context) { <-ctx.Done(); ended++ }) {
		t.Error("an open group runs nothing")
	}
	g.Close()
	g.Wait()
	if ended != 1 {
		t.Errorf("%d goroutines have ended, want 1", ended)
	}
	if g.Run(func(context.Context) { ended++ }) {
		t.Error("a closed group runs something")
	}
	if g.Wait(); ended != 1 {
		t.Errorf("a closed group ran %d goroutines", ended-1)
	}
}
