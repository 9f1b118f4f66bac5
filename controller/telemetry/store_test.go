package telemetry

import (
	"testing"
	"time"

	"github.com/fray-ml/fray/controller/access"
	"github.com/fray-ml/fray/controller/web"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// bill is a store's counts.
type bill state.StoreRequests

func (b bill) Requests() state.StoreRequests { return state.StoreRequests(b) }

// snapshots is a source whose snapshot the test sets.
type snapshots struct{ snap *web.Snapshot }

func (s *snapshots) Snapshot() *web.Snapshot { return s.snap }
func (s *snapshots) Leading() bool           { return true }

func reporting(boot string, n int, writes uint64) plan.Host {
	return plan.Host{HostReport: state.HostReport{Slice: "s", Host: n, Boot: boot, HostUsage: state.HostUsage{Requests: &state.StoreRequests{Writes: writes, Reads: 10 * writes}}}}
}

// What hosts asked is counted from the first scrape on, once, also where an agent starts again.
func TestStoreRequestsOfHosts(t *testing.T) {
	source := &snapshots{}
	m := newMetrics(source, "1")
	m.registry.MustRegister(newStoreCollector(source, bill{Writes: 3, Lists: 4, Reads: 5, Deletes: 6}))
	silent := plan.Host{HostReport: state.HostReport{Slice: "s", Host: 9}}
	for _, step := range []struct {
		hosts         []plan.Host
		writes, reads string
	}{
		{nil, "0", "0"},
		{[]plan.Host{reporting("a", 0, 7), silent}, "7", "70"},                  // came after the first scrape
		{[]plan.Host{reporting("a", 0, 9), reporting("b", 1, 1)}, "10", "100"},  // 2 more, and a new host's 1
		{[]plan.Host{reporting("a", 0, 9), reporting("c", 1, 1)}, "11", "110"},  // host 1 started again
		{[]plan.Host{reporting("a", 0, 9)}, "11", "110"},                        // host 1 has gone
		{[]plan.Host{reporting("a", 0, 12), reporting("c", 1, 1)}, "14", "140"}, // and is listed again
	} {
		source.snap = &web.Snapshot{View: access.View{
			Doc: &state.Document{Slices: map[string]*state.Slice{"s": {}}}, Plan: &plan.Plan{}, Wanted: &schema.Desired{}, At: time.Now(),
			Hosts: map[string][]plan.Host{"s": step.hosts},
		}}
		got := scrape(t, m)
		if w, r := got[`fray_store_requests_total{by="hosts",class="write"}`], got[`fray_store_requests_total{by="hosts",class="read"}`]; w != step.writes || r != step.reads {
			t.Errorf("with %d hosts: got %s writes and %s reads, want %s and %s", len(step.hosts), w, r, step.writes, step.reads)
		}
		if got[`fray_store_requests_total{by="controller",class="list"}`] != "4" {
			t.Errorf("got %v", got)
		}
	}
}
