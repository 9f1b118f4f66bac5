package posts

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fray-ml/fray/rl"
)

// TestN88_APostOfAnIDIsTakenOnce: also after its answer was lost, for each backend by itself, and again after a failure or
// once the run went back.
func TestN88_APostOfAnIDIsTakenOnce(t *testing.T) {
	ids := newPostedIDs()
	taken := map[string]int{}
	post := func(backend rl.LoggerBackend, id string, err error) error {
		return ids.do(backend, id, func() error { taken[string(backend)+" "+id]++; return err })
	}
	full := errors.New("the disk is full")
	if err := post(rl.LogJSONL, "a", full); !errors.Is(err, full) {
		t.Fatalf("the failure is %v", err)
	}
	for range 2 {
		for _, id := range []string{"a", ""} {
			if err := errors.Join(post(rl.LogJSONL, id, nil), post(rl.LogConsole, id, nil)); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := map[string]int{"jsonl a": 2, "console a": 1, "jsonl ": 2, "console ": 2}
	for key, n := range want {
		if taken[key] != n {
			t.Errorf("%q is taken %d times, want %d", key, taken[key], n)
		}
	}
	ids.forget()
	if err := post(rl.LogJSONL, "a", nil); err != nil || taken["jsonl a"] != 3 {
		t.Errorf("after the run went back it is taken %d times (%v), want 3", taken["jsonl a"], err)
	}
	for i := range keptPosts + 1 {
		if err := post(rl.LogJSONL, fmt.Sprint(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(ids.known) != keptPosts || len(ids.order) != keptPosts {
		t.Errorf("%d posts are remembered, want %d", len(ids.known), keptPosts)
	}
}
