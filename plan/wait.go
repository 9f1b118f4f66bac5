package plan

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
)

// reason is why something waits; the zero reason is none.
type reason struct {
	text  string
	kind  WaitKind  // "": it waits for nothing
	until time.Time // when it is tried again; zero: not a matter of time
	// underway: it will come about by what the plan does or what is being done.
	underway bool
	// since is when that of which the text says that it has waited began to.
	since time.Time
}

func (r reason) none() bool { return r.kind == WaitNone }

func because(kind WaitKind, text string) reason { return reason{kind: kind, text: text} }

func underway(text string) reason { return reason{kind: WaitUnderway, text: text, underway: true} }

// depends is what comes about by what another job does, or by its values.
func depends(text string) reason { return reason{kind: WaitDependency, text: text, underway: true} }

// shown is the reason for people, with the time left.
func (r reason) shown(now time.Time) string {
	if !r.since.IsZero() {
		return r.text + " " + now.Sub(r.since).Truncate(time.Minute).String()
	}
	if r.until.IsZero() {
		return r.text
	}
	return r.text + "; next try in " + roundUp(r.until.Sub(now)).String()
}

// roundUp keeps a wait readable, and the same for a second at a time.
func roundUp(t time.Duration) time.Duration {
	return (t + time.Second - 1).Truncate(time.Second)
}

// waiting is part of a Pending in the making.
type waiting struct {
	addr schema.Address
	why  reason
}

// wait notes that an address waits. The first reason of a job is also recorded
// in its state, without the time left: a state that changed with every second
// would have to be written every second.
func (d *differ) wait(addr schema.Address, reasons ...reason) {
	if d.waits == nil {
		d.waits = make([]waiting, 0, len(d.idle)+8)
	}
	for _, why := range reasons {
		d.waits = append(d.waits, waiting{addr: addr, why: why})
		d.wakeAt(why.until)
	}
}

func (d *differ) concludeWaits() {
	byAddr := func(a, b waiting) int { return a.addr.Compare(b.addr) }
	if !slices.IsSortedFunc(d.waits, byAddr) {
		slices.SortStableFunc(d.waits, byAddr)
	}
	d.plan.Pending = make([]Pending, 0, len(d.waits))
	for i := range d.waits {
		w := &d.waits[i]
		shown := w.why.shown(d.now)
		if n := len(d.plan.Pending); n > 0 && d.plan.Pending[n-1].Addr == w.addr {
			last := &d.plan.Pending[n-1]
			last.Kind = chief(last.Kind, w.why.kind)
			last.Underway = last.Underway && w.why.underway
			last.Blocked = last.Blocked && w.why.kind == WaitBlocked
			if !slices.Contains(last.Reasons, shown) {
				last.Reasons = append(last.Reasons, shown)
			}
			continue
		}
		d.plan.Pending = append(d.plan.Pending, Pending{Addr: w.addr, Kind: w.why.kind, Reasons: []string{shown}, Underway: w.why.underway, Blocked: w.why.kind == WaitBlocked})
		// Why a job ended is worth more than that its slices are still going.
		if j := d.next.Jobs[w.addr]; j != nil && !j.Status.Ended() && j.Reason != w.why.text {
			d.edit(w.addr).Reason = w.why.text
		}
	}
	for _, addr := range d.content {
		_, waits := slices.BinarySearchFunc(d.plan.Pending, addr, func(p Pending, a schema.Address) int { return p.Addr.Compare(a) })
		if !waits {
			d.edit(addr).Reason = ""
		}
	}
}
