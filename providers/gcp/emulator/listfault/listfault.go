// Package listfault injects faults into lists whose calls succeed: empty, short,
// stale, reordered or poisoned ones, as the scenario of package cloud states. It
// knows no protocol: an [Injector] works on entries of any type, which the servers
// of the APIs cut into pages. Start with [Injector.Page].
package listfault

import (
	"slices"
	"sync"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// Injector injects faults into the lists of one collection. It keeps former lists,
// from which it takes stale ones. Its exported fields must be set before first use.
type Injector[T any] struct {
	Of     string // name of the collection, as in cloud.ListNames
	Cloud  *cloud.Cloud
	Zone   func(T) string // an entry's zone
	Copied func(T) T      // a copy of an entry, named by CopyName

	mu  sync.Mutex
	old []oldList[T] // oldest first
}

// oldList is the first page of a former list.
type oldList[T any] struct {
	at      time.Time
	entries []T
}

// Old lists are kept so many, and so far apart.
const (
	oldLists    = 16
	oldListGap  = 10 * time.Second
	copiedName  = "copy-of-"
	longestName = 63
)

// Page returns the page and the token of the next one that a client gets in place
// of the right ones. first states that the page is the first of its list.
func (m *Injector[T]) Page(entries []T, next string, first bool) ([]T, string) {
	wrong := m.Cloud.Misreading(m.Of)
	if first {
		m.remember(entries)
	}
	half := len(entries) / 2
	switch wrong.Fault {
	case cloud.ListEmpty:
		return nil, ""
	case cloud.ListShort:
		return slices.DeleteFunc(slices.Clone(entries), func(T) bool { return wrong.Dice.IntN(2) == 0 }), next
	case cloud.ListToken:
		return entries[:half], ""
	case cloud.ListZone:
		zone := wrong.Zone
		if zone == "" && len(entries) > 0 {
			zone = m.Zone(entries[wrong.Dice.IntN(len(entries))])
		}
		return slices.DeleteFunc(slices.Clone(entries), func(e T) bool { return m.Zone(e) == zone }), next
	case cloud.ListStale:
		if first {
			return m.recall(wrong), next
		}
	case cloud.ListReordered:
		entries = slices.Clone(entries)
		slices.Reverse(entries)
	case cloud.ListPoisoned:
		if len(entries) > 0 {
			entries = append(slices.Clone(entries), m.Copied(entries[wrong.Dice.IntN(len(entries))]))
		}
	case cloud.ListSlow:
		m.Cloud.Linger(wrong)
	}
	return entries, next
}

func (m *Injector[T]) remember(entries []T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.Cloud.Clock().Now()
	if n := len(m.old); n > 0 && now.Sub(m.old[n-1].at) < oldListGap {
		return
	}
	m.old = append(m.old, oldList[T]{at: now, entries: slices.Clone(entries)})
	m.old = m.old[max(0, len(m.old)-oldLists):]
}

func (m *Injector[T]) recall(wrong cloud.ListMisreading) []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.old[wrong.Dice.IntN(len(m.old))].entries)
}

// CopyName is the name that the copy of an entry of that name gets.
func CopyName(name string) string {
	copied := copiedName + name
	return copied[:min(len(copied), longestName)]
}
