package tpu

import (
	"context"
	"slices"
	"strconv"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// generation is a TPU generation that the API serves.
type generation struct {
	name     string
	config   tpuapi.AcceleratorConfig_Type
	from, to int // of the sizes, by powers of two
}

func generations() []generation {
	return []generation{
		{"v2", tpuapi.AcceleratorConfig_V2, 8, 512},
		{"v3", tpuapi.AcceleratorConfig_V3, 8, 2048},
		{"v4", tpuapi.AcceleratorConfig_V4, 8, 4096},
		{"v5litepod", tpuapi.AcceleratorConfig_V5LITE_POD, 1, 256},
		{"v5p", tpuapi.AcceleratorConfig_V5P, 8, 4096},
		{"v6e", tpuapi.AcceleratorConfig_V6E, 1, 256},
	}
}

// sizes are the suffixes to try; not each of them exists.
func (g generation) sizes() []string {
	var all []string
	for n := g.from; n <= g.to; n *= 2 {
		all = append(all, strconv.Itoa(n))
	}
	return all
}

// configOf is the accelerator_config of a type, nil if there is none.
func configOf(accelerator string) *tpuapi.AcceleratorConfig {
	shape, err := accelerators.Parse(accelerator)
	if err != nil {
		return nil
	}
	for _, g := range generations() {
		if g.name == shape.Generation {
			return &tpuapi.AcceleratorConfig{Type: g.config, Topology: shape.Topology}
		}
	}
	return nil
}

// accelerators are the types that a zone offers, in the order of their sizes.
func (s *service) accelerators(zone string) []accelerators.Shape {
	offered := s.cloud.Offered(zone)
	var all []accelerators.Shape
	for _, g := range generations() {
		if !slices.Contains(offered, g.name) {
			continue
		}
		for _, size := range g.sizes() {
			if shape, err := accelerators.Parse(g.name + "-" + size); err == nil {
				all = append(all, shape)
			}
		}
	}
	return all
}

// runtimes are the runtime versions that there are.
func (s *service) runtimes() []string {
	published := []string{
		"tpu-ubuntu2204-base", "tpu-vm-base", "tpu-vm-v4-base", "v2-alpha-tpuv5", "v2-alpha-tpuv5-lite", "v2-alpha-tpuv6e",
	}
	return append(published, s.cloud.Runtimes()...)
}

// ListAcceleratorTypes lists what a zone offers, or for "-" what each does.
func (s *service) ListAcceleratorTypes(_ context.Context, r *tpuapi.ListAcceleratorTypesRequest) (*tpuapi.ListAcceleratorTypesResponse, error) {
	parent, p, err := s.list(r)
	if err != nil {
		return nil, err
	}
	if r.GetFilter() != "" || r.GetOrderBy() != "" {
		return nil, invalid("The emulator knows no filter and no order of accelerator types.")
	}
	all := []*tpuapi.AcceleratorType{}
	for _, zone := range s.zones(parent.zone) {
		for _, shape := range s.accelerators(zone) {
			all = append(all, acceleratorType(name{project: parent.project, zone: zone}, shape))
		}
	}
	entries, next := cut(p, sorted(all), keyOf)
	return &tpuapi.ListAcceleratorTypesResponse{
		AcceleratorTypes: entries, NextPageToken: next, Unreachable: p.locations(parent.project),
	}, nil
}

// GetAcceleratorType shows one.
func (s *service) GetAcceleratorType(_ context.Context, r *tpuapi.GetAcceleratorTypeRequest) (*tpuapi.AcceleratorType, error) {
	n, err := s.resource(r.GetName(), "acceleratorTypes")
	if err != nil {
		return nil, err
	}
	for _, shape := range s.accelerators(n.zone) {
		if shape.Type == n.id {
			return acceleratorType(n, shape), nil
		}
	}
	return nil, notFound(r.GetName())
}

func acceleratorType(n name, shape accelerators.Shape) *tpuapi.AcceleratorType {
	return &tpuapi.AcceleratorType{
		Name: n.parent() + "/acceleratorTypes/" + shape.Type, Type: shape.Type,
		AcceleratorConfigs: []*tpuapi.AcceleratorConfig{configOf(shape.Type)},
	}
}

// ListRuntimeVersions lists the runtime versions; every zone has the same.
func (s *service) ListRuntimeVersions(_ context.Context, r *tpuapi.ListRuntimeVersionsRequest) (*tpuapi.ListRuntimeVersionsResponse, error) {
	parent, p, err := s.list(r)
	if err != nil {
		return nil, err
	}
	if r.GetFilter() != "" || r.GetOrderBy() != "" {
		return nil, invalid("The emulator knows no filter and no order of runtime versions.")
	}
	all := []*tpuapi.RuntimeVersion{}
	for _, zone := range s.zones(parent.zone) {
		for _, version := range s.runtimes() {
			all = append(all, runtimeVersion(name{project: parent.project, zone: zone}, version))
		}
	}
	entries, next := cut(p, sorted(all), keyOf)
	return &tpuapi.ListRuntimeVersionsResponse{
		RuntimeVersions: entries, NextPageToken: next, Unreachable: p.locations(parent.project),
	}, nil
}

// GetRuntimeVersion shows one.
func (s *service) GetRuntimeVersion(_ context.Context, r *tpuapi.GetRuntimeVersionRequest) (*tpuapi.RuntimeVersion, error) {
	n, err := s.resource(r.GetName(), "runtimeVersions")
	if err != nil {
		return nil, err
	}
	if !slices.Contains(s.runtimes(), n.id) {
		return nil, notFound(r.GetName())
	}
	return runtimeVersion(n, n.id), nil
}

func runtimeVersion(n name, version string) *tpuapi.RuntimeVersion {
	return &tpuapi.RuntimeVersion{Name: n.parent() + "/runtimeVersions/" + version, Version: version}
}

// ListReservations lists the reserved capacity of the zones as reservations.
func (s *service) ListReservations(_ context.Context, r *tpuapi.ListReservationsRequest) (*tpuapi.ListReservationsResponse, error) {
	parent, p, err := s.list(r)
	if err != nil {
		return nil, err
	}
	all := []*tpuapi.Reservation{}
	for _, c := range s.cloud.Capacity() {
		if !c.Reserved || parent.zone != "-" && parent.zone != c.Zone {
			continue
		}
		all = append(all, &tpuapi.Reservation{
			Name:  name{project: parent.project, zone: c.Zone}.parent() + "/reservations/" + c.Type,
			State: tpuapi.Reservation_ACTIVE,
			Kind: &tpuapi.Reservation_Standard_{Standard: &tpuapi.Reservation_Standard{
				Size: int32(c.Total), CapacityUnits: tpuapi.Reservation_Standard_CHIPS, ResourceType: c.Type,
				Usage: &tpuapi.Reservation_Standard_Usage{Total: int64(c.Used)},
			}},
		})
	}
	entries, next := cut(p, sorted(all), keyOf)
	return &tpuapi.ListReservationsResponse{Reservations: entries, NextPageToken: next}, nil
}

// GenerateServiceIdentity names the service's own account in the project.
func (s *service) GenerateServiceIdentity(
	_ context.Context, r *tpuapi.GenerateServiceIdentityRequest,
) (*tpuapi.GenerateServiceIdentityResponse, error) {
	parent, err := s.parent(r.GetParent(), true)
	if err != nil {
		return nil, err
	}
	email := "service-" + parent.project + "@cloud-tpu.iam.gserviceaccount.com"
	return &tpuapi.GenerateServiceIdentityResponse{Identity: &tpuapi.ServiceIdentity{Email: email}}, nil
}

// zones are those that a parent's zone stands for.
func (s *service) zones(zone string) []string {
	if zone == "-" {
		return s.cloud.Zones()
	}
	return []string{zone}
}
