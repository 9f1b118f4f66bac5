package incremental

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

func TestSliceNamesAreValid(t *testing.T) {
	valid := regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z_][-A-Za-z0-9_]{0,62}`)
		addr := schema.Address{Kind: schema.KindJob, Name: name.Draw(t, "name")}
		if rapid.Bool().Draw(t, "grouped") {
			addr.Group = name.Draw(t, "group")
		}
		if rapid.Bool().Draw(t, "keyed") {
			addr.Key = schema.StringKey(rapid.String().Draw(t, "key"))
		}
		index := rapid.IntRange(0, 10_000).Draw(t, "index")
		got := plan.SliceName("stack", addr, index)
		if !valid.MatchString(got) {
			t.Fatalf("SliceName(%s, %d): got %q", addr, index, got)
		}
		if got != plan.SliceName("stack", addr, index) || got == plan.SliceName("other", addr, index) || got == plan.SliceName("stack", addr, index+1) {
			t.Fatalf("SliceName(%s, %d) = %q does not name one slice of one stack", addr, index, got)
		}
	})
}

// Many instances whose long name hides their key still have names of their own.
func TestSliceNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	addr := schema.Address{Kind: schema.KindJob, Name: strings.Repeat("long", 15)}
	const n = 100_000
	for i := range n {
		addr.Key = schema.IntKey(i)
		seen[plan.SliceName("stack", addr, 0)] = true
	}
	if len(seen) != n {
		t.Errorf("%d of %d names are taken twice", n-len(seen), n)
	}
}
