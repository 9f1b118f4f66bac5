package emulator

import (
	"context"
	"strings"
	"sync"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/genproto/googleapis/cloud/location"
	"google.golang.org/grpc"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

const tpuService = "tpu.googleapis.com"

// tpu serves the Cloud TPU API v2alpha1, with operations and locations as the
// service has them on the same endpoint.
type tpu struct {
	tpuapi.UnimplementedTpuServer
	longrunningpb.UnimplementedOperationsServer
	location.UnimplementedLocationsServer
	cloud *cloud.Cloud
	shown shown

	nodes    *misreader[*tpuapi.Node]
	requests *misreader[*tpuapi.QueuedResource]

	mu   sync.Mutex
	seen map[string]string // operation by method, parent and request_id
}

var (
	_ tpuapi.TpuServer               = (*tpu)(nil)
	_ longrunningpb.OperationsServer = (*tpu)(nil)
	_ location.LocationsServer       = (*tpu)(nil)
)

func newTPU(c *cloud.Cloud) *grpc.Server {
	s := &tpu{cloud: c, seen: map[string]string{}}
	s.nodes = &misreader[*tpuapi.Node]{
		of: "nodes", cloud: c, zone: func(n *tpuapi.Node) string { return zoneNamed(n.GetName()) }, copied: copiedNode,
	}
	s.requests = &misreader[*tpuapi.QueuedResource]{
		of: "queuedResources", cloud: c, zone: func(q *tpuapi.QueuedResource) string { return zoneNamed(q.GetName()) }, copied: copiedQueued,
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(s.admit))
	tpuapi.RegisterTpuServer(server, s)
	longrunningpb.RegisterOperationsServer(server, s)
	location.RegisterLocationsServer(server, s)
	return server
}

// admit has every call pass the model's gate first.
func (s *tpu) admit(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]
	n, _ := parseName(target(request))
	lost, err := s.cloud.Admit(ctx, cloud.Call{
		API: tpuService, Title: "Cloud TPU API", Method: method, Permission: permissionOf(method),
		Project: n.project, Zone: n.zone, Resource: target(request),
		Creates: method == "CreateNode" || method == "CreateQueuedResource",
	})
	if err != nil {
		return nil, statusOf(err)
	}
	response, err := handle(ctx, request)
	if err != nil {
		return nil, statusOf(err)
	}
	if lost {
		return nil, statusOf(cloud.Lost())
	}
	return response, nil
}

// target is the resource or parent that a request is about.
func target(request any) string {
	switch r := request.(type) {
	case interface{ GetParent() string }:
		return r.GetParent()
	case interface{ GetName() string }:
		return r.GetName()
	case interface{ GetNode() *tpuapi.Node }:
		return r.GetNode().GetName()
	}
	return ""
}

// permissionOf is the IAM permission that a method needs.
func permissionOf(method string) string {
	verb, noun := "", ""
	for _, v := range []string{"List", "Get", "Create", "Delete", "Stop", "Start", "Update", "Reset", "Cancel"} {
		if rest, ok := strings.CutPrefix(method, v); ok {
			verb, noun = strings.ToLower(v), rest
			break
		}
	}
	switch {
	case method == "GetGuestAttributes":
		return "tpu.nodes.getGuestAttributes"
	case method == "SimulateMaintenanceEvent":
		return "tpu.nodes.simulateMaintenanceEvent"
	case strings.HasPrefix(method, "PerformMaintenance"):
		return "tpu.nodes.performMaintenance"
	case method == "GenerateServiceIdentity":
		return "serviceusage.services.use"
	}
	noun = strings.ToLower(strings.TrimSuffix(noun, "s"))
	return "tpu." + noun + "s." + verb
}
