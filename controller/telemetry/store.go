package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fray-ml/fray/controller/web"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// storeCollector has the requests to the store that its service bills: of this process, and of the
// hosts as they report them, from the first scrape on. What a host asked after its last scraped
// report is missing when it has gone.
type storeCollector struct {
	source Source
	billed store.Billed
	desc   *prometheus.Desc

	mu    sync.Mutex
	seen  map[hostKey]hostRequests // by host, what it has reported last
	hosts state.StoreRequests
}

type hostKey struct {
	slice string
	host  int
}

type hostRequests struct {
	boot     string
	requests state.StoreRequests
}

var _ prometheus.Collector = (*storeCollector)(nil)

func newStoreCollector(source Source, billed store.Billed) *storeCollector {
	return &storeCollector{source: source, billed: billed, desc: prometheus.NewDesc(
		"fray_store_requests_total",
		"Requests to the bucket, by the class that its service bills (write and list: A, read: B, delete: free) and by who asked.",
		[]string{"class", "by"}, nil,
	)}
}

// Describe names the metric.
func (c *storeCollector) Describe(out chan<- *prometheus.Desc) { out <- c.desc }

// Collect sends the counts.
func (c *storeCollector) Collect(out chan<- prometheus.Metric) {
	c.send(out, c.billed.Requests(), "controller")
	c.mu.Lock()
	defer c.mu.Unlock()
	if snap := c.source.Snapshot(); snap != nil {
		c.take(snap)
	}
	c.send(out, c.hosts, "hosts")
}

// take adds what the hosts have asked since the last scrape.
func (c *storeCollector) take(snap *web.Snapshot) {
	first := c.seen == nil
	present := make(map[hostKey]hostRequests, len(c.seen))
	for key, before := range c.seen {
		if snap.Doc.Slices[key.slice] != nil { // a host that is not heard for a while is the same one afterwards
			present[key] = before
		}
	}
	for slice, hosts := range snap.Hosts {
		for i := range hosts {
			key := hostKey{slice, hosts[i].Host}
			reported, ok := reportedRequests(&hosts[i])
			if !ok {
				continue
			}
			present[key] = reported
			switch before, known := c.seen[key]; {
			case known && before.boot == reported.boot:
				c.hosts = c.hosts.Plus(reported.requests.Since(before.requests))
			case !first: // an agent that started since; what those of the first scrape did is not this process' time
				c.hosts = c.hosts.Plus(reported.requests)
			}
		}
	}
	c.seen = present
}

func reportedRequests(h *plan.Host) (hostRequests, bool) {
	if h.Requests == nil {
		return hostRequests{}, false
	}
	return hostRequests{boot: h.Boot, requests: *h.Requests}, true
}

func (c *storeCollector) send(out chan<- prometheus.Metric, r state.StoreRequests, by string) {
	for _, counted := range []struct {
		class string
		n     uint64
	}{{"write", r.Writes}, {"list", r.Lists}, {"read", r.Reads}, {"delete", r.Deletes}} {
		out <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(counted.n), counted.class, by)
	}
}
