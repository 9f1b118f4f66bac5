package gcp

import (
	"context"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/check"
	"github.com/fray-ml/fray/providers/gcp/tpu"
	"github.com/fray-ml/fray/schema"
)

var _ providers.Checker = (*Provider)(nil)

// Check finds what cannot work in the project, in few calls that change nothing.
func (p *Provider) Check(ctx context.Context, desired schema.Desired) []providers.Problem {
	config := check.Config{Project: p.config.Project, Bucket: p.config.Bucket, Endpoint: p.config.Endpoint}
	if t, ok := p.engines[schema.EngineTPU].(*tpu.Engine); ok {
		config.TPU = t.API
	}
	return check.Problems(ctx, config, desired)
}
