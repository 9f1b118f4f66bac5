package state_test

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/state"
)

// Differences applied to what was make what is, and name nothing else.
func TestDifferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := []*state.Slice{{}, {}, {}}
		entries := rapid.MapOf(rapid.IntRange(0, 9), rapid.SampledFrom(records))
		was := entries.Draw(t, "was")
		is := maps.Clone(was)
		if rapid.Bool().Draw(t, "another") {
			is = entries.Draw(t, "is")
		}
		made := maps.Clone(was)
		state.Differences(was, is, func(key int, before, now *state.Slice) {
			if before == now || made[key] != before {
				t.Fatalf("%d: it was reported to change from %p to %p, want a change from %p", key, before, now, made[key])
			}
			if made[key] = now; now == nil {
				delete(made, key)
			}
		})
		if !maps.Equal(made, is) {
			t.Fatalf("the differences make %v, want %v", made, is)
		}
	})
	state.Differences(nil, map[int]*state.Slice(nil), func(int, *state.Slice, *state.Slice) { t.Error("nothing differs from nothing") })
}
