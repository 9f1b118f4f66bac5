package apply

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store/storetest"
)

// reportingHosts is a provider whose hosts report there.
type reportingHosts struct {
	providers.Provider
	inventory schema.Inventory
	reports   []providers.HostReport
	err       error

	mu    sync.Mutex
	asked [][]int // of each call
}

func (r *reportingHosts) Inventory(context.Context, string) (schema.Inventory, error) {
	return r.inventory, nil
}

func (r *reportingHosts) HostReports(_ context.Context, _ schema.SliceSpec, hosts []int) ([]providers.HostReport, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, hosts)
	return r.reports, r.err
}

// TestHostsAreAskedWhy: hosts that have not reported are asked after a while, at a
// pace, and what they report is the reason of their slice in the observation only.
func TestHostsAreAskedWhy(t *testing.T) {
	const failed = "failed: no service account; trying again"
	p := &reportingHosts{
		inventory: schema.Inventory{Slices: []schema.SliceStatus{
			{Spec: schema.SliceSpec{Name: "queued", Hosts: 2}, Phase: schema.SliceCreating, Waiting: true},
			{Spec: schema.SliceSpec{Name: "up", Hosts: 1}, Phase: schema.SliceReady},
			{Spec: schema.SliceSpec{Name: "waits", Hosts: 3}, Phase: schema.SliceCreating, Reason: "being created"},
		}},
		reports: []providers.HostReport{{Host: 1, Status: failed}, {Host: 2, Status: failed}},
	}
	now := time.Unix(1_700_000_000, 0)
	o := &Observer{
		Store: storetest.NewMemory(), Providers: map[schema.ProviderName]providers.Provider{schema.ProviderGCP: p},
		Now: func() time.Time { return now }, HostReasons: HostReasons{Ask: true, After: BootPatience},
	}
	reason := func() string {
		t.Helper()
		obs, err := o.Observe(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		return obs.Inventories[schema.ProviderGCP].Slices[2].Reason
	}
	o.hosts = map[string][]plan.Host{
		"up":    {{HostReport: state.HostReport{Slice: "up"}}},
		"waits": {{HostReport: state.HostReport{Slice: "waits"}}},
	}
	for _, step := range []struct {
		name  string
		later time.Duration
		want  string
		asked int
	}{
		{"at first", 0, "being created", 0},
		{"after a while", BootPatience, `being created; host 1, host 2 report "` + failed + `"`, 1},
		{"soon after", time.Second, `being created; host 1, host 2 report "` + failed + `"`, 1},
		{"at its pace", hostReasonPace, `being created; host 1, host 2 report "` + failed + `"`, 2},
	} {
		now = now.Add(step.later)
		if got := reason(); got != step.want || len(p.asked) != step.asked {
			t.Errorf("%s: the reason is %q after %d calls, want %q after %d", step.name, got, len(p.asked), step.want, step.asked)
		}
	}
	if len(p.asked) == 0 || len(p.asked[0]) != 2 || p.asked[0][0] != 1 {
		t.Errorf("asked of %v, want hosts 1 and 2 of the one slice", p.asked)
	}
	if p.inventory.Slices[2].Reason != "being created" {
		t.Error("the provider's own inventory has changed")
	}
	p.err = errors.New("permission denied")
	now = now.Add(hostReasonPace)
	if got := reason(); got != "being created" {
		t.Errorf("where nothing can be read the reason is %q", got)
	}
	o.HostReasons.Ask = false
	before := len(p.asked)
	now = now.Add(hostReasonPace)
	if got := reason(); got != "being created" || len(p.asked) != before {
		t.Errorf("where hosts are not asked the reason is %q after %d calls", got, len(p.asked)-before)
	}
}

func TestReasonOfHosts(t *testing.T) {
	many := []providers.HostReport{{Host: 0, Status: "a"}, {Host: 1, Status: "b"}, {Host: 2, Status: "a"}, {Host: 3, Status: "c"}, {Host: 4, Status: "d"}}
	for _, test := range []struct {
		reports []providers.HostReport
		want    string
	}{
		{nil, ""},
		{many[:1], `host 0 reports "a"`},
		{many, `host 0, host 2 report "a"; host 1 reports "b"; host 3 reports "c"; others report 1 other texts`},
		{many[:2], `host 0 reports "a"; host 1 reports "b"`},
		{alike(7), `host 0, host 1, host 2 and 4 more report "installed"`},
	} {
		if got := reasonOfHosts(test.reports); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func alike(n int) []providers.HostReport {
	var reports []providers.HostReport
	for i := range n {
		reports = append(reports, providers.HostReport{Host: i, Status: "installed"})
	}
	return reports
}
