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

// Next leases the next task to a worker that rolls out one at a time, or returns false if there is none. While its lease
// stands, the same incarnation gets it again, and another incarnation ends it first.
func (l *Loader) Next(worker, incarnation string, now time.Time) (Grant, bool) {
	grants, _ := l.Exchange(Exchange{Worker: worker, Incarnation: incarnation, Want: 1}, now)
	if len(grants) == 0 {
		return Grant{}, false
	}
	return grants[0], true
}

// Exchange is what one incarnation of a worker asks for: Done are leases that end with their tasks, Held are further ones that
// it knows to have, and it wants up to Want tasks beside those. Leases of it that are in neither list are of an answer that it
// did not get: they are given again first.
type Exchange struct {
	Worker, Incarnation string
	Done, Held          []string
	Want                int
}

// Exchange ends leases with their tasks and grants others, and reports whether that has changed the loader. Leases of another
// incarnation of the worker end before: it has died. An exchange that is repeated changes nothing.
func (l *Loader) Exchange(x Exchange, now time.Time) (grants []Grant, changed bool) {
	if l.endFormer(x.Worker, x.Incarnation) > 0 {
		changed = true
	}
	for _, id := range x.Done {
		changed = l.Complete(id) || changed
	}
	for _, held := range l.of(x.Worker) {
		held.Renewed = now // it lives
		if len(grants) < x.Want && !slices.Contains(x.Held, held.ID) {
			grants = append(grants, l.grant(held, false))
		}
	}
	for len(grants) < x.Want {
		held := l.lease(x.Worker, x.Incarnation, now)
		if held == nil {
			break
		}
		grants, changed = append(grants, l.grant(held, true)), true
	}
	return grants, changed
}

// IsReplaced reports whether another incarnation of a worker has leases.
func (l *Loader) IsReplaced(worker, incarnation string) bool {
	of := l.of(worker)
	return len(of) > 0 && of[0].Incarnation != incarnation // all are of one
}

// endFormer ends the leases of other incarnations of a worker.
func (l *Loader) endFormer(worker, incarnation string) int {
	if !l.IsReplaced(worker, incarnation) {
		return 0
	}
	return l.putBack(func(held *lease) bool { return held.Worker == worker })
}

// lease leases the next task to a worker; nil: there is none.
func (l *Loader) lease(worker, incarnation string, now time.Time) *lease {
	if len(l.state.Buffer) == 0 {
		if !l.CanReturnItem() {
			return nil
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
	return held
}

func (l *Loader) grant(held *lease, isNew bool) Grant {
	return Grant{
		Entry: held.Entry, IsNew: isNew,
		Lease: rl.Lease{ID: held.ID, Route: l.cfg.Route, Epoch: l.state.Epoch, TaskID: held.Entry.TaskID()},
	}
}

func (l *Loader) hold(held *lease) {
	l.leases[held.ID] = held
	l.workers[held.Worker] = append(l.workers[held.Worker], held)
}

func (l *Loader) drop(held *lease) {
	delete(l.leases, held.ID)
	others := slices.DeleteFunc(l.workers[held.Worker], func(each *lease) bool { return each == held })
	if len(others) == 0 {
		delete(l.workers, held.Worker)
		return
	}
	l.workers[held.Worker] = others
}

// of are the leases of a worker, in the order in which they were given.
func (l *Loader) of(worker string) []*lease { return l.workers[worker] }

// inOrder are the leases in the order in which they were given.
func (l *Loader) inOrder() []*lease {
	out := slices.Collect(maps.Values(l.leases))
	slices.SortFunc(out, func(a, b *lease) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// Has reports whether a lease stands.
func (l *Loader) Has(id string) bool { return l.leases[id] != nil }

// Complete ends a lease with its task, and reports whether the lease stood.
func (l *Loader) Complete(id string) bool {
	held := l.leases[id]
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
	held := l.leases[id]
	if held == nil {
		return false
	}
	l.drop(held)
	l.state.Buffer = slices.Insert(l.state.Buffer, 0, held.Entry)
	return true
}

// Renew keeps the leases of one incarnation of a worker, and returns how many it has.
func (l *Loader) Renew(worker, incarnation string, now time.Time) int {
	of := l.of(worker)
	if len(of) == 0 || of[0].Incarnation != incarnation {
		return 0
	}
	for _, held := range of {
		held.Renewed = now
	}
	return len(of)
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
