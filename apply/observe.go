package apply

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/apply/mail"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Observer looks the world up: every provider's inventory and the mailbox. It
// remembers objects by generation, so that a look at the mailbox is one list
// and the changed objects, and when each host's report last changed, by its
// own clock. What it remembers is a cache: a new Observer sees the same world.
type Observer struct {
	Store     store.Store
	Providers map[schema.ProviderName]providers.Provider
	Now       func() time.Time // nil: time.Now
	// Patience is how long a look waits for a provider that was listed before; 0:
	// until it is. After it the last list stands, until the next one is whole.
	Patience time.Duration
	// HostReasons is whether and when hosts that have not reported are asked why.
	HostReasons HostReasons
	// Live are hosts that report by streams; nil: all report to the store alone.
	Live Live

	listers  map[schema.ProviderName]*lister
	doubts   map[schema.ProviderName]*confirmer
	askers   map[schema.ProviderName]*hostAsker
	listed   []store.Attrs // the mailbox, as it was last looked at
	assigned map[string]plan.Assigned
	damaged  map[string]string // why an assignment cannot be read, by slice
	hosts    map[string][]plan.Host
	booting  bootStatuses
	live     liveMail
	look     mailLooks
	changed  map[string]bool // see Changed
	changing map[string]bool // what becomes it when a look succeeds
	number   uint64          // of the last look

	// monitored is for how long this observer has monitored the store: what passed
	// between two observations counts up to maxGap, so that a process that was
	// suspended does not wake up to hosts that all seem silent. So does what passes while a look
	// into the mailbox is under way: a report that was not read yet is no silence.
	monitored time.Duration
	looked    time.Time // last
}

// Observe returns the world of one stack. A provider that cannot be asked is
// reported as unreachable; a mailbox that cannot be read is an error, since
// without it nothing may be concluded.
func (o *Observer) Observe(ctx context.Context, stack string) (*plan.Observed, error) {
	obs := &plan.Observed{
		Inventories:   map[schema.ProviderName]schema.Inventory{},
		Confirmations: map[string]plan.Confirmation{},
		Unreachable:   map[schema.ProviderName]plan.Unreachable{},
	}
	now, monitored := o.now(), o.monitored
	if o.look.running == nil {
		if !o.looked.IsZero() {
			o.monitored += o.passed(now)
		}
		o.looked = now
	}
	// Inventories first: a slice created between the two looks is then seen
	// by neither or only by its mailbox, never as one without hosts.
	o.inventories(ctx, stack, obs)
	if o.changing == nil {
		o.changing = map[string]bool{}
	}
	if err := o.mailbox(ctx, obs); err != nil {
		o.monitored = monitored // where nothing can be read, hosts may not be able to write
		return nil, fmt.Errorf("look into the mailbox: %w", err)
	}
	o.askHosts(ctx, obs)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o.changed, o.changing = o.changing, nil
	o.number++
	obs.Look, obs.Changed = o.number, o.changed
	return obs, nil
}

// Changed are the slices whose assignment, or a report or status of whose hosts, was
// written or removed between the last Observe that succeeded and the one
// before it; after the first one, all that have any. It does not tell what
// changed by time passing, such as a host's silence, nor what providers said.
func (o *Observer) Changed() map[string]bool { return o.changed }

func (o *Observer) inventories(ctx context.Context, stack string, obs *plan.Observed) {
	if o.listers == nil {
		o.listers = map[schema.ProviderName]*lister{}
	}
	for name, p := range o.Providers {
		if o.listers[name] == nil {
			o.listers[name] = &lister{provider: p}
		}
		o.listers[name].begin(ctx, stack, o.now())
		if c := o.doubts[name]; c != nil {
			c.begin(ctx)
		}
	}
	patience := newPatience(o.Patience)
	defer patience.stop()
	for name := range o.Providers {
		l := o.listers[name]
		l.await(ctx, patience)
		switch {
		case l.err != nil:
			obs.Unreachable[name] = plan.Unreachable{Kind: providers.KindOf(l.err), Text: l.err.Error()}
		case l.running != nil && o.now().Sub(l.begun) > staleAfter:
			text := fmt.Sprintf("it has not answered for %s", o.now().Sub(l.begun).Truncate(time.Second))
			obs.Unreachable[name] = plan.Unreachable{Kind: schema.ErrorUnavailable, Text: text}
		default:
			obs.Inventories[name] = l.inventory
		}
		if c := o.doubts[name]; c != nil {
			c.await(ctx, patience)
			c.report(obs.Confirmations, l.number)
		}
	}
}

// Doubt has the slices read directly that a plan for the last Observe doubted. The
// next ones report what came of it.
func (o *Observer) Doubt(doubts []plan.Doubt) {
	if o.doubts == nil {
		o.doubts = map[schema.ProviderName]*confirmer{}
	}
	for name, p := range o.Providers {
		of := slices.DeleteFunc(slices.Clone(doubts), func(d plan.Doubt) bool { return d.Slice.Provider != name })
		if o.doubts[name] == nil && len(of) == 0 {
			continue
		}
		if o.doubts[name] == nil {
			o.doubts[name] = &confirmer{provider: p, now: o.now}
		}
		l := o.listers[name]
		if l == nil {
			continue
		}
		o.doubts[name].want(of, l.number, l.listedAt)
	}
}

// differences are the indices in is of what was not in was, or in another
// generation, and the keys of what is no more. Both lists are sorted.
func differences(was, is []store.Attrs) (fresh []int, gone []string) {
	for i := 0; i < len(is) || len(was) > 0; {
		order := 1
		switch {
		case i == len(is):
			order = -1
		case len(was) > 0:
			order = strings.Compare(was[0].Key, is[i].Key)
		}
		if order < 0 {
			gone = append(gone, was[0].Key)
		} else if order > 0 || was[0].Generation != is[i].Generation {
			fresh = append(fresh, i)
		}
		if order <= 0 {
			was = was[1:]
		}
		if order >= 0 {
			i++
		}
	}
	return fresh, gone
}

// takeIn brings the maps up to date. Earlier observations keep theirs.
func (o *Observer) takeIn(read []mail.Item, gone []string) {
	if o.assigned == nil {
		o.assigned, o.hosts = map[string]plan.Assigned{}, map[string][]plan.Host{}
	}
	w := &mailWriter{o: o}
	for i := range read {
		m := &read[i]
		o.changing[m.Slice] = true
		switch {
		case m.Damaged != nil && m.Report != nil:
		case m.Absent != "":
			w.drop(m.Absent)
		case m.Boot != "":
			w.boot(m.Slice, m.Machine, m.Boot)
		case m.Assignment != nil && m.Assignment.Object < o.assigned[m.Slice].Object: // written since
		case m.Assignment != nil:
			w.assignments()[m.Slice] = *m.Assignment
			w.note(m.Slice, m.Damaged)
			o.announce(m.Assignment)
		default:
			w.report(m.Report)
		}
	}
	for _, key := range gone {
		o.changing[mail.SliceOf(key)] = true
		w.drop(key)
	}
}

// mailWriter changes an Observer's maps. It copies those first that an observation has.
type mailWriter struct {
	o       *Observer
	ownBoot map[string]bool // slices whose statuses are copied; nil: none, and not the whole
	copied  map[string]bool // slices whose hosts are, where hosts report by streams
}

func (w *mailWriter) assignments() map[string]plan.Assigned {
	if !w.o.look.ownAssigned {
		w.o.assigned, w.o.look.ownAssigned = maps.Clone(w.o.assigned), true
	}
	return w.o.assigned
}

// note remembers why an assignment cannot be read; nil: it can, or is gone.
func (w *mailWriter) note(slice string, damaged error) {
	delete(w.o.damaged, slice)
	if damaged == nil {
		return
	}
	if w.o.damaged == nil {
		w.o.damaged = map[string]string{}
	}
	w.o.damaged[slice] = damaged.Error()
}

func (w *mailWriter) hosts() map[string][]plan.Host {
	if !w.o.look.ownHosts {
		w.o.hosts, w.o.look.ownHosts = maps.Clone(w.o.hosts), true
	}
	return w.o.hosts
}

// report takes in a host's report: as a heartbeat, if it says nothing new.
func (w *mailWriter) report(r *state.HostReport) {
	hosts := w.o.hosts[r.Slice]
	i, known := slices.BinarySearchFunc(hosts, r.Host, func(h plan.Host, n int) int { return h.Host - n })
	if known && w.o.isLate(&hosts[i].HostReport, r) {
		return
	}
	if known && saysTheSame(&hosts[i].HostReport, r) {
		hosts = slices.Clone(hosts)
		hosts[i].Heartbeat, hosts[i].HostUsage, hosts[i].Seq = w.o.heartbeat(r), r.HostUsage, r.Seq
		w.hosts()[r.Slice] = hosts
		return
	}
	hosts = slices.Clone(hosts)
	if !known {
		hosts = slices.Insert(hosts, i, plan.Host{})
		w.o.live.whole = w.o.live.whole && w.o.live.hosts[liveKey{r.Slice, r.Host}]
	}
	hosts[i] = plan.Host{HostReport: *r, Heartbeat: w.o.heartbeat(r)}
	w.hosts()[r.Slice] = hosts
}

// saysTheSame reports whether two reports differ in nothing but their time and number, what
// tasks use, and how often the store was asked.
func saysTheSame(a, b *state.HostReport) bool {
	if a.Boot != b.Boot || a.Generation != b.Generation || a.Notice != b.Notice {
		return false
	}
	was, is := plan.Host{HostReport: *a}, plan.Host{HostReport: *b}
	if reflect.DeepEqual(a.Task, b.Task) {
		is.Task = was.Task
	}
	return was.SameReport(&is)
}

// drop forgets an object that is no more.
func (w *mailWriter) drop(key string) {
	slice := mail.SliceOf(key)
	if mail.IsBoot(key) {
		w.boot(slice, mail.MachineOf(key), "")
		return
	}
	if strings.HasPrefix(key, store.AssignPrefix) {
		delete(w.assignments(), slice)
		w.note(slice, nil)
		w.o.withdraw(slice)
		return
	}
	w.o.live.complete = nil
	left := slices.DeleteFunc(slices.Clone(w.o.hosts[slice]), func(h plan.Host) bool { return store.HostKey(slice, h.Host) == key })
	if len(left) == 0 {
		delete(w.hosts(), slice)
	} else {
		w.hosts()[slice] = left
	}
}

func (o *Observer) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}
