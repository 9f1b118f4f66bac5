package apply

import (
	"errors"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
	"github.com/fray-ml/fray/state/store/storetest"
)

// TestStatusesInTheStore: what machines state in the store is the reason of their slice at
// once, as long as their hosts have not reported and no guest attribute states more; it goes
// with the mailbox of the slice.
func TestStatusesInTheStore(t *testing.T) {
	p := &reportingHosts{inventory: schema.Inventory{Slices: []schema.SliceStatus{
		{Spec: schema.SliceSpec{Name: "group", Hosts: 3}, Phase: schema.SliceReady},
		{Spec: schema.SliceSpec{Name: "one", Hosts: 1}, Phase: schema.SliceReady},
	}}}
	s := storetest.NewMemory()
	now := time.Unix(1_700_000_000, 0)
	o := &Observer{
		Store: s, Providers: map[schema.ProviderName]providers.Provider{schema.ProviderGCP: p},
		Now: func() time.Time { return now }, HostReasons: HostReasons{Ask: true, After: BootPatience},
	}
	put := func(key, text string) {
		t.Helper()
		if _, err := s.Put(t.Context(), key, []byte(text), store.Any); err != nil {
			t.Fatal(err)
		}
	}
	var last *plan.Observed
	observe := func(what, group, one string) {
		t.Helper()
		obs, err := o.Observe(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		last = obs
		listed := obs.Inventories[schema.ProviderGCP].Slices
		if listed[0].Reason != group || listed[1].Reason != one {
			t.Errorf("%s: the reasons are %q and %q, want %q and %q", what, listed[0].Reason, listed[1].Reason, group, one)
		}
	}
	observe("at first", "", "")
	put(store.BootKey("group", "1"), "fetching: gs://acme")
	put(store.BootKey("group", "it-x7f3"), "failed: no\x00 room\n\x1b[31mred")
	put(store.BootKey("one", "one"), "verified")
	put(store.BootKey("left", "0"), "running")
	observe("at once", `host 1 reports "fetching: gs://acme"; machine it-x7f3 reports "failed: no room [31mred"`, `host 0 reports "verified"`)
	if !last.Booting["left"] || !last.Changed["left"] || len(last.Booting) != 3 {
		t.Errorf("statuses of %v, changed %v; want that of the slice that is gone among them", last.Booting, last.Changed)
	}
	before := last
	put(store.BootKey("group", "1"), "running")
	if err := s.Delete(t.Context(), store.BootKey("one", "one")); err != nil {
		t.Fatal(err)
	}
	p.reports = []providers.HostReport{{Host: 1, Status: "failed: later"}, {Host: 2, Status: "installed"}}
	now = now.Add(BootPatience)
	observe("beside guest attributes", `host 1 reports "failed: later"; host 2 reports "installed"; machine it-x7f3 reports "failed: no room [31mred"`,
		`host 1 reports "failed: later"; host 2 reports "installed"`)
	if !before.Booting["one"] || last.Booting["one"] {
		t.Error("the earlier observation has changed, or the later one has not")
	}
	p.err = errors.New("permission denied")
	now = now.Add(hostReasonPace)
	observe("where guest attributes cannot be read", `host 1 reports "running"; machine it-x7f3 reports "failed: no room [31mred"`, "")

	report, err := store.Encode(state.HostReport{Slice: "group", Host: 1})
	if err != nil {
		t.Fatal(err)
	}
	put(store.HostKey("group", 1), string(report))
	observe("once host 1 reports", `machine it-x7f3 reports "failed: no room [31mred"`, "")
	for _, slice := range []string{"group", "left"} {
		if err := (&executor{store: s}).forget(t.Context(), slice); err != nil {
			t.Fatal(err)
		}
	}
	observe("once it is gone", "", "")
	if left, err := s.List(t.Context(), ""); err != nil || len(left) != 0 || len(last.Booting) != 0 {
		t.Errorf("left %v, %v, %v", left, last.Booting, err)
	}
}
