package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/apply/mail"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
)

// HostReasons is how hosts that have not reported are asked, through their
// provider, why.
type HostReasons struct {
	Ask bool
	// After is how long hosts may take to report before they are asked.
	After time.Duration
}

// BootPatience is how long a machine usually takes until its hosts report.
const BootPatience = 20 * time.Second

// How often hosts of one slice are asked, of how many slices at once, and how long
// the answer may take.
const (
	hostReasonPace  = 15 * time.Second
	hostReasonMost  = 16
	hostReasonLimit = 5 * time.Second
)

// hostAsker reads from one provider what hosts report there that have not reported to
// the store: in the background, and for people only.
type hostAsker struct {
	provider providers.HostReader
	after    time.Duration
	now      func() time.Time
	running  chan struct{} // closed at the end of the reads that are under way; nil: none are

	mu    sync.Mutex
	asked map[string]*askedHosts // by slice
}

// askedHosts are the hosts of one slice that have not reported.
type askedHosts struct {
	spec    schema.SliceSpec
	hosts   []int
	stored  []providers.HostReport // what they state in the store
	dueAt   time.Time
	reports []providers.HostReport // what they report at the provider
}

// want takes over which hosts have not reported.
func (h *hostAsker) want(missing []askedHosts) {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked := make(map[string]*askedHosts, len(missing))
	for i := range missing {
		m := &missing[i]
		m.dueAt = h.now().Add(h.after)
		if was := h.asked[m.spec.Name]; was != nil && was.spec == m.spec {
			m.dueAt, m.reports = was.dueAt, was.reports
		}
		asked[m.spec.Name] = m
	}
	h.asked = asked
}

// begin starts to read what is due, unless that is under way.
func (h *hostAsker) begin(ctx context.Context) {
	if h.running != nil {
		return
	}
	due := h.due()
	if len(due) == 0 {
		return
	}
	running := make(chan struct{})
	h.running = running
	go func() {
		defer close(running)
		var readers sync.WaitGroup
		for _, m := range due {
			readers.Go(func() { h.read(ctx, m) })
		}
		readers.Wait()
	}()
}

// due are those to ask now, longest overdue first.
func (h *hostAsker) due() []askedHosts {
	h.mu.Lock()
	defer h.mu.Unlock()
	var due []askedHosts
	for _, m := range h.asked {
		if !h.now().Before(m.dueAt) {
			due = append(due, *m)
		}
	}
	slices.SortFunc(due, func(a, b askedHosts) int { return a.dueAt.Compare(b.dueAt) })
	return due[:min(len(due), hostReasonMost)]
}

// read asks the hosts of one slice. What cannot be read is not known: the slice goes
// without a reason from there.
func (h *hostAsker) read(ctx context.Context, m askedHosts) {
	ctx, cancel := context.WithTimeout(ctx, hostReasonLimit)
	defer cancel()
	reports, err := h.provider.HostReports(ctx, m.spec, m.hosts)
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.asked[m.spec.Name]; now != nil && now.spec == m.spec {
		now.dueAt, now.reports = h.now().Add(hostReasonPace), nil
		if err == nil {
			now.reports = reports
		}
	}
}

// reasonOfHosts states each report once, with the hosts that it is of.
func reasonOfHosts(reports []providers.HostReport) string {
	const most = 3
	var texts []string
	by := map[string][]string{}
	for _, r := range reports {
		status := mail.StatusLine([]byte(r.Status))
		if by[status] == nil {
			texts = append(texts, status)
		}
		by[status] = append(by[status], nameOfHost(r))
	}
	var parts []string
	for i, text := range texts {
		if i == most {
			parts = append(parts, fmt.Sprintf("others report %d other texts", len(texts)-most))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %q", whoReports(by[text]), text))
	}
	return strings.Join(parts, "; ")
}

// nameOfHost is "host 2", or "machine train-0-x7f3".
func nameOfHost(r providers.HostReport) string {
	if r.Machine != "" {
		return "machine " + r.Machine
	}
	return fmt.Sprintf("host %d", r.Host)
}

// whoReports is "host 1 reports", or "host 1, host 2, host 3 and 5 more report".
func whoReports(names []string) string {
	const most = 3
	switch {
	case len(names) == 1:
		return names[0] + " reports"
	case len(names) > most:
		return fmt.Sprintf("%s and %d more report", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ") + " report"
}

// await waits for the reads that are under way as long as there is patience.
func (h *hostAsker) await(ctx context.Context, patience patience) {
	if h.running == nil {
		return
	}
	select {
	case <-h.running:
		h.running = nil
	case <-patience.over:
	case <-ctx.Done():
	}
}

// in is an inventory with what the hosts report as the reasons of their slices.
func (h *hostAsker) in(inventory schema.Inventory) schema.Inventory {
	h.mu.Lock()
	defer h.mu.Unlock()
	copied := false
	for i := range inventory.Slices {
		m := h.asked[inventory.Slices[i].Spec.Name]
		if m == nil {
			continue
		}
		reason := reasonOfHosts(complete(m.reports, m.stored))
		if reason == "" {
			continue
		}
		if !copied {
			inventory.Slices, copied = slices.Clone(inventory.Slices), true
		}
		st := &inventory.Slices[i]
		if st.Reason != "" {
			st.Reason += "; "
		}
		st.Reason += reason
	}
	return inventory
}

// askHosts asks the hosts that have not reported, and adds to an observation what they
// report at their providers.
func (o *Observer) askHosts(ctx context.Context, obs *plan.Observed) {
	if !o.HostReasons.Ask {
		return
	}
	patience := newPatience(o.Patience)
	defer patience.stop()
	for name, p := range o.Providers {
		reader, ok := providers.AsHostReader(p)
		inventory, listed := obs.Inventories[name]
		if !ok || !listed {
			continue
		}
		if o.askers == nil {
			o.askers = map[schema.ProviderName]*hostAsker{}
		}
		if o.askers[name] == nil {
			o.askers[name] = &hostAsker{provider: reader, after: o.HostReasons.After, now: o.now}
		}
		h := o.askers[name]
		h.want(o.missingHosts(inventory, obs.Hosts))
		h.begin(ctx)
		h.await(ctx, patience)
		obs.Inventories[name] = h.in(inventory)
	}
}

// missingHosts are the hosts of slices with machines that have not reported.
func (o *Observer) missingHosts(inventory schema.Inventory, reported map[string][]plan.Host) []askedHosts {
	var missing []askedHosts
	for i := range inventory.Slices {
		st := &inventory.Slices[i]
		reports := reported[st.Spec.Name]
		if st.Waiting || len(st.Down) > 0 || len(reports) >= st.Spec.Hosts || st.Phase != schema.SliceCreating && st.Phase != schema.SliceReady {
			continue
		}
		m := askedHosts{spec: st.Spec}
		for n := range st.Spec.Hosts {
			if !slices.ContainsFunc(reports, func(h plan.Host) bool { return h.Host == n }) {
				m.hosts = append(m.hosts, n)
			}
		}
		m.stored = o.booting.of(&m.spec, m.hosts)
		missing = append(missing, m)
	}
	return missing
}
