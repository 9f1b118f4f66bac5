package bucket

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/fray-ml/fray/state/store"
)

// listsAtOnce is how many parts of a list are asked for at a time.
const listsAtOnce = 16

// divisions are where long lists are divided, as the last ones of the same prefixes were.
type divisions struct {
	page  int // the most objects that a request returns
	mu    sync.Mutex
	marks map[string][]string // the keys with which parts but the first begin, by the prefixes
}

// list is what begins with one of the prefixes, of parts that each lists from one key up to
// another. Where the last list of the same was long, its parts are asked for at the same time: a page
// of a list can only be asked for once the one before is there.
func (d *divisions) list(ctx context.Context, prefixes []string, part func(ctx context.Context, prefixes []string, from, to string) ([]store.Attrs, error)) ([]store.Attrs, error) {
	prefixes, err := store.DisjointPrefixes(prefixes)
	if err != nil || len(prefixes) == 0 {
		return nil, err
	}
	marks := append(d.of(prefixes), "")
	found := make([][]store.Attrs, len(marks))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(listsAtOnce)
	for n, to := range marks {
		from := ""
		if n > 0 {
			from = marks[n-1]
		}
		group.Go(func() (err error) {
			found[n], err = part(ctx, prefixes, from, to)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := slices.Concat(found...)
	d.note(prefixes, all)
	return all, nil
}

// of is where a list of prefixes is divided; empty: nowhere.
func (d *divisions) of(prefixes []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.marks[named(prefixes)])
}

// note takes note of what a list of prefixes has returned.
func (d *divisions) note(prefixes []string, found []store.Attrs) {
	var marks []string
	if len(found) > d.page {
		part := d.page * 9 / 10 // so that it is one request although some are added
		for n := part; n < len(found); n += part {
			marks = append(marks, found[n].Key)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(marks) == 0 {
		delete(d.marks, named(prefixes))
		return
	}
	if d.marks == nil {
		d.marks = map[string][]string{}
	}
	d.marks[named(prefixes)] = marks
}

// named are prefixes as one text; keys have no spaces.
func named(prefixes []string) string { return strings.Join(prefixes, " ") }
