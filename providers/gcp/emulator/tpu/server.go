package tpu

import (
	"context"
	"path"
	"strings"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/genproto/googleapis/cloud/location"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/emulator/listfault"
	"github.com/fray-ml/fray/providers/gcp/emulator/tpu/stable"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// service serves the nodes, queued resources and catalogs of the Cloud TPU API
// v2alpha1.
type service struct {
	tpuapi.UnimplementedTpuServer
	names
	operations *operations
	shown      shown

	nodes    *listfault.Injector[*tpuapi.Node]
	requests *listfault.Injector[*tpuapi.QueuedResource]
}

var (
	_ tpuapi.TpuServer               = (*service)(nil)
	_ longrunningpb.OperationsServer = (*operations)(nil)
	_ location.LocationsServer       = (*locations)(nil)
)

// New makes a server of the Cloud TPU API, of v2alpha1 and v2, with operations and locations as the
// service has them on the same endpoint.
func New(c *cloud.Cloud) *grpc.Server {
	s := newService(c)
	server := grpc.NewServer(grpc.UnaryInterceptor(admission(c)))
	tpuapi.RegisterTpuServer(server, s)
	v2, err := stable.New(tpuapi.File_providers_gcp_tpuapi_tpu_proto)
	if err != nil {
		panic(err) // the table of differences does not fit the API that this program was built with
	}
	v2.Register(server, s)
	longrunningpb.RegisterOperationsServer(server, v2.Operations(s.operations))
	location.RegisterLocationsServer(server, &locations{names: s.names})
	return server
}

// newService makes the service of a cloud and its operations.
func newService(c *cloud.Cloud) *service {
	in := names{cloud: c}
	return &service{
		names: in, operations: &operations{names: in, seen: map[string]string{}},
		nodes:    &listfault.Injector[*tpuapi.Node]{Of: "nodes", Cloud: c, Zone: zoneOf[*tpuapi.Node], Copied: copiedNode},
		requests: &listfault.Injector[*tpuapi.QueuedResource]{Of: "queuedResources", Cloud: c, Zone: zoneOf[*tpuapi.QueuedResource], Copied: copiedQueued},
	}
}

func zoneOf[T named](v T) string { return keyOf(v).Zone }

func copiedNode(n *tpuapi.Node) *tpuapi.Node {
	copied := proto.CloneOf(n)
	copied.Name = path.Dir(n.GetName()) + "/" + listfault.CopyName(path.Base(n.GetName()))
	return copied
}

func copiedQueued(q *tpuapi.QueuedResource) *tpuapi.QueuedResource {
	copied := proto.CloneOf(q)
	copied.Name = path.Dir(q.GetName()) + "/" + listfault.CopyName(path.Base(q.GetName()))
	return copied
}

// admission has the model admit every call before it is carried out.
func admission(c *cloud.Cloud) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		method := info.FullMethod[strings.LastIndexByte(info.FullMethod, '/')+1:]
		n, _ := parseName(target(request))
		lost, err := c.Admit(ctx, cloud.Call{
			API: "tpu.googleapis.com", Title: "Cloud TPU API", Method: method, Permission: permissionOf(method),
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
