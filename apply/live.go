package apply

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fray-ml/fray/apply/mail"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Live are hosts that report by streams, beside the store.
type Live interface {
	// Take returns what changed of hosts since the last call. monitored is for how long the
	// caller has monitored hosts, see [plan.Observed].
	Take(monitored time.Duration) []LiveHost
	// Assigned sends a version of an assignment that is in the store to the hosts of its
	// slice. data is its content; nil: they read it there.
	Assigned(slice string, object state.Generation, data []byte)
	// Unassigned takes note that a slice has no assignment any more.
	Unassigned(slice string)
}

// LiveHost is what changed of a host.
type LiveHost struct {
	Slice  string
	Host   int
	Report *state.HostReport // the newest one; nil: as before
	// Live is set while the host is connected and heard. One that is not may write to the
	// store: it is silent since Heard, by the monitored time, if it does not.
	Live  bool
	Heard time.Duration
	Seq   uint64 // of what was heard last
}

// liveListPace is the time between two looks into the store while all hosts are live.
const liveListPace = 45 * time.Second

// liveMail is what an observer knows of live hosts.
type liveMail struct {
	hosts    map[liveKey]bool       // those that are live
	seen     map[liveKey]bool       // those that were, once
	doubted  map[liveKey]lateReport // a report in the store whose number is too low
	listedAt time.Time              // when the store was listed last; zero: it is to be
	whole    bool                   // all hosts that are known are live
	// complete are the lists of providers when no host was awaited at the last look, see awaitsHosts;
	// nil: some were, or hosts have been forgotten since.
	complete map[schema.ProviderName][]schema.SliceStatus
}

type liveKey struct {
	slice string
	host  int
}

// lateReport is a report of another boot than the one that is known, with a lower number.
type lateReport struct {
	boot string
	seq  uint64
}

// takeLive takes in what hosts have reported by streams.
func (o *Observer) takeLive() {
	if o.Live == nil {
		return
	}
	changed := o.Live.Take(o.monitored)
	if len(changed) == 0 {
		return
	}
	if o.assigned == nil {
		o.assigned, o.hosts = map[string]plan.Assigned{}, map[string][]plan.Host{}
	}
	if o.live.hosts == nil {
		o.live.hosts, o.live.seen, o.live.doubted = map[liveKey]bool{}, map[liveKey]bool{}, map[liveKey]lateReport{}
	}
	w := &mailWriter{o: o, copied: map[string]bool{}}
	for i := range changed {
		w.live(&changed[i])
	}
}

// live takes in what changed of a host. A report that is older than the one at hand never
// takes its place.
func (w *mailWriter) live(c *LiveHost) {
	at := liveKey{c.Slice, c.Host}
	if c.Live || c.Report != nil {
		w.o.live.seen[at] = true
	}
	if c.Live {
		w.o.live.hosts[at] = true
	} else {
		delete(w.o.live.hosts, at)
		w.o.live.whole = false
	}
	hosts := w.o.hosts[c.Slice]
	i, known := slices.BinarySearchFunc(hosts, c.Host, func(h plan.Host, n int) int { return h.Host - n })
	newer := c.Report != nil && (!known || c.Report.Seq > hosts[i].Seq)
	if !known && !newer {
		return
	}
	if !w.copied[c.Slice] {
		hosts = slices.Clone(hosts)
		w.copied[c.Slice] = true
	}
	if !known {
		hosts = slices.Insert(hosts, i, plan.Host{})
	}
	h := &hosts[i]
	lived := known && h.Lives()
	switch {
	case newer && known && saysTheSame(&h.HostReport, c.Report):
		h.HostUsage, h.Seq = c.Report.HostUsage, c.Report.Seq
	case newer:
		h.HostReport = *c.Report
		w.o.changing[c.Slice] = true
	}
	h.Seq = max(h.Seq, c.Seq)
	switch {
	case c.Live:
		h.Heartbeat = nil
	case h.Heartbeat == nil || h.Heartbeat.HeardAt() < c.Heard:
		h.Heartbeat = plan.NewHeartbeat(c.Heard)
	}
	if lived != h.Lives() {
		w.o.changing[c.Slice] = true
	}
	w.hosts()[c.Slice] = hosts
}

// allLive reports whether every host that is known is live.
func (o *Observer) allLive() bool {
	known := 0
	for _, hosts := range o.hosts {
		known += len(hosts)
	}
	if known > len(o.live.hosts) {
		return false
	}
	for slice, hosts := range o.hosts {
		for i := range hosts {
			if !o.live.hosts[liveKey{slice, hosts[i].Host}] {
				return false
			}
		}
	}
	return true
}

// listDue reports whether the store is to be looked into: not at each look while all hosts
// are live. Nothing is decided before one look was complete: after one that failed another begins at
// once.
func (o *Observer) listDue(obs *plan.Observed) bool {
	complete := o.live.complete
	o.live.complete = nil
	if o.Live != nil && o.look.complete && o.now().Before(o.look.rested) {
		return false
	}
	if o.Live == nil || o.live.listedAt.IsZero() || !o.live.whole || len(o.hosts) == 0 || len(o.booting) > 0 || len(o.damaged) > 0 || len(obs.Unreachable) > 0 {
		return true
	}
	if o.now().Sub(o.live.listedAt) >= liveListPace {
		return true
	}
	return o.awaitsHosts(obs.Inventories, complete)
}

// awaitsHosts reports whether hosts are missing, of slices to which something is assigned or whose
// hosts are about to report. was are the lists when none were at the last look: then only what has
// changed since is looked at. nil: some were, or that is not known.
func (o *Observer) awaitsHosts(lists map[schema.ProviderName]schema.Inventory, was map[schema.ProviderName][]schema.SliceStatus) bool {
	isBare := func(slice string) bool {
		_, assigned := o.assigned[slice]
		return assigned && len(o.hosts[slice]) == 0
	}
	if was == nil {
		for slice := range o.assigned {
			if isBare(slice) {
				return true
			}
		}
	}
	for slice := range o.changing {
		if isBare(slice) {
			return true
		}
	}
	complete := make(map[schema.ProviderName][]schema.SliceStatus, len(lists))
	for provider, inventory := range lists {
		before, is := was[provider], inventory.Slices
		complete[provider] = is
		if state.SameSlice(before, is) {
			continue
		}
		for i := range is {
			st := &is[i]
			if i < len(before) && before[i].Spec.Name == st.Spec.Name && awaitedHosts(&before[i]) == awaitedHosts(st) {
				continue
			}
			if len(o.hosts[st.Spec.Name]) < awaitedHosts(st) {
				return true
			}
		}
	}
	o.live.complete = complete
	return false
}

// awaitedHosts is how many hosts of a slice report, or are about to.
func awaitedHosts(st *schema.SliceStatus) int {
	if !awaited(st) {
		return 0
	}
	return st.Spec.Hosts
}

// awaited reports whether the hosts of a slice report, or are about to.
func awaited(st *schema.SliceStatus) bool {
	return !st.Waiting && len(st.Down) == 0 && (st.Phase == schema.SliceCreating || st.Phase == schema.SliceReady)
}

// listedLive takes note that a look that began then is over.
func (o *Observer) listedLive(began time.Time) {
	if o.Live != nil {
		o.live.listedAt, o.live.whole = began, o.allLive()
	}
}

// unread are those of the fresh objects that are to be read. Reports of live hosts stay
// unknown in the list, so that they are read once their hosts are not live any more.
func (o *Observer) unread(listed []store.Attrs, fresh []int) []int {
	if o.Live == nil {
		return fresh
	}
	left := fresh[:0:0]
	for _, i := range fresh {
		object := &listed[i]
		slice := mail.SliceOf(object.Key)
		switch {
		case strings.HasPrefix(object.Key, store.AssignPrefix) && o.assigned[slice].Object == object.Generation && o.damaged[slice] == "":
		case strings.HasPrefix(object.Key, store.HostsPrefix) && o.isLive(slice, object.Key):
			object.Generation = store.Absent
		default:
			left = append(left, i)
		}
	}
	return left
}

// isLate reports whether a report in the store is older than the one at hand, which came by a
// stream. One of another boot counts once that boot has written again: its agent may have lost
// its numbers.
func (o *Observer) isLate(known, r *state.HostReport) bool {
	at := liveKey{r.Slice, r.Host}
	if !o.live.seen[at] || r.Seq > known.Seq {
		delete(o.live.doubted, at)
		return false
	}
	if r.Boot != known.Boot && !o.live.hosts[at] {
		if was := o.live.doubted[at]; was.boot == r.Boot && r.Seq > was.seq {
			delete(o.live.doubted, at)
			return false
		}
		o.live.doubted[at] = lateReport{r.Boot, r.Seq}
	}
	return true
}

// announce has an assignment that was found in the store known to connected hosts.
func (o *Observer) announce(a *plan.Assigned) {
	if o.Live != nil {
		o.Live.Assigned(a.Slice, a.Object, nil)
	}
}

// withdraw has it known that a slice has no assignment any more.
func (o *Observer) withdraw(slice string) {
	if o.Live != nil {
		o.Live.Unassigned(slice)
	}
}

// isLive reports whether an object need not be read: it is the report of a host whose newer
// ones come by a stream.
func (o *Observer) isLive(slice, key string) bool {
	host, err := strconv.Atoi(strings.TrimSuffix(path.Base(key), ".json"))
	if err != nil || !o.live.hosts[liveKey{slice, host}] {
		return false
	}
	_, known := slices.BinarySearchFunc(o.hosts[slice], host, func(h plan.Host, n int) int { return h.Host - n })
	return known
}

// wrote takes in what the executor has written, as the next look into the store would.
func (o *Observer) wrote(a *plan.Assigned) {
	if o.Live == nil {
		return
	}
	if o.changing == nil {
		o.changing = map[string]bool{}
	}
	if a == nil {
		o.live.listedAt = time.Time{}
		return
	}
	if o.assigned == nil || o.assigned[a.Slice].Object >= a.Object {
		return
	}
	if o.look.running != nil {
		o.look.running.wrote[a.Slice] = true
	}
	w := &mailWriter{o: o}
	w.assignments()[a.Slice] = *a
	w.note(a.Slice, nil)
	o.changing[a.Slice] = true
}

// forgot takes in that the executor has removed the mailbox of a slice; "": of none.
func (o *Observer) forgot(slice string) {
	if o.Live == nil || slice == "" || o.assigned == nil {
		return
	}
	if o.changing == nil {
		o.changing = map[string]bool{}
	}
	if l := o.look.running; l != nil {
		if l.removed == nil {
			l.removed = map[string]bool{}
		}
		l.removed[slice] = true
	}
	w := &mailWriter{o: o}
	delete(w.assignments(), slice)
	w.note(slice, nil)
	delete(w.hosts(), slice)
	o.live.complete = nil
	for machine := range o.booting[slice] {
		w.boot(slice, machine, "")
	}
	o.withdraw(slice)
	o.changing[slice] = true
}
