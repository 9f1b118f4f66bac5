package gcp

import (
	"context"
	"fmt"

	"github.com/fray-ml/fray/providers"
	"github.com/fray-ml/fray/providers/gcp/apierror"
	gcpengine "github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/schema"
)

var _ providers.HostReader = (*Provider)(nil)

// HostReports are the guest attributes fray/status of a slice's machines, which their
// startup script and agent write. They take from the same budget as other direct reads.
func (p *Provider) HostReports(ctx context.Context, spec schema.SliceSpec, hosts []int) ([]providers.HostReport, error) {
	found, err := p.hostReports(ctx, spec, hosts)
	var reports []providers.HostReport
	for _, r := range found {
		reports = append(reports, providers.HostReport(r))
	}
	return reports, apierror.Wrap("read reports of hosts", spec.Name, err)
}

func (p *Provider) hostReports(ctx context.Context, spec schema.SliceSpec, hosts []int) ([]gcpengine.HostReport, error) {
	e, err := p.engineFor(spec)
	if err != nil {
		return nil, err
	}
	if wait := p.reads.take(p.config.Now()); wait > 0 {
		return nil, &apierror.Error{Kind: schema.ErrorRate, After: wait, Err: fmt.Errorf("waiting for its turn")}
	}
	return e.HostReports(ctx, gcpengine.Place{Engine: mark.EngineOf(spec), Zone: spec.Zone, Name: spec.Name}, hosts)
}
