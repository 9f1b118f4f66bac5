// Package mail reads what hosts and controllers tell each other through the store: assignments,
// reports, and what machines state until they report.
//
// It leaves out what follows from any of it, and when to look. Start with [List] and [Read].
package mail

import (
	"cmp"
	"context"
	"path"
	"strings"
	"unicode"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Item is what an object says, decoded: an assignment, a report, or what a machine states until it
// reports.
type Item struct {
	Slice      string
	Assignment *plan.Assigned
	Report     *state.HostReport
	Machine    string // which one states Boot
	Boot       string
	Absent     string // the key, where there is nothing of it any more
	Damaged    error  // why the object cannot be read
}

// List returns which objects there are, by key.
func List(ctx context.Context, s store.Store) ([]store.Attrs, error) {
	return s.List(ctx, store.AssignPrefix, store.BootPrefix, store.HostsPrefix)
}

// Read reads objects, and returns which versions it found.
func Read(ctx context.Context, s store.Store, keys []string) ([]Item, []state.Generation, error) {
	objects, err := store.GetAll(ctx, s, keys)
	if err != nil {
		return nil, nil, err
	}
	read, found := make([]Item, len(keys)), make([]state.Generation, len(keys))
	for n := range keys {
		object := &objects[n]
		found[n] = object.Generation
		m := &read[n]
		m.Slice = SliceOf(keys[n])
		switch {
		case object.Key == "":
			m.Absent = keys[n]
			continue
		case strings.HasPrefix(keys[n], store.AssignPrefix):
			// One that cannot be read is as if nothing was assigned, and is replaced.
			m.Assignment = &plan.Assigned{Object: object.Generation}
			m.Assignment.Assignment, m.Damaged = store.DecodeAssignment(object.Data)
			if m.Damaged != nil {
				m.Assignment.Slice = m.Slice
			}
		case IsBoot(keys[n]):
			m.Machine, m.Boot = MachineOf(keys[n]), cmp.Or(StatusLine(object.Data), "nothing")
		default:
			// One host that writes nonsense must not blind us to the others; it
			// is as if it had not reported.
			m.Report = &state.HostReport{}
			*m.Report, m.Damaged = store.DecodeReport(object.Data)
		}
	}
	return read, found, nil
}

// SliceOf is the slice that an object is about.
func SliceOf(key string) string {
	if name, ok := strings.CutPrefix(key, store.AssignPrefix); ok {
		return strings.TrimSuffix(name, ".json")
	}
	return path.Dir(strings.TrimPrefix(strings.TrimPrefix(key, store.HostsPrefix), store.BootPrefix))
}

// IsBoot reports whether a key is that of what a machine states until it reports. See
// [store.BootKey].
func IsBoot(key string) bool { return strings.HasPrefix(key, store.BootPrefix) }

// MachineOf is the last part of the key of such an object.
func MachineOf(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }

// maxStatus is how much of a status people are shown, in characters.
const maxStatus = 400

// StatusLine is a status in one line of bounded length: any process of the machine may have
// written it.
func StatusLine(data []byte) string {
	text := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(string(data[:min(len(data), 8*maxStatus)]), "?"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if runes := []rune(text); len(runes) > maxStatus {
		return string(runes[:maxStatus]) + "…"
	}
	return text
}
