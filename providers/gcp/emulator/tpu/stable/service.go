package stable

import (
	"context"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"google.golang.org/genproto/googleapis/cloud/common"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/fray-ml/fray/providers/gcp/tpuapi"
)

// operationSuffix ends the names of the operations of v2; to clients these names
// are opaque.
const operationSuffix = "-v2"

// API is the Cloud TPU API v2.
type API struct{ file protoreflect.FileDescriptor }

// New derives v2 from the descriptor of v2alpha1.
func New(alpha protoreflect.FileDescriptor) (API, error) {
	file, err := describe(alpha)
	return API{file}, err
}

// Register serves v2 by a server of v2alpha1.
func (a API) Register(registrar grpc.ServiceRegistrar, server tpuapi.TpuServer) {
	service := a.file.Services().Get(0)
	desc := grpc.ServiceDesc{ServiceName: string(service.FullName()), HandlerType: (*tpuapi.TpuServer)(nil), Metadata: a.file.Path()}
	for _, alpha := range tpuapi.Tpu_ServiceDesc.Methods {
		if method := service.Methods().ByName(protoreflect.Name(alpha.MethodName)); method != nil {
			desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: alpha.MethodName, Handler: handler(method, alpha)})
		}
	}
	registrar.RegisterService(&desc, server)
}

// handler carries a call of v2 out as one of v2alpha1.
func handler(method protoreflect.MethodDescriptor, alpha grpc.MethodDesc) grpc.MethodHandler {
	return func(server any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		request := dynamicpb.NewMessage(method.Input())
		if err := decode(request); err != nil {
			return nil, err
		}
		response, err := alpha.Handler(server, ctx, func(into any) error {
			message, _ := into.(proto.Message) // generated handlers decode into nothing else
			copyFields(message.ProtoReflect(), request)
			return nil
		}, interceptor)
		if err != nil {
			return nil, err
		}
		if operation, ok := response.(*longrunningpb.Operation); ok {
			return translate(method.ParentFile(), operation)
		}
		message, _ := response.(proto.Message)
		answer := dynamicpb.NewMessage(method.Output())
		copyFields(answer, message.ProtoReflect())
		return answer, nil
	}
}

// copyFields copies the fields that both messages have.
func copyFields(to, from protoreflect.Message) {
	from.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		into := counterpart(to.Descriptor().Fields(), f.Name())
		switch {
		case into == nil:
		case f.IsMap():
			target := to.Mutable(into).Map()
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				target.Set(k, v) // of strings
				return true
			})
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			list := to.Mutable(into).List()
			for i := range v.List().Len() {
				element := list.NewElement()
				copyFields(element.Message(), v.List().Get(i).Message())
				list.Append(element)
			}
		case f.IsList():
			list := to.Mutable(into).List()
			for i := range v.List().Len() {
				list.Append(v.List().Get(i))
			}
		case f.Kind() == protoreflect.MessageKind:
			copyFields(to.Mutable(into).Message(), v.Message())
		default:
			to.Set(into, v)
		}
		return true
	})
}

// counterpart is the field of the other version.
func counterpart(fields protoreflect.FieldDescriptors, name protoreflect.Name) protoreflect.FieldDescriptor {
	if f := fields.ByName(name); f != nil {
		return f
	}
	const alpha, stable = "multi_node_params", "multislice_params"
	switch name {
	case alpha:
		return fields.ByName(stable)
	case stable:
		return fields.ByName(alpha)
	}
	return nil
}

// translate returns the operation as clients of v2 expect it: its result is a message
// of v2, and DeleteQueuedResource answers Empty.
func translate(file protoreflect.FileDescriptor, operation *longrunningpb.Operation) (*longrunningpb.Operation, error) {
	shown := proto.CloneOf(operation)
	shown.Name += operationSuffix
	metadata := &common.OperationMetadata{}
	if err := shown.GetMetadata().UnmarshalTo(metadata); err != nil {
		return nil, err
	}
	metadata.ApiVersion = "v2"
	if err := shown.GetMetadata().MarshalFrom(metadata); err != nil {
		return nil, err
	}
	response := shown.GetResponse()
	if response != nil && metadata.GetVerb() == "delete" {
		return shown, response.MarshalFrom(&emptypb.Empty{})
	}
	if response == nil || response.MessageIs(&emptypb.Empty{}) {
		return shown, nil
	}
	alpha, err := response.UnmarshalNew()
	if err != nil {
		return nil, err
	}
	message := dynamicpb.NewMessage(file.Messages().ByName(alpha.ProtoReflect().Descriptor().Name()))
	copyFields(message, alpha.ProtoReflect())
	packed, err := anypb.New(message)
	if err != nil {
		return nil, err
	}
	shown.Result = &longrunningpb.Operation_Response{Response: packed}
	return shown, nil
}
