package tpu

import (
	"context"
	"errors"
	"fmt"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// Local returns a connection to v2alpha1 of the Cloud TPU API and its operations in this process: calls are
// function calls, and a reply shares its nodes with the server, which never changes a
// message that it has handed out. The caller must not change them either.
func Local(c *cloud.Cloud) grpc.ClientConnInterface {
	s := newService(c)
	l := &local{methods: map[string]localMethod{}, admission: admission(c)}
	tpuapi.RegisterTpuServer(l, s)
	longrunningpb.RegisterOperationsServer(l, s.operations)
	return l
}

// local calls handlers of services directly.
type local struct {
	methods   map[string]localMethod // by "/service/method"
	admission grpc.UnaryServerInterceptor
}

type localMethod struct {
	server any
	handle grpc.MethodHandler
}

var (
	_ grpc.ClientConnInterface = (*local)(nil)
	_ grpc.ServiceRegistrar    = (*local)(nil)
)

// RegisterService takes the methods of a service in.
func (l *local) RegisterService(desc *grpc.ServiceDesc, server any) {
	for _, m := range desc.Methods {
		l.methods["/"+desc.ServiceName+"/"+m.MethodName] = localMethod{server, m.Handler}
	}
}

// Invoke calls a method with a copy of its arguments.
func (l *local) Invoke(ctx context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	m, known := l.methods[method]
	if !known {
		return status.Errorf(codes.Unimplemented, "unknown method %s", method)
	}
	if sent, ok := metadata.FromOutgoingContext(ctx); ok {
		ctx = metadata.NewIncomingContext(ctx, sent)
	}
	request := func(into any) error {
		to, ok := into.(proto.Message)
		from, also := args.(proto.Message)
		if !ok || !also {
			return fmt.Errorf("the arguments of %s are no messages", method)
		}
		proto.Merge(to, from)
		return nil
	}
	response, err := m.handle(m.server, ctx, request, l.admission)
	if err != nil {
		return status.Convert(err).Err()
	}
	from, ok := response.(proto.Message)
	to, also := reply.(proto.Message)
	if !ok || !also {
		return fmt.Errorf("the reply of %s is no message", method)
	}
	share(to.ProtoReflect(), from.ProtoReflect())
	return nil
}

// share makes a message one with the fields of another one.
func share(to, from protoreflect.Message) {
	from.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		to.Set(field, value)
		return true
	})
}

// NewStream is not needed: the services have no streams.
func (l *local) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errors.ErrUnsupported
}
