package capacity

import (
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
)

// boundKind is a closed set of what bounds capacity.
type boundKind uint8

// The bounds.
const (
	OfProvider  boundKind = iota // its limits
	OfPool                       // slices of a reservation
	OfNamespace                  // its max
	OfUser                       // a user's max in a namespace
	OfQuota                      // the cloud's, at a place; it is known when it is used up
	OfHosts                      // of a reservation, which packed jobs share; see fitting
)

// Bound is something that bounds capacity.
type Bound struct {
	Kind  boundKind
	Name  string
	Space string // of a user's
}

// Claim is what a unit needs within a bound.
type Claim struct {
	Bound Bound
	Need  snapshot.Load
	Used  snapshot.Load // by others
	Limit snapshot.Load
	// unmade is the part of a reservation that is not there yet. Who comes behind
	// others that wait for it is not to take what is there instead.
	Unmade snapshot.Load
	Short  plan.Reason // why it does not fit, nothing: that is reported elsewhere
}

// Wants is what a unit needs to be placed.
type Wants struct {
	Claims []Claim
	Hosts  []*Fitting // in reservations whose hosts are shared
	Full   bool       // no rooms were found there for its packed jobs
	Grows  bool       // all new slices are ones by which reservations grow
}

// Shares reports whether a claim is to slices of a reservation whose hosts are
// shared: what comes free of these is no matter of sums.
func (w *Wants) Shares(b Bound) bool {
	return b.Kind == OfPool && slices.ContainsFunc(w.Hosts, func(f *Fitting) bool { return f.Name == b.Name })
}

// Reserved is the part of a bound that is reserved for units ahead in the queue.
type Reserved struct {
	load   snapshot.Load
	By     schema.Address // the first of them
	Since  time.Time
	Unable []schema.Address // who did not fit, the first few
	Count  int              // of these
}

// Beside is what is used and kept for others.
func (c *Claim) Beside(k *Reserved) snapshot.Load {
	if k == nil || k.load == (snapshot.Load{}) {
		return c.Used
	}
	return c.Used.Plus(k.load, 1).Plus(c.Unmade, 1)
}

// keepSums holds back the sums that a unit needs.
func (d *Headroom) keepSums(u *Unit, claims []Claim) {
	for _, c := range claims {
		if c.Need == (snapshot.Load{}) {
			continue // it waits for something else
		}
		k := d.Reserved[c.Bound]
		if k == nil {
			k = &Reserved{}
			d.ReserveFor(c.Bound, k)
		}
		if k.By.IsZero() {
			k.By, k.Since = u.Addr, d.WaitingSince(u)
		}
		k.load = k.load.Plus(c.Need, 1)
	}
}

// ReserveFor adds to what is held of a bound.
func (d *Headroom) ReserveFor(b Bound, k *Reserved) {
	if d.Reserved == nil {
		d.Reserved = map[Bound]*Reserved{}
	}
	d.Reserved[b] = k
}

// WaitingSince is when a unit began to wait: it was admitted, or what it had has ended.
func (d *Headroom) WaitingSince(u *Unit) time.Time {
	since := u.Since
	for _, want := range u.Jobs {
		if j := d.Next.Jobs[want.Addr]; j != nil && j.Last() != nil {
			since = Later(since, j.Last().EndedAt)
		}
	}
	return since
}
