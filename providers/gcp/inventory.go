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

	"github.com/fray-ml/fray/schema"
)

// listing is one engine's part of an inventory.
type listing struct {
	slices   []schema.SliceStatus // of the stack, with Spec.Zone set; in any order
	unlisted map[string]string    // zone: why
	skipped  []schema.SkippedItem // with the mark of the stack, and no slices of it
	others   []place              // what else there is; it is counted, and never touched
}

// Inventory lists the slices of all zones in one pass over the project.
func (p *Provider) Inventory(ctx context.Context, stack string) (schema.Inventory, error) {
	inventory, err := p.inventory(ctx, stack)
	return inventory, classified("list slices", "", err)
}

func (p *Provider) inventory(ctx context.Context, stack string) (schema.Inventory, error) {
	parts, err := p.list(ctx, stack)
	if err != nil {
		return schema.Inventory{}, err
	}
	var inventory schema.Inventory
	listed, at := map[string]schema.SlicePhase{}, map[string][]place{}
	for name, each := range parts {
		inventory.Slices = append(inventory.Slices, each.slices...)
		inventory.Skipped = append(inventory.Skipped, each.skipped...)
		inventory.Foreign += len(each.others)
		if len(each.unlisted) > 0 && inventory.Unlisted == nil {
			inventory.Unlisted = map[string]string{}
		}
		maps.Copy(inventory.Unlisted, each.unlisted)
		for i := range each.slices {
			spec := &each.slices[i].Spec
			listed[spec.Name] = each.slices[i].Phase
			at[spec.Name] = append(at[spec.Name], place{engine: name, zone: spec.Zone, name: spec.Name})
		}
	}
	slices.SortFunc(inventory.Slices, func(a, b schema.SliceStatus) int {
		return cmp.Or(strings.Compare(a.Spec.Name, b.Spec.Name), strings.Compare(a.Spec.Zone, b.Spec.Zone))
	})
	slices.SortFunc(inventory.Skipped, func(a, b schema.SkippedItem) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Zone, b.Zone))
	})
	p.known.replace(at)
	p.pending.observe(listed, p.config.Now(), func(spec schema.SliceSpec) bool {
		_, blind := inventory.Unlisted[spec.Zone]
		return !blind && (stack == "" || stack == spec.Stack)
	})
	return inventory, nil
}

// list asks every engine; a part that is missing is an error of the whole.
func (p *Provider) list(ctx context.Context, stack string) (map[schema.Engine]listing, error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	parts, errs := map[schema.Engine]listing{}, []error{}
	for name, each := range p.engines {
		group.Go(func() {
			listed, err := each.list(ctx, stack)
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
	byName map[string][]place
}

func (k *places) replace(byName map[string][]place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byName = byName
}

func (k *places) add(at place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byName == nil {
		k.byName = map[string][]place{}
	}
	if !slices.Contains(k.byName[at.name], at) {
		k.byName[at.name] = append(k.byName[at.name], at)
	}
}

func (k *places) of(name string) []place {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.byName[name])
}

// placesOf are the places of a slice: the one where its spec says that it is, whatever
// lists show, and those where it was listed last.
func (p *Provider) placesOf(ctx context.Context, spec schema.SliceSpec) ([]place, error) {
	if spec.Zone == "" {
		return p.find(ctx, spec.Stack, spec.Name)
	}
	at := p.known.of(spec.Name)
	if stated := (place{engine: engineOf(spec), zone: spec.Zone, name: spec.Name}); !slices.Contains(at, stated) {
		at = append(at, stated)
	}
	return at, nil
}

// find is where a slice may be of which no zone is known; nowhere if it is provably not there.
func (p *Provider) find(ctx context.Context, stack, name string) ([]place, error) {
	if at := p.known.of(name); len(at) > 0 {
		return at, nil
	}
	parts, err := p.list(ctx, stack)
	if err != nil {
		return nil, fmt.Errorf("look for it: %w", err)
	}
	var at []place
	blind := map[string]string{}
	for engine, each := range parts {
		maps.Copy(blind, each.unlisted)
		for i := range each.slices {
			if each.slices[i].Spec.Name == name {
				at = append(at, place{engine: engine, zone: each.slices[i].Spec.Zone, name: name})
			}
		}
		for _, other := range each.others {
			if other.name == name && !slices.Contains(at, other) {
				at = append(at, other) // to be refused
			}
		}
	}
	if len(at) == 0 && len(blind) > 0 {
		zones := slices.Sorted(maps.Keys(blind))
		return nil, failf(schema.ErrorUnavailable, "it may be in %s, which cannot be listed now: %s", strings.Join(zones, ", "), blind[zones[0]])
	}
	return at, nil
}
