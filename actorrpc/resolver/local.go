package resolver

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fray-ml/fray/actorrpc/rpcerror"
)

// Local finds the names that were set, in this process.
type Local struct {
	mu        sync.Mutex
	endpoints map[string][]Endpoint
	listeners listeners
}

var (
	_ Resolver = (*Local)(nil)
	_ Lister   = (*Local)(nil)
)

// NewLocal makes a resolver that knows names by their addresses:
// host:port, actor://host:port or grpc://host:port. nil: none yet.
func NewLocal(addresses map[string]string) (*Local, error) {
	r := &Local{endpoints: map[string][]Endpoint{}}
	for name, a := range addresses {
		e, err := ParseURL(a)
		if err != nil {
			return nil, err
		}
		if e.Name == "" {
			e.Name = name
		}
		r.endpoints[name] = []Endpoint{e}
	}
	return r, nil
}

// Set records where a name is; with no endpoints it is nowhere.
func (r *Local) Set(name string, endpoints ...Endpoint) {
	list := slices.Clone(endpoints)
	for i := range list {
		if list[i].Name == "" {
			list[i].Name = name
		}
		if list[i].Member == "" {
			list[i].Member = list[i].Address
		}
	}
	r.mu.Lock()
	if len(list) == 0 {
		delete(r.endpoints, name)
	} else {
		r.endpoints[name] = list
	}
	r.mu.Unlock()
	r.listeners.notify(name)
}

// Resolve finds the endpoints of a name.
func (r *Local) Resolve(_ context.Context, name string) ([]Endpoint, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if list := r.endpoints[name]; len(list) > 0 {
		return slices.Clone(list), nil
	}
	return nil, rpcerror.UnknownActorOf(name, rpcerror.Suggest(name, slices.Sorted(maps.Keys(r.endpoints))))
}

// List finds the endpoints whose names begin with a prefix.
func (r *Local) List(_ context.Context, prefix string) ([]Endpoint, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []Endpoint
	for _, name := range slices.Sorted(maps.Keys(r.endpoints)) {
		if strings.HasPrefix(name, prefix) {
			found = append(found, r.endpoints[name]...)
		}
	}
	return found, nil
}

// Forget does nothing: what is known is true.
func (r *Local) Forget(string) {}

// Watch reports every [Local.Set].
func (r *Local) Watch(changed func(name string)) func() { return r.listeners.add(changed) }

// listeners are notified of names. The zero value has none.
type listeners struct {
	mu   sync.Mutex
	last int
	all  map[int]func(string)
}

func (l *listeners) add(f func(string)) (remove func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[int]func(string){}
	}
	l.last++
	id := l.last
	l.all[id] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, id)
	}
}

func (l *listeners) notify(name string) {
	l.mu.Lock()
	all := slices.Collect(maps.Values(l.all))
	l.mu.Unlock()
	for _, f := range all {
		f(name)
	}
}
