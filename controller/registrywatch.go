package controller

import (
	"sync"

	"github.com/fray-ml/fray/clusterapi"
)

// maxPending is how many changed endpoints wait for a slow watcher; with more
// it is sent everything anew.
const maxPending = 1024

// watcher is one Watch call. Whoever changes the registry leaves word here and
// goes on; the call's own goroutine sends it.
type watcher struct {
	namespace, name, prefix string // name, or all that begin with prefix
	job                     string // the id of the job with which it ends, ""

	mu      sync.Mutex
	pending map[string]*endpoint // by id as it is now, nil: gone
	reset   bool                 // pending is not all
	failed  error                // ends the call
	wake    chan struct{}        // holds one token while there is something to do
}

func newWatcher(namespace, name, prefix string) *watcher {
	return &watcher{
		namespace: namespace, name: name, prefix: prefix,
		reset: true, pending: map[string]*endpoint{}, wake: make(chan struct{}, 1),
	}
}

// tell leaves word of a change, all of it or none.
func (w *watcher) tell(d delta) {
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
	w.wakeUp()
}

// fail ends the call.
func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = err
	w.wakeUp()
}

func (w *watcher) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// take returns what is to be sent; nil: nothing. all gives everything that is
// known now, and must be consistent with what tell was told.
func (w *watcher) take(all func() []*endpoint) (*clusterapi.WatchResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed != nil {
		return nil, w.failed
	}
	out := &clusterapi.WatchResponse{Reset_: w.reset}
	switch {
	case w.reset:
		for _, e := range all() {
			out.Added = append(out.Added, e.wire)
		}
	case len(w.pending) == 0:
		return nil, nil
	}
	for id, e := range w.pending {
		if e == nil {
			out.Removed = append(out.Removed, id)
		} else {
			out.Added = append(out.Added, e.wire)
		}
	}
	w.reset = false
	clear(w.pending)
	return out, nil
}

// watch adds a watcher to the index, unwatch takes it out.
func (r *registry) watch(w *watcher) {
	s := r.space(w.namespace)
	index, key := s.exact, w.name
	if w.name == "" {
		index, key = s.prefixes, w.prefix
	}
	if index[key] == nil {
		index[key] = map[*watcher]struct{}{}
	}
	index[key][w] = struct{}{}
}

func (r *registry) unwatch(w *watcher) {
	s := r.space(w.namespace)
	index, key := s.exact, w.name
	if w.name == "" {
		index, key = s.prefixes, w.prefix
	}
	delete(index[key], w)
	if len(index[key]) == 0 {
		delete(index, key)
	}
	r.tidy(w.namespace)
}

// publish tells each watcher its part of a change, at once.
func (r *registry) publish(d delta) {
	if d.empty() {
		return
	}
	parts := map[*watcher]delta{}
	for _, e := range d.removed {
		r.in(e.Namespace).seenBy(e.Name, func(w *watcher) {
			part := parts[w]
			part.removed = append(part.removed, e)
			parts[w] = part
		})
	}
	for _, e := range d.added {
		r.in(e.Namespace).seenBy(e.Name, func(w *watcher) {
			part := parts[w]
			part.added = append(part.added, e)
			parts[w] = part
		})
	}
	for w, part := range parts {
		w.tell(part)
	}
}

// seen are the endpoints that a watcher watches.
func (r *registry) seen(w *watcher) []*endpoint {
	s := r.in(w.namespace)
	if w.name != "" {
		return s.byName[w.name]
	}
	return s.list(w.prefix)
}
