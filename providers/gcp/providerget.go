package gcp

import (
	"context"
	"fmt"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	gcpengine "github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

// Get reads one slice directly. What has to wait for its turn is an error of kind
// rate that states for how long.
func (p *Provider) Get(ctx context.Context, spec schema.SliceSpec) (schema.SliceStatus, bool, error) {
	status, err := p.get(ctx, spec)
	if err != nil {
		return schema.SliceStatus{}, false, apierror.Wrap("read slice", spec.Name, err)
	}
	if status == nil {
		return schema.SliceStatus{}, false, nil
	}
	return *status, true, nil
}

func (p *Provider) get(ctx context.Context, spec schema.SliceSpec) (*schema.SliceStatus, error) {
	e, err := p.engineFor(spec)
	if err != nil {
		return nil, err
	}
	if wait := p.reads.take(p.config.Now()); wait > 0 {
		return nil, &apierror.Error{
			Kind: schema.ErrorRate, After: wait,
			Err: fmt.Errorf("waiting for its turn: at most %d direct reads a minute", p.config.ReadsPerMinute),
		}
	}
	return e.Get(ctx, spec.Stack, gcpengine.Place{Engine: mark.EngineOf(spec), Zone: spec.Zone, Name: spec.Name})
}
