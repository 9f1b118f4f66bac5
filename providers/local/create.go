package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/fray-ml/fray/schema"
)

// Create makes a slice and starts its agents, or starts those that are missing.
func (p *Provider) Create(ctx context.Context, spec schema.SliceSpec) error {
	return classified("create slice", spec.Name, p.create(ctx, spec))
}

func (p *Provider) create(ctx context.Context, spec schema.SliceSpec) error {
	if err := checkSpec(spec); err != nil {
		return err
	}
	held, err := p.lock(ctx, spec.Name)
	if err != nil {
		return err
	}
	defer held.release()
	s := p.slice(spec.Name)
	r, err := s.read()
	if err != nil {
		return err
	}
	switch {
	case r == nil:
		if r, err = p.make(held, spec); err != nil {
			return err
		}
	case r.Spec.Stack != spec.Stack:
		return failf(schema.ErrorConflict, "another stack has a slice of this name")
	case r.deleting():
		return failf(schema.ErrorUnavailable, "the slice of this name is still being deleted")
	case r.Spec != spec:
		return failf(schema.ErrorConflict, "the slice is there and was made otherwise; delete it first")
	}
	return p.startAgents(r)
}

// make records a slice. What a crash leaves before the record is swept by the
// next inventory; from the record on the slice is there.
func (p *Provider) make(held *hold, spec schema.SliceSpec) (*record, error) {
	s := p.slice(spec.Name)
	if err := os.MkdirAll(s.hostsDir(), 0o700); err != nil {
		return nil, fmt.Errorf("make slice: %w", err)
	}
	addresses, err := p.claimAddresses(spec)
	if err != nil {
		return nil, err
	}
	gpus, err := p.claimGPUs(spec)
	if err != nil {
		return nil, err
	}
	if err := held.still(); err != nil {
		return nil, err
	}
	r := &record{Spec: spec, Addresses: addresses, GPUs: gpus, CreatedAt: time.Now()}
	return r, s.write(r)
}

// startAgents starts the agents that do not live, some at a time.
func (p *Provider) startAgents(r *record) error {
	if err := sealDescriptors(); err != nil {
		return err
	}
	errs := make([]error, r.Spec.Hosts)
	places := make(chan struct{}, 8)
	var group sync.WaitGroup
	for n := range r.Spec.Hosts {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			errs[n] = p.startAgent(r, n, false)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
