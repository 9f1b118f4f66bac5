package tpu

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// GetGuestAttributes shows what the workers set at their own metadata servers, of
// one namespace, of one key of it "NAMESPACE/KEY", or all.
func (s *service) GetGuestAttributes(_ context.Context, r *tpuapi.GetGuestAttributesRequest) (*tpuapi.GetGuestAttributesResponse, error) {
	n, err := s.resource(r.GetName(), "nodes")
	if err != nil {
		return nil, err
	}
	g, ok := s.cloud.Group(n.key(cloud.KindNode))
	if !ok {
		return nil, notFound(r.GetName())
	}
	workers, err := workersOf(g, r.GetWorkerIds())
	if err != nil {
		return nil, err
	}
	response := &tpuapi.GetGuestAttributesResponse{}
	for _, i := range workers {
		response.GuestAttributes = append(response.GuestAttributes, &tpuapi.GuestAttributes{
			QueryPath: r.GetQueryPath(), QueryValue: &tpuapi.GuestAttributesValue{Items: guestAttributeEntries(s.cloud.GuestAttributes(g.Hosts[i].ID), r.GetQueryPath())},
		})
	}
	return response, nil
}

func guestAttributeEntries(all map[cloud.GuestAttributeKey]string, path string) []*tpuapi.GuestAttributesEntry {
	namespace, key, _ := strings.Cut(path, "/")
	var entries []*tpuapi.GuestAttributesEntry
	for k, v := range all {
		if (namespace == "" || namespace == k.Namespace) && (key == "" || key == k.Key) {
			entries = append(entries, &tpuapi.GuestAttributesEntry{Namespace: k.Namespace, Key: k.Key, Value: v})
		}
	}
	slices.SortFunc(entries, func(a, b *tpuapi.GuestAttributesEntry) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetKey(), b.GetKey()))
	})
	return entries
}

// workersOf are the workers of the IDs given, all for none.
func workersOf(g *cloud.Group, ids []string) ([]int, error) {
	var workers []int
	for i := range g.Hosts {
		if len(ids) == 0 {
			workers = append(workers, i)
		}
	}
	for _, id := range ids {
		i, err := strconv.Atoi(id)
		if err != nil || i < 0 || i >= len(g.Hosts) {
			return nil, invalid("Node %q has no worker %q.", g.Name, id)
		}
		workers = append(workers, i)
	}
	return workers, nil
}

// SimulateMaintenanceEvent gives workers a maintenance event.
func (s *service) SimulateMaintenanceEvent(_ context.Context, r *tpuapi.SimulateMaintenanceEventRequest) (*longrunningpb.Operation, error) {
	return s.maintain(r.GetName(), r.GetWorkerIds())
}

// PerformMaintenance has a node's maintenance happen now.
func (s *service) PerformMaintenance(_ context.Context, r *tpuapi.PerformMaintenanceRequest) (*longrunningpb.Operation, error) {
	return s.maintain(r.GetName(), nil)
}

func (s *service) maintain(text string, ids []string) (*longrunningpb.Operation, error) {
	n, err := s.resource(text, "nodes")
	if err != nil {
		return nil, err
	}
	key := n.key(cloud.KindNode)
	g, ok := s.cloud.Group(key)
	if !ok {
		return nil, notFound(text)
	}
	workers, err := workersOf(g, ids)
	if err != nil {
		return nil, err
	}
	if err := s.cloud.Maintain(key, workers...); err != nil {
		return nil, err
	}
	return s.operations.operation(s.cloud.Record(key, "maintain", cloud.NoticeTime, nil))
}
