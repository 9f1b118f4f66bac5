package funcs

import (
	"runtime"
	"testing"
)

// TestLargeTexts: no function of texts or of many elements copies what it has made
// so far for each further piece. Eight times as much then allocates eight times as
// many bytes, or some more where buffers grow, and not sixty-four times.
func TestLargeTexts(t *testing.T) {
	allocated := func(n int, expression string) uint64 {
		ctx := largeContext(t, n, 32)
		evaluateLarge(t, ctx, expression) // what is made once
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		evaluateLarge(t, ctx, expression)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for name, expression := range largeExpressions() {
		small, large := allocated(1, expression), allocated(8, expression)
		if large > 32*small {
			t.Errorf("%s allocates %d bytes for one unit and %d for eight", name, small, large)
		}
	}
}

// TestManyElements: tuples become collections in linear time. In the quadratic time
// that the library takes, this does not end before the limit of all tests.
func TestManyElements(t *testing.T) {
	t.Parallel()
	const units, each = 200, 1000
	ctx := largeContext(t, units, each)
	for _, expression := range []string{
		`join(",", [for p in parts : p])`, `sum([for i, p in parts : i])`, `alltrue([for p in parts : true])`,
		`coalesce([for p in parts : p]...)`, `transpose({ for p in parts : p => ["a"] })`, `convert([for p in parts : p], list(string))`,
		`convert({ a = [for p in parts : p] }, object({ a = set(string) }))`, `tolist([for p in parts : p])`, `formatlist("%s", [for p in parts : p])`,
	} {
		evaluateLarge(t, ctx, expression)
	}
	for _, expression := range []string{`sum([for p in parts : p])`, `tolist([for i, p in parts : i == 9 ? [p] : p])`} {
		if _, diags := evaluateExpression(t, ctx, expression); !diags.HasErrors() {
			t.Errorf("%s is no error", expression)
		}
	}
}
