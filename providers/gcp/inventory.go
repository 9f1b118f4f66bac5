package gcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	gcpengine "github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// Inventory lists the slices of all zones in one pass over the project.
func (p *Provider) Inventory(ctx context.Context, stack string) (schema.Inventory, error) {
	inventory, err := p.inventory(ctx, stack)
	return inventory, apierror.Wrap("list slices", "", err)
}

func (p *Provider) inventory(ctx context.Context, stack string) (schema.Inventory, error) {
	parts, err := p.list(ctx, stack)
	if err != nil {
		return schema.Inventory{}, err
	}
	var inventory schema.Inventory
	var found []listedSlice
	for name, each := range parts {
		inventory.Skipped = append(inventory.Skipped, each.Skipped...)
		inventory.Foreign += len(each.Others)
		if len(each.Unlisted) > 0 && inventory.Unlisted == nil {
			inventory.Unlisted = map[string]string{}
		}
		maps.Copy(inventory.Unlisted, each.Unlisted)
		found = slices.Grow(found, len(each.Slices))
		for _, status := range each.Slices {
			found = append(found, listedSlice{status, name})
		}
	}
	slices.SortFunc(found, func(a, b listedSlice) int {
		return cmp.Or(strings.Compare(a.status.Spec.Name, b.status.Spec.Name), strings.Compare(a.status.Spec.Zone, b.status.Spec.Zone))
	})
	at := make([]gcpengine.Place, len(found))
	inventory.Slices = make([]schema.SliceStatus, len(found))
	for i, each := range found {
		inventory.Slices[i] = *each.status
		at[i] = gcpengine.Place{Engine: each.by, Zone: each.status.Spec.Zone, Name: each.status.Spec.Name}
	}
	slices.SortFunc(inventory.Skipped, func(a, b schema.SkippedItem) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Zone, b.Zone))
	})
	p.known.replace(at)
	p.pending.observe(inventory.Slices, p.config.Now(), func(spec schema.SliceSpec) bool {
		_, blind := inventory.Unlisted[spec.Zone]
		return !blind && (stack == "" || stack == spec.Stack)
	})
	return inventory, nil
}

// listedSlice is a slice, and the engine that lists it.
type listedSlice struct {
	status *schema.SliceStatus
	by     schema.Engine
}

// list asks every engine; a part that is missing is an error of the whole.
func (p *Provider) list(ctx context.Context, stack string) (map[schema.Engine]gcpengine.Listing, error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	parts, errs := map[schema.Engine]gcpengine.Listing{}, []error{}
	for name, each := range p.engines {
		group.Go(func() {
			listed, err := each.List(ctx, stack)
			mu.Lock()
			defer mu.Unlock()
			parts[name] = listed
			if err != nil {
				errs = append(errs, fmt.Errorf("engine %s: %w", name, err))
			}
		})
	}
	group.Wait()
	return parts, errors.Join(errs...)
}

// places is where slices were seen last. It saves looking, and decides nothing.
type places struct {
	mu     sync.Mutex
	listed []gcpengine.Place // by the last list, sorted by name
	since  map[string][]gcpengine.Place
}

// replace forgets all places but these, which are sorted by name.
func (k *places) replace(listed []gcpengine.Place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.listed, k.since = listed, nil
}

func (k *places) add(at gcpengine.Place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.since == nil {
		k.since = map[string][]gcpengine.Place{}
	}
	if !slices.Contains(k.inLast(at.Name), at) && !slices.Contains(k.since[at.Name], at) {
		k.since[at.Name] = append(k.since[at.Name], at)
	}
}

func (k *places) of(name string) []gcpengine.Place {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Concat(k.inLast(name), k.since[name])
}

// inLast are the places of a slice in the last list.
func (k *places) inLast(name string) []gcpengine.Place {
	first, _ := slices.BinarySearchFunc(k.listed, name, func(at gcpengine.Place, name string) int { return strings.Compare(at.Name, name) })
	end := first
	for end < len(k.listed) && k.listed[end].Name == name {
		end++
	}
	return k.listed[first:end]
}

// placesOf are the places of a slice: the one where its spec states that it is, whatever
// lists show, and those where it was listed last.
func (p *Provider) placesOf(ctx context.Context, spec schema.SliceSpec) ([]gcpengine.Place, error) {
	if spec.Zone == "" {
		return p.find(ctx, spec.Stack, spec.Name)
	}
	at := p.known.of(spec.Name)
	if stated := (gcpengine.Place{Engine: mark.EngineOf(spec), Zone: spec.Zone, Name: spec.Name}); !slices.Contains(at, stated) {
		at = append(at, stated)
	}
	return at, nil
}

// find is where a slice may be of which no zone is known; nowhere if it is provably not there.
func (p *Provider) find(ctx context.Context, stack, name string) ([]gcpengine.Place, error) {
	if at := p.known.of(name); len(at) > 0 {
		return at, nil
	}
	parts, err := p.list(ctx, stack)
	if err != nil {
		return nil, fmt.Errorf("list it: %w", err)
	}
	var at []gcpengine.Place
	blind := map[string]string{}
	for engine, each := range parts {
		maps.Copy(blind, each.Unlisted)
		for i := range each.Slices {
			if each.Slices[i].Spec.Name == name {
				at = append(at, gcpengine.Place{Engine: engine, Zone: each.Slices[i].Spec.Zone, Name: name})
			}
		}
		for _, other := range each.Others {
			if other.Name == name && !slices.Contains(at, other) {
				at = append(at, other) // to be rejected
			}
		}
	}
	if len(at) == 0 && len(blind) > 0 {
		zones := slices.Sorted(maps.Keys(blind))
		return nil, apierror.Errorf(schema.ErrorUnavailable, "it may be in %s, which cannot be listed now: %s", strings.Join(zones, ", "), blind[zones[0]])
	}
	return at, nil
}
