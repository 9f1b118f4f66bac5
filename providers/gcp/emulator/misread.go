package emulator

import (
	"path"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// misreader makes lists wrong, as the scenario has it, and remembers what lists were
// for those that are to be old.
type misreader[T any] struct {
	of     string
	cloud  *cloud.Cloud
	zone   func(T) string
	copied func(T) T // the same under another name

	mu  sync.Mutex
	old []oldList[T] // oldest first
}

// oldList is the first page of a list of before.
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

// read is what becomes of a page and of the token of the next one.
func (m *misreader[T]) read(entries []T, next string, first bool) ([]T, string) {
	wrong := m.cloud.Misreading(m.of)
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
			zone = m.zone(entries[wrong.Dice.IntN(len(entries))])
		}
		return slices.DeleteFunc(slices.Clone(entries), func(e T) bool { return m.zone(e) == zone }), next
	case cloud.ListStale:
		if first {
			return m.recall(wrong), next
		}
	case cloud.ListReordered:
		entries = slices.Clone(entries)
		slices.Reverse(entries)
	case cloud.ListPoisoned:
		if len(entries) > 0 {
			entries = append(slices.Clone(entries), m.copied(entries[wrong.Dice.IntN(len(entries))]))
		}
	case cloud.ListSlow:
		m.cloud.Linger(wrong)
	}
	return entries, next
}

func (m *misreader[T]) remember(entries []T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.cloud.Clock().Now()
	if n := len(m.old); n > 0 && now.Sub(m.old[n-1].at) < oldListGap {
		return
	}
	m.old = append(m.old, oldList[T]{at: now, entries: slices.Clone(entries)})
	m.old = m.old[max(0, len(m.old)-oldLists):]
}

func (m *misreader[T]) recall(wrong cloud.ListMisreading) []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.old[wrong.Dice.IntN(len(m.old))].entries)
}

// copyName is the name of the copy of what has this one.
func copyName(name string) string {
	copied := copiedName + name
	return copied[:min(len(copied), longestName)]
}

func zoneNamed(resource string) string {
	n, _ := parseName(resource)
	return n.zone
}

func copiedNode(n *tpuapi.Node) *tpuapi.Node {
	copied := proto.CloneOf(n)
	copied.Name = path.Dir(n.GetName()) + "/" + copyName(path.Base(n.GetName()))
	return copied
}

func copiedQueued(q *tpuapi.QueuedResource) *tpuapi.QueuedResource {
	copied := proto.CloneOf(q)
	copied.Name = path.Dir(q.GetName()) + "/" + copyName(path.Base(q.GetName()))
	return copied
}

func copiedItem(i listItem) listItem {
	copied := listItem{scope: i.scope, name: copyName(i.name), message: proto.Clone(i.message)}
	message := copied.message.ProtoReflect()
	message.Set(message.Descriptor().Fields().ByName("name"), protoreflect.ValueOfString(copied.name))
	return copied
}
