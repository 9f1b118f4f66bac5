package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// Observer looks the world up: every provider's inventory and the mailbox. It
// remembers objects by generation, so that only changed ones are read again,
// and when each host's report last changed, by its own clock. What it
// remembers is a cache: a new Observer sees the same world.
type Observer struct {
	Store     store.Store
	Providers map[schema.ProviderName]providers.Provider
	Now       func() time.Time // nil: time.Now

	assignments map[string]cached[plan.Assigned]
	hosts       map[string]cached[store.HostReport]

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
	now := o.now()
	if !o.looked.IsZero() {
		o.attended += min(now.Sub(o.looked), maxGap)
	}
	o.looked = now
	// Inventories first: a slice created between the two looks is then seen
	// by neither or only by its mailbox, never as one without hosts.
	o.inventories(ctx, stack, obs)
	if err := o.readAssignments(ctx, obs); err != nil {
		return nil, fmt.Errorf("read assignments: %w", err)
	}
	if err := o.readHosts(ctx, obs); err != nil {
		return nil, fmt.Errorf("read host reports: %w", err)
	}
	return obs, ctx.Err()
}

func (o *Observer) inventories(ctx context.Context, stack string, obs *plan.Observed) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for name, p := range o.Providers {
		wg.Go(func() {
			inv, err := p.Inventory(ctx, stack)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				obs.Unreachable[name] = err.Error()
				return
			}
			obs.Inventories[name] = inv
		})
	}
	wg.Wait()
}

func (o *Observer) readAssignments(ctx context.Context, obs *plan.Observed) error {
	read, err := refresh(ctx, o, store.AssignPrefix, o.assignments)
	if err != nil {
		return err
	}
	o.assignments = read
	for key, c := range read {
		name := strings.TrimSuffix(strings.TrimPrefix(key, store.AssignPrefix), ".json")
		c.value.Object = c.generation
		obs.Assignments[name] = c.value
	}
	return nil
}

func (o *Observer) readHosts(ctx context.Context, obs *plan.Observed) error {
	read, err := refresh(ctx, o, store.HostsPrefix, o.hosts)
	if err != nil {
		return err
	}
	o.hosts = read
	for _, c := range read {
		r := c.value
		obs.Hosts[r.Slice] = append(obs.Hosts[r.Slice], plan.Host{HostReport: r, Silent: o.attended - c.since})
	}
	for _, hosts := range obs.Hosts {
		slices.SortFunc(hosts, func(a, b plan.Host) int { return a.Host - b.Host })
	}
	return nil
}

// refresh lists a prefix and reads what changed since the last time.
func refresh[T any](ctx context.Context, o *Observer, prefix string, old map[string]cached[T]) (map[string]cached[T], error) {
	listed, err := o.Store.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	read := make(map[string]cached[T], len(listed))
	for _, a := range listed {
		if c, ok := old[a.Key]; ok && c.generation == a.Generation {
			read[a.Key] = c
			continue
		}
		obj, err := o.Store.Get(ctx, a.Key)
		if errors.Is(err, store.ErrNotFound) {
			continue // deleted since the list
		}
		if err != nil {
			return nil, err
		}
		c := cached[T]{generation: obj.Generation, since: o.attended}
		if err := json.Unmarshal(obj.Data, &c.value); err != nil {
			return nil, fmt.Errorf("%s holds no valid JSON: %w", a.Key, err)
		}
		read[a.Key] = c
	}
	return read, nil
}

func (o *Observer) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}
