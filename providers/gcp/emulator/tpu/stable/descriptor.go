package stable

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// The packages of the two versions.
const (
	alphaPackage  = "google.cloud.tpu.v2alpha1"
	stablePackage = "google.cloud.tpu.v2"
)

// renumbered states by message which fields v2 has at another number; 0: it lacks
// the field. The source is the published google/cloud/tpu/v2/cloud_tpu.proto, beside
// the one of v2alpha1.
func renumbered(message string) map[string]int32 {
	return map[string]map[string]int32{
		"Node": {
			"network_configs": 49, "queued_resource": 47, "accelerator_config": 46, "multislice_node": 48,
			"autocheckpoint_enabled": 0, "boot_disk_config": 0, "upcoming_maintenance": 0,
		},
		"QueuedResource":    {"spot": 3, "reservation_name": 7, "best_effort": 0},
		"Guaranteed":        {"reserved": 0},
		"NodeSpec":          {"multi_node_params": 3, "node": 4},
		"MultiNodeParams":   {"workload_type": 0},
		"CreateNodeRequest": {"request_id": 0},
		"DeleteNodeRequest": {"request_id": 0},
	}[message]
}

// names in v2 of what has another one in v2alpha1.
func stableName(name string) string {
	switch name {
	case "multi_node_params":
		return "multislice_params"
	case "MultiNodeParams":
		return "MultisliceParams"
	}
	return name
}

// alphaOnly reports whether v2 has no call or message of that name.
func alphaOnly(name string) bool {
	for _, part := range []string{"Maintenance", "BootDiskConfig", "CustomerEncryptionKey"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return strings.HasSuffix(name, "BestEffort") || strings.HasSuffix(name, "WorkloadType") ||
		name == "Reservation" || strings.HasPrefix(name, "ListReservations")
}

// describe derives the descriptor of v2 from the one of v2alpha1.
func describe(alpha protoreflect.FileDescriptor) (protoreflect.FileDescriptor, error) {
	file := protodesc.ToFileDescriptorProto(alpha)
	file.Name, file.Package = new("google/cloud/tpu/v2/cloud_tpu.proto"), new(stablePackage)
	file.MessageType = slices.DeleteFunc(file.MessageType, func(m *descriptorpb.DescriptorProto) bool { return alphaOnly(m.GetName()) })
	for _, m := range file.GetMessageType() {
		changeMessage(m)
	}
	for _, s := range file.GetService() {
		s.Method = slices.DeleteFunc(s.Method, func(m *descriptorpb.MethodDescriptorProto) bool { return alphaOnly(m.GetName()) })
		for _, m := range s.GetMethod() {
			changeType(&m.InputType)
			changeType(&m.OutputType)
		}
	}
	described, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	if err != nil {
		return nil, fmt.Errorf("derive the Cloud TPU API v2: %w", err)
	}
	return described, nil
}

// changeMessage changes the message and those within it.
func changeMessage(m *descriptorpb.DescriptorProto) {
	numbers := renumbered(m.GetName())
	m.Field = slices.DeleteFunc(m.Field, func(f *descriptorpb.FieldDescriptorProto) bool {
		number, ok := numbers[f.GetName()]
		return ok && number == 0
	})
	for _, f := range m.GetField() {
		if number, ok := numbers[f.GetName()]; ok {
			f.Number = new(number)
		}
		f.Name = new(stableName(f.GetName()))
		f.JsonName = nil
		changeType(&f.TypeName)
	}
	m.NestedType = slices.DeleteFunc(m.NestedType, func(n *descriptorpb.DescriptorProto) bool { return alphaOnly(n.GetName()) })
	for _, n := range m.GetNestedType() {
		changeMessage(n)
	}
	m.EnumType = slices.DeleteFunc(m.EnumType, func(e *descriptorpb.EnumDescriptorProto) bool { return alphaOnly(e.GetName()) })
	for _, e := range m.GetEnumType() {
		if e.GetName() == "ApiVersion" {
			e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: new("V2"), Number: new(int32(4))})
		}
	}
	m.Name = new(stableName(m.GetName()))
}

// changeType names the type of v2 in place of that of v2alpha1; nil is no type.
func changeType(name **string) {
	if *name == nil {
		return
	}
	inner, ok := strings.CutPrefix(**name, "."+alphaPackage+".")
	if !ok {
		return
	}
	parts := strings.Split(inner, ".")
	for i, part := range parts {
		parts[i] = stableName(part)
	}
	*name = new("." + stablePackage + "." + strings.Join(parts, "."))
}
