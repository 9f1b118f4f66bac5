package gcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/mark"
	"github.com/fray-ml/fray/providers/gcp/tpu"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
	"github.com/fray-ml/fray/schema"
)

// tpuService is a TPU API in which nothing happens by itself: the test says
// what becomes of nodes and operations.
type tpuService struct {
	tpuapi.UnimplementedTpuServer
	longrunningpb.UnimplementedOperationsServer
	address string

	mu          sync.Mutex
	nodes       map[string]*tpuapi.Node           // by full name
	queued      map[string]*tpuapi.QueuedResource // by full name
	operations  map[string]*longrunningpb.Operation
	byID        map[string]string // operations by the request's id
	unreachable map[string][]string
	perPage     int
	calls       []string        // methods, in order
	requests    []proto.Message // that changed something
	observe     func(ctx context.Context, method string)
	reject      func(method string) error // instead of carrying the call out
	lose        func(method string) error // instead of the answer
}

func newTPUService(t testing.TB) *tpuService {
	t.Helper()
	s := &tpuService{
		nodes: map[string]*tpuapi.Node{}, queued: map[string]*tpuapi.QueuedResource{},
		operations: map[string]*longrunningpb.Operation{}, byID: map[string]string{},
		unreachable: map[string][]string{}, perPage: 1000,
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(s.intercept))
	tpuapi.RegisterTpuServer(server, s)
	longrunningpb.RegisterOperationsServer(server, s)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil && !errors.Is(err, grpc.ErrServerStopped) { // it may end before it has begun
			t.Error(err)
		}
	})
	s.address = "http://" + listener.Addr().String()
	return s
}

func (s *tpuService) intercept(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	method := path.Base(info.FullMethod)
	s.calls = append(s.calls, method)
	if s.observe != nil {
		s.observe(ctx, method)
	}
	if s.reject != nil {
		if err := s.reject(method); err != nil {
			return nil, err
		}
	}
	answer, err := handle(ctx, request)
	if err == nil && s.lose != nil {
		err = s.lose(method)
	}
	if message, ok := answer.(proto.Message); ok && err == nil {
		return proto.Clone(message), nil // it is sent after the lock is gone
	}
	return nil, err
}

// count counts calls of a method.
func (s *tpuService) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, each := range s.calls {
		if each == method {
			n++
		}
	}
	return n
}

// do changes the world.
func (s *tpuService) do(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

const (
	testProject = "acme"
	testZone    = "us-west4-a"
)

func fullName(zone, kind, name string) string {
	return fmt.Sprintf("projects/%s/locations/%s/%s/%s", testProject, zone, kind, name)
}

func (s *tpuService) node(name string) *tpuapi.Node {
	return s.nodes[fullName(testZone, "nodes", name)]
}

func (s *tpuService) queue(name string) *tpuapi.QueuedResource {
	return s.queued[fullName(testZone, "queuedResources", name)]
}

func (s *tpuService) setNode(name string, n *tpuapi.Node) {
	n.Name = fullName(testZone, "nodes", name)
	s.nodes[n.Name] = n
}

func (s *tpuService) setQueued(name string, q *tpuapi.QueuedResource) {
	q.Name = fullName(testZone, "queuedResources", name)
	s.queued[q.Name] = q
}

// end ends every open operation, with an error or without.
func (s *tpuService) end(err error) {
	s.do(func() {
		for _, each := range s.operations {
			if each.GetDone() {
				continue
			}
			each.Done = true
			if err != nil {
				each.Result = &longrunningpb.Operation_Error{Error: status.Convert(err).Proto()}
			} else {
				each.Result = &longrunningpb.Operation_Response{}
			}
		}
	})
}

func (s *tpuService) operation(id, parent string) *longrunningpb.Operation {
	o := &longrunningpb.Operation{Name: parent + "/operations/" + strconv.Itoa(len(s.operations))}
	s.operations[o.GetName()] = o
	if id != "" {
		s.byID[id] = o.GetName()
	}
	return o
}

func (s *tpuService) CreateNode(_ context.Context, r *tpuapi.CreateNodeRequest) (*longrunningpb.Operation, error) {
	if o := s.operations[s.byID[r.GetRequestId()]]; o != nil {
		return o, nil
	}
	name := r.GetParent() + "/nodes/" + r.GetNodeId()
	if s.nodes[name] != nil {
		return nil, status.Errorf(codes.AlreadyExists, "Resource '%s' already exists", name)
	}
	s.requests = append(s.requests, proto.Clone(r))
	n := proto.CloneOf(r.GetNode())
	n.Name, n.State, n.CreateTime = name, tpuapi.Node_CREATING, timestamppb.Now()
	s.nodes[name] = n
	return s.operation(r.GetRequestId(), r.GetParent()), nil
}

func (s *tpuService) CreateQueuedResource(_ context.Context, r *tpuapi.CreateQueuedResourceRequest) (*longrunningpb.Operation, error) {
	if o := s.operations[s.byID[r.GetRequestId()]]; o != nil {
		return o, nil
	}
	name := r.GetParent() + "/queuedResources/" + r.GetQueuedResourceId()
	if s.queued[name] != nil {
		return nil, status.Errorf(codes.AlreadyExists, "Resource '%s' already exists", name)
	}
	s.requests = append(s.requests, proto.Clone(r))
	q := proto.CloneOf(r.GetQueuedResource())
	q.Name, q.CreateTime = name, timestamppb.Now()
	q.State = &tpuapi.QueuedResourceState{State: tpuapi.QueuedResourceState_WAITING_FOR_RESOURCES}
	s.queued[name] = q
	return s.operation(r.GetRequestId(), r.GetParent()), nil
}

func (s *tpuService) GetNode(_ context.Context, r *tpuapi.GetNodeRequest) (*tpuapi.Node, error) {
	if n := s.nodes[r.GetName()]; n != nil {
		return n, nil
	}
	return nil, status.Errorf(codes.NotFound, "Resource '%s' was not found", r.GetName())
}

func (s *tpuService) GetQueuedResource(_ context.Context, r *tpuapi.GetQueuedResourceRequest) (*tpuapi.QueuedResource, error) {
	if q := s.queued[r.GetName()]; q != nil {
		return q, nil
	}
	return nil, status.Errorf(codes.NotFound, "Resource '%s' was not found", r.GetName())
}

func (s *tpuService) DeleteNode(_ context.Context, r *tpuapi.DeleteNodeRequest) (*longrunningpb.Operation, error) {
	n := s.nodes[r.GetName()]
	if n == nil {
		return nil, status.Errorf(codes.NotFound, "Resource '%s' was not found", r.GetName())
	}
	s.requests = append(s.requests, proto.Clone(r))
	n.State = tpuapi.Node_DELETING
	return s.operation("", path.Dir(path.Dir(r.GetName()))), nil
}

func (s *tpuService) DeleteQueuedResource(_ context.Context, r *tpuapi.DeleteQueuedResourceRequest) (*longrunningpb.Operation, error) {
	q := s.queued[r.GetName()]
	if q == nil {
		return nil, status.Errorf(codes.NotFound, "Resource '%s' was not found", r.GetName())
	}
	n := s.node(path.Base(r.GetName()))
	if n != nil && !r.GetForce() {
		return nil, status.Error(codes.FailedPrecondition, "the queued resource has nodes")
	}
	s.requests = append(s.requests, proto.Clone(r))
	q.State = &tpuapi.QueuedResourceState{State: tpuapi.QueuedResourceState_DELETING}
	if n != nil {
		n.State = tpuapi.Node_DELETING
	}
	return s.operation("", path.Dir(path.Dir(r.GetName()))), nil
}

func (s *tpuService) UpdateNode(_ context.Context, r *tpuapi.UpdateNodeRequest) (*longrunningpb.Operation, error) {
	n := s.nodes[r.GetNode().GetName()]
	if n == nil {
		return nil, status.Errorf(codes.NotFound, "Resource '%s' was not found", r.GetNode().GetName())
	}
	s.requests = append(s.requests, proto.Clone(r))
	for _, each := range r.GetUpdateMask().GetPaths() {
		switch each {
		case "labels":
			n.Labels = r.GetNode().GetLabels()
		case "metadata":
			n.Metadata = r.GetNode().GetMetadata()
		case "tags":
			n.Tags = r.GetNode().GetTags()
		case "network_config.enable_external_ips":
			n.NetworkConfig.EnableExternalIps = r.GetNode().GetNetworkConfig().GetEnableExternalIps()
		default:
			return nil, status.Errorf(codes.InvalidArgument, "%s cannot be updated", each)
		}
	}
	return s.operation("", path.Dir(path.Dir(n.GetName()))), nil
}

func (s *tpuService) GetOperation(_ context.Context, r *longrunningpb.GetOperationRequest) (*longrunningpb.Operation, error) {
	if o := s.operations[r.GetName()]; o != nil {
		return o, nil
	}
	return nil, status.Errorf(codes.NotFound, "Operation '%s' was not found", r.GetName())
}

// page cuts what is listed, in the order of names, at a token that is a number.
func page[T any](s *tpuService, all map[string]T, token string, size int32) (part []T, next string) {
	from, _ := strconv.Atoi(token)
	names := slices.Sorted(maps.Keys(all))
	to := min(from+min(int(size), s.perPage), len(names))
	for _, name := range names[from:to] {
		part = append(part, all[name])
	}
	if to < len(names) {
		next = strconv.Itoa(to)
	}
	return part, next
}

func (s *tpuService) ListNodes(_ context.Context, r *tpuapi.ListNodesRequest) (*tpuapi.ListNodesResponse, error) {
	nodes, next := page(s, s.nodes, r.GetPageToken(), r.GetPageSize())
	return &tpuapi.ListNodesResponse{Nodes: nodes, NextPageToken: next, Unreachable: s.unreachable["nodes"]}, nil
}

func (s *tpuService) ListQueuedResources(_ context.Context, r *tpuapi.ListQueuedResourcesRequest) (*tpuapi.ListQueuedResourcesResponse, error) {
	queued, next := page(s, s.queued, r.GetPageToken(), r.GetPageSize())
	return &tpuapi.ListQueuedResourcesResponse{QueuedResources: queued, NextPageToken: next, Unreachable: s.unreachable["queued"]}, nil
}

// provider is one with the engine tpu only, on the service.
func (s *tpuService) provider(t testing.TB, change ...func(*Config)) *Provider {
	t.Helper()
	config := Config{Project: testProject, Endpoint: s.address, Backoff: time.Millisecond}
	for _, each := range change {
		each(&config)
	}
	p := newProvider(config)
	e, err := tpu.New(t.Context(), p.config.engine())
	if err != nil {
		t.Fatal(err)
	}
	p.engines[schema.EngineTPU] = e
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// tpuSpec is a preemptible slice of one node; change makes it another.
func tpuSpec(name string, change ...func(*schema.SliceSpec)) schema.SliceSpec {
	spec := schema.SliceSpec{
		Name: name, Stack: "stack-a", Owner: schema.Address{Kind: schema.KindJob, Name: "j"}, Provider: schema.ProviderGCP,
		TPU: "v5litepod-16", Zone: testZone, Preemptible: true, Hosts: 4, Cloud: schema.CloudSpec{Engine: schema.EngineTPU},
	}
	for _, each := range change {
		each(&spec)
	}
	return spec
}

func queuedSpec(spec *schema.SliceSpec) { spec.Cloud.Provisioning = schema.ProvisioningQueued }

func onDemand(spec *schema.SliceSpec) { spec.Preemptible = false }

// nodeOf is a node as it was made for a spec.
func nodeOf(t testing.TB, spec schema.SliceSpec) *tpuapi.Node {
	t.Helper()
	text, err := mark.Encode(spec)
	if err != nil {
		t.Fatal(err)
	}
	shape, err := accelerators.Parse(spec.TPU)
	if err != nil {
		t.Fatal(err)
	}
	cloud := spec.Cloud
	n := &tpuapi.Node{
		Name: fullName(spec.Zone, "nodes", spec.Name), State: tpuapi.Node_READY, CreateTime: timestamppb.Now(),
		AcceleratorType: shape.Type, RuntimeVersion: cmp.Or(cloud.RuntimeVersion, "v2-alpha-tpuv5-lite"),
		NetworkConfig:  &tpuapi.NetworkConfig{Network: cloud.Network, Subnetwork: cloud.Subnetwork, EnableExternalIps: !cloud.Live.InternalIPs},
		ServiceAccount: &tpuapi.ServiceAccount{Email: cloud.ServiceAccount},
		Labels:         mark.Labels(spec), Metadata: map[string]string{mark.SpecKey: text}, Tags: mark.SplitList(cloud.Live.Tags),
	}
	if cloud.Provisioning != schema.ProvisioningQueued && spec.Preemptible {
		n.SchedulingConfig = &tpuapi.SchedulingConfig{Spot: true}
	}
	return n
}

// queuedOf is a queued resource as it was made for a spec.
func queuedOf(t testing.TB, spec schema.SliceSpec) *tpuapi.QueuedResource {
	t.Helper()
	parent := "projects/" + testProject + "/locations/" + spec.Zone
	q := &tpuapi.QueuedResource{
		Name: fullName(spec.Zone, "queuedResources", spec.Name), CreateTime: timestamppb.Now(),
		State: &tpuapi.QueuedResourceState{State: tpuapi.QueuedResourceState_ACTIVE},
		Resource: &tpuapi.QueuedResource_Tpu_{Tpu: &tpuapi.QueuedResource_Tpu{
			NodeSpec: []*tpuapi.QueuedResource_Tpu_NodeSpec{{Parent: parent, NodeId: spec.Name, Node: nodeOf(t, spec)}},
		}},
		Tier: &tpuapi.QueuedResource_Guaranteed_{Guaranteed: &tpuapi.QueuedResource_Guaranteed{}},
	}
	if spec.Preemptible {
		q.Tier = &tpuapi.QueuedResource_Spot_{Spot: &tpuapi.QueuedResource_Spot{}}
	}
	return q
}
