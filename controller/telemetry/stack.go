package telemetry

import (
	"cmp"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fray-ml/fray/controller/web"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Source is where the metrics of the stack come from.
type Source interface {
	// Snapshot is what the last step left, nil before the first.
	Snapshot() *web.Snapshot
	// Leading reports whether this process leads.
	Leading() bool
}

// stackCollector makes metrics of the last snapshot when it is scraped, so that a
// loop without a scraper pays nothing.
type stackCollector struct {
	source Source
	descs  stackDescs

	mu       sync.Mutex
	seen     *state.Document // the one whose attempts are counted
	attempts map[schema.TaskState]int

	// Which of them have series of their own.
	namespaces, spenders, reservations, places bound
}

type stackDescs struct {
	leading, epoch, paused, jobs, tasks, slices, chips, reservations, pending, attempts, share, entitled, held *prometheus.Desc
	unseen, skipped, missing, cpu, memory, duty, calls                                                         *prometheus.Desc
	costDescs
}

var _ prometheus.Collector = (*stackCollector)(nil)

func newStackCollector(source Source) *stackCollector {
	d := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &stackCollector{source: source, attempts: map[schema.TaskState]int{},
		namespaces: bound{most: mostNamespaces}, spenders: bound{most: mostNamespaces}, reservations: bound{most: mostReservations}, places: bound{most: mostPlaces},
		descs: stackDescs{
			leading:      d("fray_leading", "1 while this process holds the stack's lease."),
			epoch:        d("fray_lease_epoch", "Epoch of the lease under which the loop stepped last."),
			paused:       d("fray_paused", "1 while the stack is paused."),
			jobs:         d("fray_jobs", "Jobs, by status and band.", "status", "band"),
			cpu:          d("fray_tasks_cpu_cores", "Processors that the running tasks use, as far as their hosts report it."),
			memory:       d("fray_tasks_memory_bytes", "Memory that the running tasks use, as far as their hosts report it."),
			duty:         d("fray_tpu_duty_cycle_ratio", "The part of the time in which TPU chips compute, the mean over the hosts that report it."),
			calls:        d("fray_actors_calls_per_second", "Calls that actors answer in a second, as far as their hosts report it."),
			tasks:        d("fray_tasks", "Tasks of the attempts that go on, by state.", "state"),
			slices:       d("fray_slices", "Slices, by where and what they are.", "provider", "zone", "phase", "type"),
			chips:        d("fray_chips", "Chips of slices that are up, held by jobs or free.", "state"),
			reservations: d("fray_reservation_slices", "Slices of declared reservations; those that programs made are summed up as \"launched\".", "reservation", "state"),
			pending:      d("fray_pending_jobs", "Jobs that wait, by what for.", "reason"),
			attempts:     d("fray_attempts_ended_total", "Attempts that ended since this process was first asked, by outcome.", "outcome"),
			share:        d("fray_namespace_share_ratio", "What a declared namespace holds of all that is held, by its dominant resource.", "namespace"),
			entitled:     d("fray_namespace_entitled_ratio", "What it is entitled to, among those that hold or wait for something.", "namespace"),
			unseen:       d("fray_provider_unseen", "1 for a provider that cannot be asked for its slices, by why, and 0 for one that can.", "provider", "kind"),
			skipped:      d("fray_provider_skipped_items", "Items of a provider's list that carry the stack's mark and are skipped, by why.", "provider", "reason"),
			missing:      d("fray_provider_missing_slices", "Slices that disappeared from a provider's list at once and are not confirmed to be gone.", "provider"),
			costDescs:    costDescsOf(d),
			held:         d("fray_namespace_chips", "Chips that a declared namespace holds.", "namespace"),
		}}
}

// Describe names all of them.
func (c *stackCollector) Describe(out chan<- *prometheus.Desc) {
	d := &c.descs
	for _, desc := range []*prometheus.Desc{
		d.leading, d.epoch, d.paused, d.jobs, d.tasks, d.slices, d.chips, d.reservations, d.pending, d.attempts, d.share, d.entitled, d.held,
		d.unseen, d.skipped, d.missing, d.cpu, d.memory, d.duty, d.calls, d.spent, d.hourly, d.budget,
	} {
		out <- desc
	}
}

// Collect sends the state of the stack.
func (c *stackCollector) Collect(out chan<- prometheus.Metric) {
	leads := c.source.Leading()
	c.send(out, c.descs.leading, boolean(leads))
	snap := c.source.Snapshot()
	if snap == nil {
		return
	}
	c.countAttempts(out, snap.Doc)
	if !leads {
		return // the leader reports the state of the stack
	}
	c.send(out, c.descs.epoch, float64(snap.Lease.Epoch))
	c.send(out, c.descs.paused, boolean(snap.Doc.Paused != nil))
	c.jobs(out, snap.Doc)
	c.capacity(out, snap)
	c.providers(out, snap)
	c.waiting(out, snap)
	c.shares(out, snap)
	c.costs(out, snap)
	c.usage(out, snap)
}

func (c *stackCollector) send(out chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// tally counts by the values of labels.
type tally map[[4]string]float64

func (t tally) send(c *stackCollector, out chan<- prometheus.Metric, d *prometheus.Desc, labels int) {
	written := make(tally, len(t)) // of values that are cut two may be the same
	for key, n := range t {
		for i := range key {
			key[i] = labelValue(key[i])
		}
		written[key] += n
	}
	for key, n := range written {
		c.send(out, d, n, key[:labels]...)
	}
}

func (c *stackCollector) jobs(out chan<- prometheus.Metric, doc *state.Document) {
	jobs, tasks := tally{}, tally{}
	for _, j := range doc.Jobs {
		band := schema.BandInteractive
		if j.Spec != nil {
			band = cmp.Or(j.Spec.Band, band)
		}
		jobs[[4]string{string(j.Status), string(band)}]++
		if !j.Running() {
			continue
		}
		last := j.Last()
		for i := range last.Tasks {
			tasks[[4]string{string(last.Tasks[i].State)}]++
		}
	}
	jobs.send(c, out, c.descs.jobs, 2)
	tasks.send(c, out, c.descs.tasks, 1)
}

// capacity reports slices and how many of them reservations have.
func (c *stackCollector) capacity(out chan<- prometheus.Metric, snap *web.Snapshot) {
	slices, chips, pools := tally{}, tally{}, tally{}
	for _, s := range web.Slices(snap) {
		slices[[4]string{string(s.Provider), s.Zone, string(s.Phase), s.Shape}]++
		switch {
		case s.Phase != web.PhaseReady || s.Chips == 0:
		case s.Idle:
			chips[[4]string{"free"}] += float64(s.Chips)
		default:
			chips[[4]string{"held"}] += float64(s.Chips)
		}
	}
	for _, r := range capacity.ReservationStatus(snap.Wanted, &plan.Plan{Next: snap.Doc}, snap.At) {
		name := r.Addr.Scoped()
		if snap.Doc.Resources[r.Addr].Launch != nil {
			name = "launched"
		}
		pools[[4]string{name, "allocated"}] += float64(r.Allocated)
		pools[[4]string{name, "pending"}] += float64(r.Pending)
		pools[[4]string{name, "free"}] += float64(r.Free)
	}
	c.bounded(slices).send(c, out, c.descs.slices, 4)
	chips.send(c, out, c.descs.chips, 1)
	c.reservations.named(pools, 0).send(c, out, c.descs.reservations, 2)
}

// bounded sums up the slices of all places beyond a number of pairs of zone and type.
func (c *stackCollector) bounded(slices tally) tally {
	sizes := map[string]float64{}
	placeOf := func(key *[4]string) string { return key[0] + "\x00" + key[1] + "\x00" + key[3] }
	for key, n := range slices {
		sizes[placeOf(&key)] += n
	}
	c.places.choose(sizes)
	out := make(tally, len(slices))
	for key, n := range slices {
		if !c.places.has(placeOf(&key)) {
			key[1], key[3] = otherLabel, otherLabel
		}
		out[key] += n
	}
	return out
}

// providers reports which providers are not seen whole.
func (c *stackCollector) providers(out chan<- prometheus.Metric, snap *web.Snapshot) {
	seen, skipped, missing := tally{}, tally{}, tally{}
	for name := range snap.Inventories {
		seen[[4]string{string(name), ""}] = 0
		missing[[4]string{string(name)}] = 0
	}
	for name, condition := range snap.Doc.Conditions {
		if condition.Unseen != nil {
			seen[[4]string{string(name), string(condition.Unseen.Kind)}] = 1
		}
		if condition.Missing != nil {
			missing[[4]string{string(name)}] = float64(condition.Missing.Slices)
		}
		for _, item := range condition.Skipped {
			skipped[[4]string{string(name), string(item.Reason)}]++
		}
	}
	seen.send(c, out, c.descs.unseen, 2)
	skipped.send(c, out, c.descs.skipped, 2)
	missing.send(c, out, c.descs.missing, 1)
}

func (c *stackCollector) waiting(out chan<- prometheus.Metric, snap *web.Snapshot) {
	kinds := tally{}
	for _, kind := range plan.WaitKinds() {
		kinds[[4]string{string(kind)}] = 0 // so that alerts clear
	}
	for i := range snap.Plan.Pending {
		p := &snap.Plan.Pending[i]
		if j := snap.Doc.Jobs[p.Addr]; j != nil && !j.Status.Ended() {
			kinds[[4]string{string(p.Kind)}]++
		}
	}
	kinds.send(c, out, c.descs.pending, 1)
}

// shares reports declared namespaces only: programs create any number of others.
func (c *stackCollector) shares(out chan<- prometheus.Metric, snap *web.Snapshot) {
	declared := map[string]bool{}
	for i := range snap.Wanted.Namespaces {
		declared[snap.Wanted.Namespaces[i].Addr.Scoped()] = true
	}
	share, entitled, held := tally{}, tally{}, tally{}
	sizes := map[string]float64{}
	all := web.Shares(snap)
	for _, s := range all {
		if declared[s.Namespace] {
			sizes[s.Namespace] = s.Share
		}
	}
	c.namespaces.choose(sizes)
	for _, s := range all {
		if !declared[s.Namespace] {
			continue
		}
		key := [4]string{otherLabel}
		if c.namespaces.has(s.Namespace) {
			key[0] = s.Namespace
		}
		share[key] += s.Share
		entitled[key] += s.Entitled
		held[key] += float64(s.Chips)
	}
	share.send(c, out, c.descs.share, 1)
	entitled.send(c, out, c.descs.entitled, 1)
	held.send(c, out, c.descs.held, 1)
}

// countAttempts counts the attempts that have ended since the document of the last
// scrape. Jobs remember their last attempts, so that none is missed between two
// scrapes unless one job had more than [state.MaxAttempts].
func (c *stackCollector) countAttempts(out chan<- prometheus.Metric, doc *state.Document) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, outcome := range []schema.TaskState{
		schema.TaskSucceeded, schema.TaskFailed, schema.TaskKilled, schema.TaskWorkerFailed, schema.TaskPreempted, schema.TaskUnschedulable, schema.TaskExitUnknown,
	} {
		c.attempts[outcome] += 0
	}
	if c.seen != nil && c.seen != doc && c.seen.Lineage == doc.Lineage {
		for addr, is := range doc.Jobs {
			if was := c.seen.Jobs[addr]; was != is {
				c.ended(was, is)
			}
		}
	}
	c.seen = doc
	for outcome, n := range c.attempts {
		out <- prometheus.MustNewConstMetric(c.descs.attempts, prometheus.CounterValue, float64(n), string(outcome))
	}
}

func (c *stackCollector) ended(was, is *state.Job) {
	old := map[int]bool{}
	if was != nil && was.ID == is.ID {
		for i := range was.Attempts {
			old[was.Attempts[i].Number] = was.Attempts[i].Outcome != ""
		}
	}
	for i := range is.Attempts {
		if a := &is.Attempts[i]; a.Outcome != "" && !old[a.Number] {
			c.attempts[a.Outcome]++
		}
	}
}
