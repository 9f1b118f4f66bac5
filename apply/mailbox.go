package apply

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/apply/mail"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Times and sizes of looks into the mailbox while hosts report by streams.
const (
	// mailPatience is how long an observation waits for a look that it begins, and after which time the
	// next one sees what has come of that.
	mailPatience = 100 * time.Millisecond
	// restShare is how many times as long as a list took passes at least until the next
	// one, at most longestRest: a list of many hosts takes seconds.
	restShare   = 3
	longestRest = 8 * time.Second
	// reportsAtOnce is how many reports are taken in at a time.
	reportsAtOnce = 1024
	// While hosts come back by streams, as after a takeover, reports that are not urgent are left
	// to them: until fewer than one of comingShare of them have come for comingPause, and for
	// comingLongest at most.
	comingShare   = 64
	comingPause   = 2 * time.Second
	comingLongest = 15 * time.Second
)

// mailLooks are the looks of an observer into the mailbox.
type mailLooks struct {
	running  *mailLook   // nil: none is under way
	complete bool        // one has read what is needed to decide
	rested   time.Time   // not to be listed before
	ahead    *mail.Ahead // what was read before the first list; nil: nothing
	// Copies of the observer's maps that no observation has yet: they may be changed.
	ownAssigned, ownHosts bool
}

// mailLook is a look that is under way: a list, and then the objects that are new in it, in
// parts. Those that decide what the others mean come first.
type mailLook struct {
	next    chan mailPart
	began   time.Time
	first   []int           // of what was listed: assignments, and what machines state
	reports []int           // that follow
	urgent  []int           // those of hosts that may be free
	others  []int           // those of hosts that have something to run, newest first
	wrote   map[string]bool // slices to which something was assigned since
	removed map[string]bool // slices whose mailboxes were removed since the part under way has begun; nil: none
	unknown map[string]int  // how many hosts of a slice have a report among the others, and none that is known
	held    bool            // no part is under way: hosts come by streams
	came    int             // hosts that are live
	cameAt  time.Time       // when the last one came; zero: none has
}

// mailPart is a part of a look: a list, or objects.
type mailPart struct {
	listed  []store.Attrs // nil: objects
	indices []int         // of the objects in what was listed
	read    []mail.Item
	objects []state.Generation // of what was read
	err     error
}

// mailbox looks into the mailbox, with one list and reads of what changed, however many hosts
// there are. While hosts report by streams it does not wait for all of that, but for the
// assignments when they are not known yet.
func (o *Observer) mailbox(ctx context.Context, obs *plan.Observed) error {
	o.takeLive()
	patience := patience{stop: func() bool { return true }}
	mayWait := o.Live == nil || o.Patience == 0
	if o.look.running == nil && o.listDue(obs) {
		o.look.running = beginLook(ctx, o.Store, o.now())
		o.look.running.came = len(o.live.hosts)
		if !mayWait {
			patience, mayWait = newPatience(mailPatience), true
		}
	}
	if !mayWait { // for a look that goes on: it is looked at again soon
		patience.over = make(chan struct{})
		close(patience.over)
	}
	defer patience.stop()
	if l := o.look.running; l != nil {
		l.count(o)
		if l.held && !l.coming(o) {
			o.nextPart(ctx)
		}
	}
	for o.look.running != nil && !o.look.running.held {
		over := patience.over
		if !o.look.complete {
			over = nil
		}
		part, came, err := o.look.running.await(ctx, over)
		if !came {
			break
		}
		if err != nil {
			o.look.running = nil
			return err
		}
		o.takePart(ctx, part)
	}
	obs.Booting = o.booting.slices()
	obs.Assignments, obs.Damaged, obs.Hosts, obs.Monitored = o.assigned, maps.Clone(o.damaged), o.hosts, o.monitored
	o.look.ownAssigned, o.look.ownHosts = false, false
	obs.Unread = o.look.running.unread()
	return nil
}

// beginLook begins a look with its list.
func beginLook(ctx context.Context, s store.Store, now time.Time) *mailLook {
	l := &mailLook{next: make(chan mailPart, 1), began: now, wrote: map[string]bool{}}
	go func() {
		listed, err := mail.List(ctx, s)
		l.next <- mailPart{listed: listed, err: err}
	}()
	return l
}

// await returns the next part, if it comes before what ends the wait; nil: nothing does.
func (l *mailLook) await(ctx context.Context, over <-chan struct{}) (part mailPart, came bool, err error) {
	select {
	case part = <-l.next: // also where the wait is over
		return part, true, part.err
	default:
	}
	select {
	case part = <-l.next:
		return part, true, part.err
	case <-over:
		return part, false, nil
	case <-ctx.Done():
		return part, true, context.Cause(ctx)
	}
}

// unread are the slices with hosts of which no report was read yet.
func (l *mailLook) unread() map[string]bool {
	if l == nil || len(l.unknown) == 0 {
		return nil
	}
	unread := make(map[string]bool, len(l.unknown))
	for slice := range l.unknown {
		unread[slice] = true
	}
	return unread
}

// takePart takes in a part of the look that is under way, and begins the next one.
func (o *Observer) takePart(ctx context.Context, part mailPart) {
	l := o.look.running
	if part.read == nil {
		o.takeList(part.listed)
	} else {
		o.takeRead(part)
	}
	l.removed = nil
	if l.held = l.waits() && l.coming(o); !l.held {
		o.nextPart(ctx)
	}
}

// nextPart begins the next part of the look that is under way, or ends it.
func (o *Observer) nextPart(ctx context.Context) {
	l := o.look.running
	l.held = false
	next := l.following(o)
	if len(next) == 0 {
		o.look.running = nil
		o.listedLive(l.began)
		return
	}
	keys := make([]string, len(next))
	for n, i := range next {
		keys[n] = o.listed[i].Key
	}
	go func() {
		part := mailPart{indices: next}
		part.read, part.objects, part.err = mail.Read(ctx, o.Store, keys)
		l.next <- part
	}()
}

// takeList takes in which objects there are. What is new counts as unknown until it is read.
func (o *Observer) takeList(listed []store.Attrs) {
	l := o.look.running
	o.look.rested = o.now().Add(min(restShare*o.now().Sub(l.began), longestRest))
	fresh, gone := differences(o.listed, listed)
	fresh = o.unread(listed, fresh)
	gone = slices.DeleteFunc(gone, func(key string) bool { return l.wrote[mail.SliceOf(key)] })
	if len(gone) > 0 {
		o.takeIn(nil, gone)
	}
	o.listed = listed
	var known []mail.Item
	for _, i := range fresh {
		if m, is := o.look.ahead.Take(listed[i]); is {
			known = append(known, m)
			continue
		}
		listed[i].Generation = store.Absent
		if strings.HasPrefix(listed[i].Key, store.HostsPrefix) {
			l.reports = append(l.reports, i)
		} else {
			l.first = append(l.first, i)
		}
	}
	if o.look.ahead = nil; len(known) > 0 {
		o.takeIn(known, nil)
	}
}

// takeRead takes in objects, and which versions of them were read: none of those that are there
// no more, or were removed meanwhile, so that they are read if they are listed again.
func (o *Observer) takeRead(part mailPart) {
	l := o.look.running
	for n, i := range part.indices {
		o.listed[i].Generation = part.objects[n]
		slice := part.read[n].Slice
		if l.removed[slice] {
			o.listed[i].Generation = store.Absent
		}
		l.known(slice)
	}
	o.takeIn(slices.DeleteFunc(part.read, func(m mail.Item) bool {
		return l.removed[m.Slice] || l.wrote[m.Slice] && strings.HasPrefix(m.Absent, store.AssignPrefix)
	}), nil)
}

// known takes note that a report of a host of a slice is known, or was left out.
func (l *mailLook) known(slice string) {
	if left := l.unknown[slice]; left > 1 {
		l.unknown[slice] = left - 1
	} else {
		delete(l.unknown, slice)
	}
}

// waits reports whether only reports are left that are not urgent, after a part of them.
func (l *mailLook) waits() bool {
	return len(l.first) == 0 && l.reports == nil && len(l.urgent) == 0
}

// count takes note of hosts that come by streams, once they are some of those that are awaited.
func (l *mailLook) count(o *Observer) {
	switch n := len(o.live.hosts); {
	case n < l.came:
		l.came = n
	case n-l.came > len(l.others)/comingShare:
		l.came, l.cameAt = n, o.now()
	}
}

// coming reports whether hosts come by streams.
func (l *mailLook) coming(o *Observer) bool {
	now := o.now()
	return now.Sub(l.cameAt) < comingPause && now.Sub(l.began) < comingLongest
}

// following takes what is to be read next, as indices of what was listed; nil: nothing is left.
func (l *mailLook) following(o *Observer) (next []int) {
	if len(l.first) > 0 {
		next, l.first = l.first, nil
		return next
	}
	if l.reports != nil {
		l.order(o)
	}
	if len(l.urgent) > 0 {
		next, l.urgent = l.urgent, nil
		return next
	}
	o.look.complete = true
	for len(next) == 0 && len(l.others) > 0 {
		n := min(reportsAtOnce, len(l.others))
		for _, i := range l.others[:n] {
			if key := o.listed[i].Key; o.isLive(mail.SliceOf(key), key) {
				l.known(mail.SliceOf(key))
			} else {
				next = append(next, i)
			}
		}
		l.others = l.others[n:]
	}
	return next
}

// order tells the reports apart, as the assignments that are known by now say.
func (l *mailLook) order(o *Observer) {
	for _, i := range l.reports {
		slice := mail.SliceOf(o.listed[i].Key)
		if !o.look.complete && o.assigned[slice].Run == nil {
			l.urgent = append(l.urgent, i)
		} else {
			l.others = append(l.others, i)
		}
	}
	l.reports = nil
	slices.SortStableFunc(l.others, func(a, b int) int { return o.listed[b].Updated.Compare(o.listed[a].Updated) })
	if o.look.complete {
		return
	}
	l.unknown = make(map[string]int, len(l.others))
	for _, i := range l.others {
		l.unknown[mail.SliceOf(o.listed[i].Key)]++
	}
}
