package tpu

import (
	"context"

	"google.golang.org/genproto/googleapis/cloud/location"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// locations serves the zones of a project.
type locations struct {
	location.UnimplementedLocationsServer
	names
}

// ListLocations lists the zones of a project.
func (s *locations) ListLocations(_ context.Context, r *location.ListLocationsRequest) (*location.ListLocationsResponse, error) {
	n, ok := parseName(r.GetName())
	if !ok || n.zone != "" {
		return nil, invalid("%q is not a project: want projects/PROJECT.", r.GetName())
	}
	p, err := s.page(int(r.GetPageSize()), r.GetPageToken())
	if err != nil {
		return nil, err
	}
	zones, next := cut(p, s.cloud.Zones(), func(zone string) cloud.Key { return cloud.Key{Zone: zone} })
	response := &location.ListLocationsResponse{NextPageToken: next}
	for _, zone := range zones {
		response.Locations = append(response.Locations, locationOf(n.project, zone))
	}
	return response, nil
}

// GetLocation shows a zone.
func (s *locations) GetLocation(_ context.Context, r *location.GetLocationRequest) (*location.Location, error) {
	n, err := s.parent(r.GetName(), false)
	if err != nil {
		return nil, err
	}
	return locationOf(n.project, n.zone), nil
}

func locationOf(project, zone string) *location.Location {
	return &location.Location{
		Name: name{project: project, zone: zone}.parent(), LocationId: zone,
		Labels: map[string]string{"cloud.googleapis.com/region": cloud.RegionOf(zone)},
	}
}
