package registry

import (
	"sync"

	"github.com/fray-ml/fray/clusterapi"
)

// maxPending is how many changed endpoints wait for a slow watcher; with more
// it is sent everything anew.
const maxPending = 1024

// Watcher is one Watch call. A change of the registry is noted here and never waits
// for a slow client: the call's own goroutine sends it.
type Watcher struct {
	Namespace, name, prefix string // name, or all that begin with prefix
	Job                     string // the id of the job with which it ends, ""

	mu      sync.Mutex
	pending map[string]*Endpoint // by id as it is now, nil: gone
	reset   bool                 // pending is not all
	failed  error                // ends the call
	Wake    chan struct{}        // holds one token while there is something to do
}

// NewWatcher watches a name, or all names that begin with a prefix.
func NewWatcher(namespace, name, prefix, job string) *Watcher {
	return &Watcher{
		Namespace: namespace, name: name, prefix: prefix, Job: job,
		reset: true, pending: map[string]*Endpoint{}, Wake: make(chan struct{}, 1),
	}
}

// notify notes a change, all of it or none.
func (w *Watcher) notify(d Delta) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reset {
		for _, e := range d.removed {
			w.pending[e.ID] = nil
		}
		for _, e := range d.added {
			w.pending[e.ID] = e
		}
		if len(w.pending) > maxPending {
			w.reset = true
			clear(w.pending)
		}
	}
	w.WakeUp()
}

// Fail ends the call.
func (w *Watcher) Fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = err
	w.WakeUp()
}

// WakeUp has the call send what there is.
func (w *Watcher) WakeUp() {
	select {
	case w.Wake <- struct{}{}:
	default:
	}
}

// Take returns what is to be sent; nil: nothing. all returns all endpoints that are
// known now, and must be consistent with the changes that were noted.
func (w *Watcher) Take(all func() []*Endpoint) (*clusterapi.WatchResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return nil, w.failed
	}
	out := &clusterapi.WatchResponse{Reset_: w.reset}
	switch {
	case w.reset:
		for _, e := range all() {
			out.Added = append(out.Added, e.Wire)
		}
	case len(w.pending) == 0:
		return nil, nil
	}
	for id, e := range w.pending {
		if e == nil {
			out.Removed = append(out.Removed, id)
		} else {
			out.Added = append(out.Added, e.Wire)
		}
	}
	w.reset = false
	clear(w.pending)
	return out, nil
}

// Watch adds a watcher to the index, unwatch takes it out.
func (r *Registry) Watch(w *Watcher) {
	s := r.space(w.Namespace)
	index, key := s.exact, w.name
	if w.name == "" {
		index, key = s.prefixes, w.prefix
	}
	if index[key] == nil {
		index[key] = map[*Watcher]struct{}{}
	}
	index[key][w] = struct{}{}
}

// Unwatch takes a watcher out of the index.
func (r *Registry) Unwatch(w *Watcher) {
	s := r.space(w.Namespace)
	index, key := s.exact, w.name
	if w.name == "" {
		index, key = s.prefixes, w.prefix
	}
	delete(index[key], w)
	if len(index[key]) == 0 {
		delete(index, key)
	}
	r.tidy(w.Namespace)
}

// Publish notifies each watcher of its part of a change, at once.
func (r *Registry) Publish(d Delta) {
	if d.Empty() {
		return
	}
	parts := map[*Watcher]Delta{}
	for _, e := range d.removed {
		r.in(e.Namespace).seenBy(e.Name, func(w *Watcher) {
			part := parts[w]
			part.removed = append(part.removed, e)
			parts[w] = part
		})
	}
	for _, e := range d.added {
		r.in(e.Namespace).seenBy(e.Name, func(w *Watcher) {
			part := parts[w]
			part.added = append(part.added, e)
			parts[w] = part
		})
	}
	for w, part := range parts {
		w.notify(part)
	}
}

// Seen are the endpoints that a watcher watches.
func (r *Registry) Seen(w *Watcher) []*Endpoint {
	s := r.in(w.Namespace)
	if w.name != "" {
		return s.byName[w.name]
	}
	return s.list(w.prefix)
}
