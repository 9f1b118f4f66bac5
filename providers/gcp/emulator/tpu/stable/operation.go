package stable

import (
	"context"
	"strings"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/emptypb"
)

// operations serves the operations of both versions.
type operations struct {
	longrunningpb.OperationsServer
	file protoreflect.FileDescriptor
}

// Operations adds the operations of v2 to a server of those of v2alpha1.
func (a API) Operations(alpha longrunningpb.OperationsServer) longrunningpb.OperationsServer {
	return &operations{OperationsServer: alpha, file: a.file}
}

// GetOperation shows an operation in the version of the call that it came of.
func (s *operations) GetOperation(ctx context.Context, r *longrunningpb.GetOperationRequest) (*longrunningpb.Operation, error) {
	name, ok := strings.CutSuffix(r.GetName(), operationSuffix)
	shown, err := s.OperationsServer.GetOperation(ctx, &longrunningpb.GetOperationRequest{Name: name})
	if err != nil || !ok {
		return shown, err
	}
	return translate(s.file, shown)
}

// CancelOperation asks an operation to stop.
func (s *operations) CancelOperation(ctx context.Context, r *longrunningpb.CancelOperationRequest) (*emptypb.Empty, error) {
	return s.OperationsServer.CancelOperation(ctx, &longrunningpb.CancelOperationRequest{Name: strings.TrimSuffix(r.GetName(), operationSuffix)})
}

// DeleteOperation forgets an operation.
func (s *operations) DeleteOperation(ctx context.Context, r *longrunningpb.DeleteOperationRequest) (*emptypb.Empty, error) {
	return s.OperationsServer.DeleteOperation(ctx, &longrunningpb.DeleteOperationRequest{Name: strings.TrimSuffix(r.GetName(), operationSuffix)})
}
