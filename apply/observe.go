package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// Observer looks the world up: every provider's inventory and the mailbox. It
// remembers objects by generation, so that a look at the mailbox is one list
// and the changed objects, and when each host's report last changed, by its
// own clock. What it remembers is a cache: a new Observer sees the same world.
type Observer struct {
	Store     store.Store
	Providers map[schema.ProviderName]providers.Provider
	Now       func() time.Time // nil: time.Now
	// Patience is how long a look waits for a provider that was listed before; 0:
	// until it is. After it the last list stands, until the next one is whole.
	Patience time.Duration

	listers     map[schema.ProviderName]*lister
	assignments map[string]cached[plan.Assigned]
	hosts       map[string]cached[store.HostReport]
	changed     map[string]bool // see Changed
	changing    map[string]bool // what becomes it when a look succeeds

	// attended is the time that this observer has been looking: what passed
	// between two looks counts up to maxGap, so that a process that was
	// suspended does not wake up to hosts that all seem silent.
	attended time.Duration
	looked   time.Time // last
}

// maxGap is the most that the time between two looks counts for silence.
const maxGap = 5 * time.Second

type cached[T any] struct {
	generation store.Generation
	value      T
	since      time.Duration // of attended, when it was first seen
}

// Observe returns the world of one stack. A provider that cannot be asked is
// reported as unreachable; a mailbox that cannot be read is an error, since
// without it nothing may be concluded.
func (o *Observer) Observe(ctx context.Context, stack string) (*plan.Observed, error) {
	obs := &plan.Observed{
		Inventories: map[schema.ProviderName]schema.Inventory{},
		Unreachable: map[schema.ProviderName]string{},
		Assignments: map[string]plan.Assigned{},
		Hosts:       map[string][]plan.Host{},
	}
	now, attended := o.now(), o.attended
	if !o.looked.IsZero() {
		o.attended += min(now.Sub(o.looked), maxGap)
	}
	o.looked = now
	// Inventories first: a slice created between the two looks is then seen
	// by neither or only by its mailbox, never as one without hosts.
	o.inventories(ctx, stack, obs)
	if o.changing == nil {
		o.changing = map[string]bool{}
	}
	if err := o.mailbox(ctx, obs); err != nil {
		o.attended = attended // where nothing can be read, hosts may not be able to write
		return nil, fmt.Errorf("look into the mailbox: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o.changed, o.changing = o.changing, nil
	return obs, nil
}

// Changed are the slices whose assignment, or a report of whose hosts, was
// written or removed between the last Observe that succeeded and the one
// before it; after the first one, all that have any. It does not tell what
// changed by time passing, such as a host's silence, nor what providers said.
func (o *Observer) Changed() map[string]bool { return o.changed }

func (o *Observer) inventories(ctx context.Context, stack string, obs *plan.Observed) {
	if o.listers == nil {
		o.listers = map[schema.ProviderName]*lister{}
	}
	for name, p := range o.Providers {
		if o.listers[name] == nil {
			o.listers[name] = &lister{provider: p}
		}
		o.listers[name].begin(ctx, stack, o.now())
	}
	patience := newPatience(o.Patience)
	defer patience.stop()
	for name := range o.Providers {
		l := o.listers[name]
		l.await(ctx, patience)
		switch {
		case l.err != nil:
			obs.Unreachable[name] = l.err.Error()
		case l.running != nil && o.now().Sub(l.begun) > staleAfter:
			obs.Unreachable[name] = fmt.Sprintf("it has not answered for %s", o.now().Sub(l.begun).Truncate(time.Second))
		default:
			obs.Inventories[name] = l.inventory
		}
	}
}

// mailbox makes one list and reads what changed, however many hosts there are.
func (o *Observer) mailbox(ctx context.Context, obs *plan.Observed) error {
	listed, err := o.Store.List(ctx, store.AssignPrefix, store.HostsPrefix)
	if err != nil {
		return err
	}
	hosts, _ := slices.BinarySearchFunc(listed, store.HostsPrefix, func(a store.Attrs, key string) int {
		return strings.Compare(a.Key, key)
	})
	if o.assignments, err = refresh(ctx, o, listed[:hosts], o.assignments); err != nil {
		return fmt.Errorf("read assignments: %w", err)
	}
	if o.hosts, err = refresh(ctx, o, listed[hosts:], o.hosts); err != nil {
		return fmt.Errorf("read host reports: %w", err)
	}
	for key, c := range o.assignments {
		c.value.Object = c.generation
		obs.Assignments[sliceOf(key)] = c.value
	}
	for _, c := range o.hosts {
		r := c.value
		obs.Hosts[r.Slice] = append(obs.Hosts[r.Slice], plan.Host{HostReport: r, Silent: o.attended - c.since})
	}
	for _, hosts := range obs.Hosts {
		slices.SortFunc(hosts, func(a, b plan.Host) int { return a.Host - b.Host })
	}
	return nil
}

// sliceOf is the slice that an object of the mailbox is about.
func sliceOf(key string) string {
	if name, ok := strings.CutPrefix(key, store.AssignPrefix); ok {
		return strings.TrimSuffix(name, ".json")
	}
	return path.Dir(strings.TrimPrefix(key, store.HostsPrefix))
}

// refresh reads those of the listed objects that changed since the last time,
// and notes whose they are. On an error, old is returned.
func refresh[T any](ctx context.Context, o *Observer, listed []store.Attrs, old map[string]cached[T]) (map[string]cached[T], error) {
	read := make(map[string]cached[T], len(listed))
	var changed []string
	for _, a := range listed {
		if c, ok := old[a.Key]; ok && c.generation == a.Generation {
			read[a.Key] = c
		} else {
			changed = append(changed, a.Key)
		}
	}
	objects, err := getAll(ctx, o.Store, changed)
	if err != nil {
		return old, err
	}
	for _, obj := range objects {
		c := cached[T]{generation: obj.Generation, since: o.attended}
		if err := json.Unmarshal(obj.Data, &c.value); err != nil {
			return old, fmt.Errorf("%s holds no valid JSON: %w", obj.Key, err)
		}
		read[obj.Key] = c
	}
	for _, key := range changed {
		o.changing[sliceOf(key)] = true
	}
	for key := range old {
		if _, left := read[key]; !left {
			o.changing[sliceOf(key)] = true
		}
	}
	return read, nil
}

// parallelReads is how many objects are read at a time.
const parallelReads = 16

// getAll reads objects, without those that are there no more.
func getAll(ctx context.Context, s store.Store, keys []string) ([]store.Object, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	objects := make([]store.Object, len(keys))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(parallelReads, len(keys)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(keys) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				obj, err := s.Get(ctx, keys[i])
				if err == nil {
					objects[i] = obj
				} else if !errors.Is(err, store.ErrNotFound) {
					cancel(err) // keeps the first
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return slices.DeleteFunc(objects, func(obj store.Object) bool { return obj.Key == "" }), nil
}

func (o *Observer) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}
