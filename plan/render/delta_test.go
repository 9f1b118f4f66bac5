package render

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// longestCommon is the oracle: slow and plain.
func longestCommon(a, b []string) int {
	switch {
	case len(a) == 0 || len(b) == 0:
		return 0
	case a[0] == b[0]:
		return 1 + longestCommon(a[1:], b[1:])
	}
	return max(longestCommon(a[1:], b), longestCommon(a, b[1:]))
}

// walk applies edits and returns both lists as the edits tell them.
func walk(edits []edit, a, b []string) (before, after []string, same int) {
	for _, e := range edits {
		if e.mark != markAdd {
			before = append(before, a[e.before])
		}
		if e.mark != markRemove {
			after = append(after, b[e.after])
		}
		if e.mark == markSame {
			same++
		}
	}
	return before, after, same
}

func TestDeltaIsShortestAndExact(t *testing.T) {
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		a, b := words.Draw(t, "a"), words.Draw(t, "b")
		for name, edits := range map[string][]edit{"delta": delta(a, b), "paired": paired(delta(a, b))} {
			before, after, same := walk(edits, a, b)
			if !slices.Equal(before, a) || !slices.Equal(after, b) {
				t.Errorf("%s goes from %v to %v, want %v to %v", name, before, after, a, b)
			}
			if want := longestCommon(a, b); same != want {
				t.Errorf("%s keeps %d, want %d", name, same, want)
			}
		}
	})
}

func TestDeltaOfLargeListsIsExact(t *testing.T) {
	a, b := make([]string, 2000), make([]string, 1500)
	for i := range a {
		a[i] = string(rune('a' + i%7))
	}
	for i := range b {
		b[i] = string(rune('a' + i%11))
	}
	before, after, _ := walk(delta(a, b), a, b)
	if !slices.Equal(before, a) || !slices.Equal(after, b) {
		t.Error("the edits do not lead from the one list to the other")
	}
}
