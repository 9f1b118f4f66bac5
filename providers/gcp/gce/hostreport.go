package gce

import (
	"context"
	"fmt"
	"net/http"

	"github.com/fray-ml/fray/providers/gcp/apierror"
	"github.com/fray-ml/fray/providers/gcp/computeapi"
	"github.com/fray-ml/fray/providers/gcp/engine"
)

// HostReports reads the guest attributes of the one machine of a slice, or of those
// of its group: these have no numbers before they have reported.
func (g *Engine) HostReports(ctx context.Context, at engine.Place, _ []int) ([]engine.HostReport, error) {
	_, alone, err := g.findInstance(ctx, at.Zone, at.Name)
	if err != nil {
		return nil, err
	}
	if alone {
		return g.hostReport(ctx, at, at.Name, engine.HostReport{})
	}
	template, found, err := g.findTemplate(ctx, at.Name)
	if err != nil || !found {
		return nil, err
	}
	group, found, err := g.findGroup(ctx, at.Zone, at.Name)
	if err != nil || !found || ownGroup(group, at.Name) != nil {
		return nil, err
	}
	machines, err := g.managedMachines(ctx, &machineGroup{template: template, group: group}, at)
	if err != nil {
		return nil, err
	}
	var reports []engine.HostReport
	for _, m := range machines[:min(len(machines), engine.MostHostReports)] {
		more, err := g.hostReport(ctx, at, m.Name, engine.HostReport{Machine: m.Name})
		if err != nil {
			return reports, err
		}
		reports = append(reports, more...)
	}
	return reports, nil
}

// hostReport is that of one machine, which from names, none where it has not written it yet.
func (g *api) hostReport(ctx context.Context, at engine.Place, machine string, from engine.HostReport) ([]engine.HostReport, error) {
	bounded, cancel := context.WithTimeout(ctx, engine.CallLimit)
	defer cancel()
	path := instancePath(at.Zone, machine, "getGuestAttributes")
	found, err := computeapi.Get[computeapi.GuestAttributes](bounded, g.client, path, computeapi.Query{"queryPath": engine.HostStatusAttribute})
	if apierror.StatusOf(err) == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get guest attributes: %w", apierror.Interrupted(ctx, err))
	}
	var reports []engine.HostReport
	for _, entry := range found.QueryValue.Items {
		from.Status = entry.Value
		reports = append(reports, from)
	}
	return reports, nil
}
