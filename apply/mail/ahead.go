package mail

import (
	"context"
	"strings"

	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// Ahead is what a controller has read before it leads: assignments, each in the version that was
// there. It also has the store know how to divide its next list.
type Ahead struct {
	store store.Store
	known map[string]version // by key
}

type version struct {
	Item
	object state.Generation
}

// NewAhead returns an Ahead that has read nothing yet.
func NewAhead(s store.Store) *Ahead { return &Ahead{store: s} }

// Read reads the assignments that have changed since it was called last.
func (a *Ahead) Read(ctx context.Context) error {
	listed, err := List(ctx, a.store)
	if err != nil {
		return err
	}
	known := map[string]version{}
	var fresh []string
	for _, o := range listed {
		if was, is := a.known[o.Key]; is && was.object == o.Generation {
			known[o.Key] = was
		} else if strings.HasPrefix(o.Key, store.AssignPrefix) {
			fresh = append(fresh, o.Key)
		}
	}
	read, objects, err := Read(ctx, a.store, fresh)
	if err != nil {
		return err
	}
	for i, key := range fresh {
		if read[i].Absent == "" {
			known[key] = version{read[i], objects[i]}
		}
	}
	a.known = known
	return nil
}

// Take is what was read of an object in the version that is listed. A nil Ahead has nothing.
func (a *Ahead) Take(listed store.Attrs) (Item, bool) {
	if a == nil {
		return Item{}, false
	}
	was, known := a.known[listed.Key]
	return was.Item, known && was.object == listed.Generation
}
