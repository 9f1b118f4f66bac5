package scale

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/schema"
)

// provider has slices in memory; they are there as soon as they are asked for.
type provider struct {
	mu      sync.Mutex
	slices  map[string]schema.SliceStatus
	listed  []schema.SliceStatus // nil: something changed
	created int
	made    func(schema.SliceSpec) error // nil: nothing follows
}

// pace is for how long a list is good, as with Google Cloud.
const pace = 5 * time.Second

// Pace is for how long a list is good.
func (*provider) Pace() time.Duration { return pace }

// Inventory lists all slices.
func (p *provider) Inventory(context.Context, string) (schema.Inventory, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listed == nil {
		p.listed = slices.SortedFunc(maps.Values(p.slices), func(a, b schema.SliceStatus) int { // as clouds do
			return strings.Compare(a.Spec.Name, b.Spec.Name)
		})
	}
	return schema.Inventory{Slices: p.listed}, nil
}

// Get reads one slice.
func (p *provider) Get(_ context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, there := p.slices[spec.Name]
	return s, there, nil
}

// Create makes a slice; one that is there stays as it is.
func (p *provider) Create(_ context.Context, spec schema.SliceSpec) error {
	p.mu.Lock()
	_, there := p.slices[spec.Name]
	if !there {
		p.slices[spec.Name] = schema.SliceStatus{Spec: spec, Phase: schema.SliceReady}
		p.listed = nil
		p.created++
	}
	p.mu.Unlock()
	if p.made != nil && !there {
		return p.made(spec)
	}
	return nil
}

// Delete ends a slice.
func (p *provider) Delete(_ context.Context, spec schema.SliceSpec) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.slices, spec.Name)
	p.listed = nil
	return nil
}

// preempt takes all slices away, and counts creations from now on.
func (p *provider) preempt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.slices)
	p.listed, p.created = nil, 0
}
