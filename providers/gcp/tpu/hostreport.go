package tpu

import (
	"context"
	"strconv"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fray-ml/fray/providers/gcp/engine"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// HostReports reads the guest attributes of a node's workers, one call for each: the answer
// for several does not state which worker an attribute is of.
func (t *Engine) HostReports(ctx context.Context, at engine.Place, hosts []int) ([]engine.HostReport, error) {
	var reports []engine.HostReport
	name := t.nodeName(at)
	for _, host := range hosts[:min(len(hosts), engine.MostHostReports)] {
		found, err := invoke(ctx, call{"get guest attributes", "name", name}, t.API.GetGuestAttributes, &tpuapi.GetGuestAttributesRequest{
			Name: name, QueryPath: engine.HostStatusAttribute, WorkerIds: []string{strconv.Itoa(host)},
		})
		switch status.Code(err) {
		case codes.OK:
		case codes.NotFound, codes.InvalidArgument, codes.FailedPrecondition:
			continue // the worker is not there yet
		default:
			return reports, err
		}
		for _, each := range found.GetGuestAttributes() {
			for _, entry := range each.GetQueryValue().GetItems() {
				reports = append(reports, engine.HostReport{Host: host, Status: entry.GetValue()})
			}
		}
	}
	return reports, nil
}
