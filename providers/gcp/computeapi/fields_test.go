package computeapi_test

import (
	"reflect"
	"strings"
	"testing"

	"cloud.google.com/go/compute/apiv1/computepb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/fray-ml/fray/providers/gcp/computeapi"
)

// Each field has a name that Google's own client gives it in JSON, and is of the same kind.
func TestFieldsAreThoseOfGooglesClient(t *testing.T) {
	for _, each := range []struct {
		ours   any
		theirs proto.Message
	}{
		{computeapi.Instance{}, &computepb.Instance{}},
		{computeapi.InstanceTemplate{}, &computepb.InstanceTemplate{}},
		{computeapi.ResourcePolicy{}, &computepb.ResourcePolicy{}},
		{computeapi.InstanceGroupManager{}, &computepb.InstanceGroupManager{}},
		{computeapi.ResizeRequest{}, &computepb.InstanceGroupManagerResizeRequest{}},
		{computeapi.Operation{}, &computepb.Operation{}},
		{computeapi.LabelsRequest{}, &computepb.InstancesSetLabelsRequest{}},
		{computeapi.GuestAttributes{}, &computepb.GuestAttributes{}},
		{computeapi.ManagedInstanceList{}, &computepb.InstanceGroupManagersListManagedInstancesResponse{}},
		{computeapi.GroupErrorList{}, &computepb.InstanceGroupManagersListErrorsResponse{}},
		{computeapi.InstanceList{}, &computepb.InstanceList{}},
		{computeapi.InstanceTemplateList{}, &computepb.InstanceTemplateList{}},
		{computeapi.InstanceAggregatedList{}, &computepb.InstanceAggregatedList{}},
		{computeapi.InstanceGroupManagerAggregatedList{}, &computepb.InstanceGroupManagerAggregatedList{}},
	} {
		compare(t, reflect.TypeOf(each.ours), each.theirs.ProtoReflect().Descriptor())
	}
}

func compare(t *testing.T, ours reflect.Type, theirs protoreflect.MessageDescriptor) {
	t.Helper()
	for _, field := range reflect.VisibleFields(ours) {
		if field.Anonymous {
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		their := theirs.Fields().ByJSONName(name)
		if their == nil {
			t.Errorf("%s.%s: %s has no field %q", ours.Name(), field.Name, theirs.Name(), name)
			continue
		}
		kind, message, is := field.Type, their.Message(), their.Kind()
		switch {
		case their.IsMap():
			if kind.Kind() != reflect.Map {
				t.Errorf("%s.%s is no map", ours.Name(), field.Name)
				continue
			}
			kind, message, is = kind.Elem(), their.MapValue().Message(), their.MapValue().Kind()
		case their.IsList():
			if kind.Kind() != reflect.Slice {
				t.Errorf("%s.%s is no list", ours.Name(), field.Name)
				continue
			}
			kind = kind.Elem()
		}
		if kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if message != nil && kind.Kind() == reflect.Struct {
			compare(t, kind, message)
			continue
		}
		if want := wanted(is); kind.Kind() != want {
			t.Errorf("%s.%s is a %s, want a %s", ours.Name(), field.Name, kind, want)
		}
		// JSON has numbers of 64 bits as texts.
		wide := kind.Kind() == reflect.Int64 || kind.Kind() == reflect.Uint64
		if quoted := strings.Contains(options, "string"); quoted != wide {
			t.Errorf("%s.%s is a %s: written as a text: %t", ours.Name(), field.Name, kind, quoted)
		}
	}
}

func wanted(is protoreflect.Kind) reflect.Kind {
	return map[protoreflect.Kind]reflect.Kind{
		protoreflect.BoolKind: reflect.Bool, protoreflect.Int32Kind: reflect.Int32, protoreflect.Int64Kind: reflect.Int64,
		protoreflect.Uint64Kind: reflect.Uint64, protoreflect.DoubleKind: reflect.Float64,
		protoreflect.StringKind: reflect.String, protoreflect.EnumKind: reflect.String,
	}[is]
}
