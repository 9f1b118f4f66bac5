package status

import (
	"context"
	"slices"
	"strings"

	"github.com/fray-ml/fray/configuration"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// focusRatio is how many slices a stack has for each of the jobs that are asked for before only these
// are listed: each takes three lists, and the whole stack one for every thousand objects and a read of each.
const focusRatio = 16

// Read sees the stack once, without who leads it.
func Read(ctx context.Context, l *configuration.Loaded) (*View, error) {
	w, err := NewObserver(ctx, l)
	if err != nil {
		return nil, err
	}
	w.leader = nil
	return w.Observe(ctx)
}

// ReadJobs sees some jobs of a stack once, without who leads it: of a large stack only their slices
// are read, and what the view has of others is as it is recorded. Without addresses it sees the whole stack.
func ReadJobs(ctx context.Context, l *configuration.Loaded, addrs []schema.Address) (*View, error) {
	w, err := NewObserver(ctx, l)
	if err != nil {
		return nil, err
	}
	w.leader = nil
	w.focus(addrs)
	return w.Observe(ctx)
}

// focus has the observer read what is of some jobs, if those are few of many.
func (w *Observer) focus(addrs []schema.Address) {
	doc := w.l.Document
	if names := slicesOf(doc, addrs); len(names) > 0 && len(names)*focusRatio <= len(doc.Slices) {
		w.observer.Store = focusedStore{w.observer.Store, names}
	}
}

// slicesOf are the slices that jobs have, or that were made for them, and those whose hosts they share.
func slicesOf(doc *state.Document, addrs []schema.Address) []string {
	found := map[string]bool{}
	for addr, j := range doc.Jobs {
		if !slices.ContainsFunc(addrs, func(a schema.Address) bool { return a.Contains(addr) }) {
			continue
		}
		for _, name := range slices.Concat(j.Slices, j.Staged) {
			found[name] = true
		}
		if last := j.Last(); last != nil {
			for _, name := range last.Slices {
				found[name] = true
			}
		}
	}
	for name, s := range doc.Slices {
		if found[name] || slices.ContainsFunc(addrs, func(a schema.Address) bool { return a.Contains(s.Spec.Owner) }) {
			found[name] = true
			if s.Spec.On != "" {
				found[s.Spec.On] = true
			}
		}
	}
	names := make([]string, 0, len(found))
	for name := range found {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// focusedStore lists of the mailbox only what is of some slices.
type focusedStore struct {
	store.Store
	slices []string
}

// Unwrap returns the whole store.
func (f focusedStore) Unwrap() store.Store { return f.Store }

// List implements [store.Store].
func (f focusedStore) List(ctx context.Context, prefixes ...string) ([]store.Attrs, error) {
	var narrow []string
	for _, prefix := range prefixes {
		of := map[string]func(string) string{store.AssignPrefix: store.AssignKey, store.BootPrefix: store.BootOf, store.HostsPrefix: store.HostsOf}[prefix]
		if of == nil {
			return f.Store.List(ctx, prefixes...)
		}
		for _, name := range f.slices {
			narrow = append(narrow, of(name))
		}
	}
	var all []store.Attrs
	for _, prefix := range narrow { // one by one: a bucket lists all that is between two prefixes
		listed, err := f.Store.List(ctx, prefix)
		if err != nil {
			return nil, err
		}
		all = append(all, listed...)
	}
	slices.SortFunc(all, func(a, b store.Attrs) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}
