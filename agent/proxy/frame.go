package proxy

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fray-ml/fray/clusterapi"
)

// frame is one message as it is on the wire.
type frame struct{ data mem.BufferSlice }

// frameCodec passes frames on without reading them: a proxy that is older than
// the controller loses nothing.
type frameCodec struct{}

var _ encoding.CodecV2 = frameCodec{}

func (frameCodec) Marshal(v any) (mem.BufferSlice, error) {
	f, ok := v.(*frame)
	if !ok {
		return nil, fmt.Errorf("pass on message: it is a %T", v)
	}
	f.data.Ref() // gRPC frees what it sends
	return f.data, nil
}

func (frameCodec) Unmarshal(data mem.BufferSlice, v any) error {
	f, ok := v.(*frame)
	if !ok {
		return fmt.Errorf("pass on message: it is a %T", v)
	}
	data.Ref()
	f.data = data
	return nil
}

// Name is what the messages are encoded by.
func (frameCodec) Name() string { return "proto" }

// method is what the proxy knows of a call. Of unknown ones it knows only that
// they may be streams.
type method struct {
	name      string // "/fray.cluster.v1.Cluster/Launch"
	unary     bool
	reads     bool             // it changes nothing
	requestID protowire.Number // the field by which it is carried out once, 0 if there is none
}

// services are what is passed on: Admin is not for tasks.
func services() []string {
	return []string{clusterapi.Cluster_ServiceDesc.ServiceName, clusterapi.Metadata_ServiceDesc.ServiceName}
}

// methods are all that this version knows, by name.
func methods() map[string]method {
	known := map[string]method{}
	all := clusterapi.File_clusterapi_cluster_proto.Services()
	for i := range all.Len() {
		service := all.Get(i)
		if !slices.Contains(services(), string(service.FullName())) {
			continue
		}
		for k := range service.Methods().Len() {
			m := methodOf(service.Methods().Get(k))
			known[m.name] = m
		}
	}
	return known
}

func methodOf(d protoreflect.MethodDescriptor) method {
	name := string(d.Name())
	m := method{
		name:  fmt.Sprintf("/%s/%s", d.Parent().FullName(), name),
		unary: !d.IsStreamingClient() && !d.IsStreamingServer(),
		reads: slices.ContainsFunc([]string{"Poll", "Wait", "List", "Get", "Lookup"}, func(p string) bool {
			return strings.HasPrefix(name, p)
		}),
	}
	if field := d.Input().Fields().ByName("request_id"); field != nil {
		m.requestID = field.Number()
	}
	return m
}

// repeatable reports whether a request may be sent again although the first one
// may have been carried out.
func (m method) repeatable(request mem.BufferSlice) bool {
	return m.reads || m.requestID != 0 && hasField(request.Materialize(), m.requestID)
}

// hasField reports whether an encoded message has a field of bytes that is not empty.
func hasField(message []byte, number protowire.Number) bool {
	for len(message) > 0 {
		got, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return false
		}
		message = message[n:]
		if got == number && kind == protowire.BytesType {
			value, n := protowire.ConsumeBytes(message)
			return n >= 0 && len(value) > 0
		}
		if n = protowire.ConsumeFieldValue(got, kind, message); n < 0 {
			return false
		}
		message = message[n:]
	}
	return false
}
