package incremental

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// A ledger's list is what the operations say, and stays so while the next one
// is made.
func TestLedgerFollowsLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l pendingList
		waits := map[int]int{}
		list := func() []plan.Pending {
			var out []plan.Pending
			for _, n := range slices.Sorted(maps.Keys(waits)) {
				out = append(out, plan.Pending{Addr: schema.Address{Kind: schema.KindJob, Name: "j", Key: schema.IntKey(n)}, Reasons: []string{fmt.Sprint(waits[n])}})
			}
			return out
		}
		for n := range rapid.IntRange(0, 80).Draw(t, "waiting") {
			waits[n] = 0
		}
		last := list()
		l.take(slices.Clone(last))
		for range rapid.IntRange(1, 12).Draw(t, "turns") {
			for range rapid.IntRange(0, 48).Draw(t, "changes") {
				n := rapid.IntRange(0, 99).Draw(t, "n")
				if rapid.Bool().Draw(t, "gone") {
					delete(waits, n)
				} else {
					waits[n] = rapid.IntRange(0, 2).Draw(t, "reason")
				}
			}
			given, next := l.last, list()
			got := l.turn(opsBetween(last, next))
			if diff := differences(next, got); diff != "" {
				t.Fatalf("(-want +got)\n%s", diff)
			}
			if diff := differences(last, given); diff != "" {
				t.Fatalf("the list before was changed (-was +is)\n%s", diff)
			}
			last = next
		}
	})
}
