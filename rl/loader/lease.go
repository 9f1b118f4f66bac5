package loader

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/fray-ml/fray/rl"
)

// Grant is a leased task. IsNew is that the loader has changed: the lease did not stand before.
type Grant struct {
	Entry Entry
	Lease rl.Lease
	IsNew bool
}

// Next leases the next task to a worker, or returns false if there is none. A worker has one lease: while it
// stands, the same incarnation gets it again, and another incarnation ends it first.
func (l *Loader) Next(worker, incarnation string, now time.Time) (Grant, bool) {
	if held := l.leases[worker]; held != nil {
		if held.Incarnation == incarnation {
			held.Renewed = now // it lives, and asks again since it did not get the answer
			return l.grant(held, false), true
		}
		l.PutBack(held.ID)
	}
	if len(l.state.Buffer) == 0 {
		if !l.CanReturnItem() {
			return Grant{}, false
		}
		l.load()
	}
	entry := l.state.Buffer[0]
	l.state.Buffer = l.state.Buffer[1:]
	l.state.Started = true
	l.state.Begun = l.state.Begun || entry.Added == nil
	l.state.Last++
	held := &lease{
		Number: l.state.Last, ID: fmt.Sprintf("%s/%s/%d/%d", l.cfg.Route, l.state.Instance, l.state.Epoch, l.state.Last),
		Worker: worker, Incarnation: incarnation, Entry: entry, Renewed: now,
	}
	l.hold(held)
	return l.grant(held, true), true
}

func (l *Loader) grant(held *lease, isNew bool) Grant {
	return Grant{
		Entry: held.Entry, IsNew: isNew,
		Lease: rl.Lease{ID: held.ID, Route: l.cfg.Route, Epoch: l.state.Epoch, TaskID: held.Entry.TaskID()},
	}
}

func (l *Loader) hold(held *lease) {
	l.leases[held.Worker] = held
	l.holder[held.ID] = held.Worker
}

func (l *Loader) drop(held *lease) {
	delete(l.leases, held.Worker)
	delete(l.holder, held.ID)
}

// of is the lease of an ID, nil if it does not stand.
func (l *Loader) of(id string) *lease { return l.leases[l.holder[id]] }

// inOrder are the leases in the order in which they were given.
func (l *Loader) inOrder() []*lease {
	out := slices.Collect(maps.Values(l.leases))
	slices.SortFunc(out, func(a, b *lease) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// Has reports whether a lease stands.
func (l *Loader) Has(id string) bool { return l.of(id) != nil }

// Complete ends a lease with its task, and reports whether the lease stood.
func (l *Loader) Complete(id string) bool {
	held := l.of(id)
	if held == nil {
		return false
	}
	l.drop(held)
	if held.Again {
		l.state.Buffer = slices.Insert(l.state.Buffer, 0, held.Entry)
		return true
	}
	l.done(held.Entry)
	return true
}

// PutBack ends a lease; its task is the next. It reports whether the lease stood.
func (l *Loader) PutBack(id string) bool {
	held := l.of(id)
	if held == nil {
		return false
	}
	l.drop(held)
	l.state.Buffer = slices.Insert(l.state.Buffer, 0, held.Entry)
	return true
}

// Renew keeps the lease of a worker, and reports whether it has one.
func (l *Loader) Renew(worker, incarnation string, now time.Time) bool {
	held := l.leases[worker]
	if held == nil || held.Incarnation != incarnation {
		return false
	}
	held.Renewed = now
	return true
}

// ReleaseWorker ends the leases of a worker that has died, and returns how many there were. Incarnation "" is any.
func (l *Loader) ReleaseWorker(worker, incarnation string) int {
	return l.putBack(func(held *lease) bool {
		return held.Worker == worker && (incarnation == "" || held.Incarnation == incarnation)
	})
}

// Expired are the IDs of leases that were not renewed in time, in the order in which they were given.
func (l *Loader) Expired(now time.Time) []string {
	due := slices.DeleteFunc(slices.Collect(maps.Values(l.leases)), func(held *lease) bool {
		return now.Sub(held.Renewed) < l.cfg.LeaseTTL
	})
	slices.SortFunc(due, func(a, b *lease) int { return cmp.Compare(a.Number, b.Number) })
	ids := make([]string, len(due))
	for i, held := range due {
		ids[i] = held.ID
	}
	return ids
}

// PutBackAll ends leases; their tasks are the next ones, in the order in which they were leased. It returns how
// many of the leases stood.
func (l *Loader) PutBackAll(ids []string) int {
	return l.putBack(func(held *lease) bool { return slices.Contains(ids, held.ID) })
}

// NextExpiry is when the first lease ends unless it is renewed, or false.
func (l *Loader) NextExpiry() (time.Time, bool) {
	var first time.Time
	for _, held := range l.leases {
		if at := held.Renewed.Add(l.cfg.LeaseTTL); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first, !first.IsZero()
}

// RenewAll keeps all leases, as after a time in which no worker could renew its own.
func (l *Loader) RenewAll(now time.Time) {
	for _, held := range l.leases {
		held.Renewed = now
	}
}

// putBack ends leases; their tasks are the next ones, in the order in which they were leased.
func (l *Loader) putBack(ends func(*lease) bool) int {
	var front []Entry
	for _, held := range l.inOrder() {
		if ends(held) {
			front = append(front, held.Entry)
			l.drop(held)
		}
	}
	l.state.Buffer = slices.Insert(l.state.Buffer, 0, front...)
	return len(front)
}
