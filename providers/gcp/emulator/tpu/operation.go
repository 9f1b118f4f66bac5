package tpu

import (
	"context"
	"sync"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/genproto/googleapis/cloud/common"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// operations serves the operations of the model, and makes one for each call that
// changes something.
type operations struct {
	longrunningpb.UnimplementedOperationsServer
	names

	mu   sync.Mutex
	seen map[string]string // operation by method, parent and request_id
}

// GetOperation shows an operation. It never blocks.
func (s *operations) GetOperation(_ context.Context, r *longrunningpb.GetOperationRequest) (*longrunningpb.Operation, error) {
	op, err := s.find(r.GetName())
	if err != nil {
		return nil, err
	}
	return s.operation(op)
}

// ListOperations lists the operations of a zone.
func (s *operations) ListOperations(_ context.Context, r *longrunningpb.ListOperationsRequest) (*longrunningpb.ListOperationsResponse, error) {
	n, err := s.parent(r.GetName(), true)
	if err != nil {
		return nil, err
	}
	p, err := s.page(int(r.GetPageSize()), r.GetPageToken())
	if err != nil {
		return nil, err
	}
	response := &longrunningpb.ListOperationsResponse{}
	var all []*longrunningpb.Operation
	for _, op := range s.cloud.Operations(n.project, wildcard(n.zone)) {
		if op.Kind != cloud.KindNode && op.Kind != cloud.KindQueued {
			continue
		}
		shown, err := s.operation(op)
		if err != nil {
			return nil, err
		}
		all = append(all, shown)
	}
	response.Operations, response.NextPageToken = cut(p, sorted(all), keyOf)
	return response, nil
}

// CancelOperation asks an operation to stop.
func (s *operations) CancelOperation(_ context.Context, r *longrunningpb.CancelOperationRequest) (*emptypb.Empty, error) {
	op, err := s.find(r.GetName())
	if err != nil {
		return nil, err
	}
	if err := s.cloud.CancelOperation(op.Name); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

// DeleteOperation forgets an operation.
func (s *operations) DeleteOperation(_ context.Context, r *longrunningpb.DeleteOperationRequest) (*emptypb.Empty, error) {
	op, err := s.find(r.GetName())
	if err != nil {
		return nil, err
	}
	if err := s.cloud.DeleteOperation(op.Name); err != nil {
		return nil, err
	}
	return &emptypb.Empty{}, nil
}

func (s *operations) find(text string) (cloud.Operation, error) {
	n, err := s.resource(text, "operations")
	if err != nil {
		return cloud.Operation{}, err
	}
	op, ok := s.cloud.Operation(n.id)
	if !ok || op.Project != n.project || op.Zone != n.zone {
		return cloud.Operation{}, notFound(text)
	}
	return op, nil
}

// once carries out a call unless one with the same request_id was before, whose
// operation it then answers with.
func (s *operations) once(method, parent, request string, act func() (cloud.Operation, error)) (*longrunningpb.Operation, error) {
	if request == "" {
		return s.carryOut(act)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := method + " " + parent + " " + request
	if op, ok := s.cloud.Operation(s.seen[key]); ok {
		return s.operation(op)
	}
	op, err := act()
	if err != nil {
		return nil, err
	}
	s.seen[key] = op.Name
	return s.operation(op)
}

func (s *operations) carryOut(act func() (cloud.Operation, error)) (*longrunningpb.Operation, error) {
	op, err := act()
	if err != nil {
		return nil, err
	}
	return s.operation(op)
}

// operation is an operation of the model as the API shows it.
func (s *operations) operation(op cloud.Operation) (*longrunningpb.Operation, error) {
	n := name{project: op.Project, zone: op.Zone}
	metadata := &common.OperationMetadata{
		CreateTime: timestamppb.New(op.Created), Verb: op.Verb, ApiVersion: "v2alpha1", CancelRequested: op.CancelRequested,
		Target: n.parent() + "/" + collectionOf(op.Kind) + "/" + op.Target,
	}
	shown := &longrunningpb.Operation{Name: n.parent() + "/operations/" + op.Name, Done: op.Done()}
	if op.Done() {
		metadata.EndTime = timestamppb.New(op.Ended)
	}
	var err error
	if shown.Metadata, err = anypb.New(metadata); err != nil {
		return nil, err
	}
	switch {
	case op.Err != nil:
		shown.Result = &longrunningpb.Operation_Error{
			Error: &rpcstatus.Status{Code: int32(codeOf(op.Err.Reason)), Message: op.Err.Message},
		}
	case op.Done():
		response, err := anypb.New(s.result(op))
		if err != nil {
			return nil, err
		}
		shown.Result = &longrunningpb.Operation_Response{Response: response}
	}
	return shown, nil
}

// result is what an operation that ended well answers: the node or the queued
// resource, after the deletion of a node Empty. A created node shows no health.
func (s *operations) result(op cloud.Operation) proto.Message {
	switch {
	case op.Group != nil:
		node := nodeOf(op.Group)
		node.Health = tpuapi.Node_HEALTH_UNSPECIFIED
		return node
	case op.Request != nil:
		return queuedOf(op.Request)
	case op.Kind == cloud.KindQueued: // which v2 answers with Empty
		return &tpuapi.QueuedResource{Name: name{project: op.Project, zone: op.Zone}.parent() + "/queuedResources/" + op.Target}
	}
	return &emptypb.Empty{}
}

func collectionOf(kind cloud.Kind) string {
	if kind == cloud.KindQueued {
		return "queuedResources"
	}
	return "nodes"
}
