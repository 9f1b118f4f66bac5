// Package actors finds actors on Google Cloud where no controller is: by the
// labels of TPU nodes and instances. The creator of a machine labels it
//
//	fray-actor-NAME = PORT       for each actor that it hosts
//	fray-namespace  = NAMESPACE  "default" where there is none
//
// It registers nothing, labels nothing and does not check whether a process listens
// there; clients of package actorrpc find that out. Start with [NewResolver].
package actors

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/actorrpc/resolver"
	"github.com/fray-ml/fray/actorrpc/rpcerror"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp"
	"github.com/fray-ml/fray/schema"
)

// Config configures a [Resolver].
type Config struct {
	Project string
	// Zones are where machines are listed; none: everywhere.
	Zones []string
	// Namespace is the label that machines must have; "": "default".
	Namespace string
	// Fresh is how long a list of the machines is good for, unless a call to one of
	// them failed; 0: 10 s.
	Fresh time.Duration
	// Pace is the shortest time from one list to the next; 0: 1 s. The services
	// limit how often a project may be listed.
	Pace time.Duration
	// Endpoint is one address, "http://HOST:PORT", that stands in for the cloud's
	// services; "": those, with application default credentials.
	Endpoint string
}

// Resolver finds actors by labels. Close it after use.
type Resolver struct {
	config   Config
	machines *gcp.Machines
	turn     chan struct{} // held by who lists

	mu        sync.Mutex
	listedAt  time.Time // when the last list was begun, zero before the first
	known     map[string][]resolver.Endpoint
	bad       map[string]string // of labels without a port, by name
	unlisted  map[string]string // zone: why
	forgotten bool
	last      int
	watching  map[int]func(string)
}

var (
	_ resolver.Resolver = (*Resolver)(nil)
	_ resolver.Lister   = (*Resolver)(nil)
)

// NewResolver finds the credentials, and makes no call.
func NewResolver(ctx context.Context, config Config) (*Resolver, error) {
	if err := checkNamespace(config.Namespace); err != nil {
		return nil, err
	}
	config.Namespace = cmp.Or(config.Namespace, defaultNamespace)
	config.Fresh = cmp.Or(config.Fresh, 10*time.Second)
	config.Pace = cmp.Or(config.Pace, time.Second)
	machines, err := gcp.OpenMachines(ctx, gcp.Config{Project: config.Project, Endpoint: config.Endpoint})
	if err != nil {
		return nil, err
	}
	return &Resolver{
		config: config, machines: machines, turn: make(chan struct{}, 1), watching: map[int]func(string){},
	}, nil
}

// Close ends the connections.
func (r *Resolver) Close() error { return r.machines.Close() }

// Resolve finds the machines that host an actor, the oldest first.
func (r *Resolver) Resolve(ctx context.Context, name string) ([]resolver.Endpoint, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if err := r.refresh(ctx, name); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.known[name]; len(found) > 0 {
		return slices.Clone(found), nil
	}
	return nil, r.missing(name)
}

// missing returns why a name is not known. A zone that could not be listed may have it.
func (r *Resolver) missing(name string) *rpcerror.Error {
	if len(r.unlisted) > 0 {
		var gaps []string
		for _, zone := range slices.Sorted(maps.Keys(r.unlisted)) {
			gaps = append(gaps, zone+" ("+r.unlisted[zone]+")")
		}
		return &rpcerror.Error{
			Code: rpcerror.CodeUnavailable, Actor: name, Message: "it may be where nothing can be listed now: " + strings.Join(gaps, ", "),
		}
	}
	e := rpcerror.UnknownActor(name, slices.Sorted(maps.Keys(r.known)))
	e.Message += "; " + cmp.Or(r.bad[name], "no machine that runs has the labels "+labelPrefix+name+" and "+namespaceLabel+" = "+r.config.Namespace)
	return e
}

// Forget has the next Resolve list anew, at most once in Config.Pace. All names
// are of one list, so it is whichever name's.
func (r *Resolver) Forget(string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgotten = true
}

// Watch reports names that a list finds elsewhere than the one before. Lists are
// made for Resolve and List only.
func (r *Resolver) Watch(changed func(name string)) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	id := r.last
	r.watching[id] = changed
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watching, id)
	}
}

// List finds the endpoints whose names begin with a prefix, by name. Where a part
// of them cannot be listed now, that is an error.
func (r *Resolver) List(ctx context.Context, prefix string) ([]resolver.Endpoint, error) {
	if err := r.refresh(ctx, ""); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.unlisted) > 0 {
		return nil, r.missing("")
	}
	var found []resolver.Endpoint
	for _, name := range slices.Sorted(maps.Keys(r.known)) {
		if strings.HasPrefix(name, prefix) {
			found = append(found, r.known[name]...)
		}
	}
	return found, nil
}

// refresh lists the machines unless what is known is good enough for a name. Of
// many callers one lists.
func (r *Resolver) refresh(ctx context.Context, name string) error {
	if r.isFresh(name) {
		return nil
	}
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-r.turn }()
	if r.isFresh(name) { // another caller has listed
		return nil
	}
	r.mu.Lock()
	r.forgotten = false // from here on, another failure is news
	r.mu.Unlock()
	began := time.Now()
	list, err := r.machines.List(ctx)
	changed, err := r.learn(list, began, err)
	for _, name := range changed {
		r.notify(name)
	}
	return err
}

// learn takes in the answer to a question that began at a time, and returns the
// names that are elsewhere than before.
func (r *Resolver) learn(list gcp.MachineList, began time.Time, err error) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		return nil, r.failed(err, began)
	}
	before, first := r.known, r.listedAt.IsZero()
	r.listedAt = began
	r.read(list)
	if first {
		return nil, nil
	}
	return differing(before, r.known), nil
}

// notify calls the watchers, without a lock: they may call the resolver.
func (r *Resolver) notify(name string) {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.watching))
	r.mu.Unlock()
	for _, changed := range all {
		changed(name)
	}
}

// isFresh reports whether what is known is good enough. A name that is not known,
// or somewhere else now, is listed as often as the pace allows.
func (r *Resolver) isFresh(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	good := r.config.Fresh
	if r.forgotten || name != "" && len(r.known[name]) == 0 || len(r.unlisted) > 0 {
		good = r.config.Pace
	}
	return !r.listedAt.IsZero() && time.Since(r.listedAt) < good
}

// failed is what a list that failed means: nothing, as long as there is one from
// before and the service is what fails.
func (r *Resolver) failed(err error, began time.Time) error {
	code := rpcerror.CodeUnavailable
	if kind := providers.KindOf(err); kind == schema.ErrorPermission || kind == schema.ErrorInvalid {
		code = rpcerror.CodeDenied // which is not tried again
	} else if r.forgotten = true; !r.listedAt.IsZero() {
		r.listedAt = began
		return nil
	}
	return &rpcerror.Error{Code: code, Message: "Google Cloud does not list it: " + err.Error()}
}
